"""Pipelines from a raw benchmark to the data of the first epoch: the papers' way and ours."""
