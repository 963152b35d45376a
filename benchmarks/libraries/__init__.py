"""The scoreboard: other people's libraries, each audited in an environment of its own."""
