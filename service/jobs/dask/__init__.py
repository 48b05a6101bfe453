"""The engine `dask`: shards run on the workers of an existing `distributed` scheduler.

A cluster sees neither the job tables nor the staged uploads. A coordinator beside the service
claims the shards, submits each as one task, serves it until it ends, and settles the shard.
"""
