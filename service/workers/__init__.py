"""Parser processes: a fork server per model that forks workers, and the pools that feed them."""
