"""Engines: where the shards of jobs are run. All call the same `run_shard`."""

from service.jobs.engines.registry import ENGINES, JobEngine, engine_of

__all__ = ["ENGINES", "JobEngine", "engine_of"]
