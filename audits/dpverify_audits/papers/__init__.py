"""The papers' statements, a package each."""
