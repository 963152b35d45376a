"""Attacks on a claim, one a module, each with its level."""
