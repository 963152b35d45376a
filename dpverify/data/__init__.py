"""Records: which are neighbours, where they lie, and how they are read."""
