"""Random projections with whole-number entries."""
