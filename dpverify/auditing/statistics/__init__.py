"""Confidence bounds and tests behind the attacks."""
