"""Exact samplers and the two randomness policies."""
