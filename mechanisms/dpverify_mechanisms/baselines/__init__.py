"""Baselines: noise on the records themselves, and randomized response."""
