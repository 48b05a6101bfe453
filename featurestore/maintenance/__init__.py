"""Work on a whole store: vacuum, evict, delete, validate."""
