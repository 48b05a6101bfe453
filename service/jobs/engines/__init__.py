"""Engines: where the shards of jobs are run. All call the same `run_shard`."""

from service.jobs.engines.registry import ENGINES, Engine, engine_of

__all__ = ["ENGINES", "Engine", "engine_of"]
