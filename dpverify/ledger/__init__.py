"""Statements of papers: each with a check that computes its verdict."""
