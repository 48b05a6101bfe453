"""Parser processes: a nursery per model that forks workers, and the pools that feed them."""
