"""The engine `dask`: shards run on the workers of an existing `distributed` scheduler.

A coordinator beside the service claims shards, keeps their leases and settles them, for a cluster
sees neither the job tables nor the staged uploads. A task carries no more than the name of a run;
once it starts, it asks the coordinator for the shard.
"""
