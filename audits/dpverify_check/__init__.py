"""A second checker of certificates, which shares no code with the rest: one file to be read."""
