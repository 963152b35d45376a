"""Composition of mechanisms: exact, and the published theorems beside it."""
