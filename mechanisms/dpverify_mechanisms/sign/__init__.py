"""Sign sketches."""
