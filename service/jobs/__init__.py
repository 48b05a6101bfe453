"""Backfill jobs: accepted durably, cut into shards, run exactly once by worker processes."""

from service.jobs.manager import JobManager
from service.jobs.records import Counts, Job, JobRequest, Shard

__all__ = ["Counts", "Job", "JobManager", "JobRequest", "Shard"]
