"""Linear sketches with noise."""
