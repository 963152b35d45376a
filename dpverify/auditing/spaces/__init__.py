"""What data sets are made of, for a search: candidates, what fits, what is simpler."""
