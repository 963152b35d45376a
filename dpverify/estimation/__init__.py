"""Checks of estimators' formulas: expectation and variance."""
