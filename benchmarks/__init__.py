"""Measured comparisons: each a ratio of medians in one run on the same work, never asserted."""
