"""Distributions of privacy losses, which composition adds up."""
