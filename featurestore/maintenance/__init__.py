"""Work on a whole store: vacuum, evict, delete, migrate, validate."""
