"""Rows of the table that ``make bench`` prints, one module an area."""
