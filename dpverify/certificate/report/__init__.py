"""The report of a certificate: its page, its plots, and the check that it agrees."""
