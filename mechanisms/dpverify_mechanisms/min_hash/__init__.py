"""MinHash sketches."""
