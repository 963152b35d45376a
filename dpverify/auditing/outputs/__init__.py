"""Drawing outputs: copies, journals, and limits of time."""
