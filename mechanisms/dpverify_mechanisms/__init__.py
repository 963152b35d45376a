"""The mechanisms of the papers, each paired with its accountant."""
