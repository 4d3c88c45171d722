"""Predict many tables (shards) into a folder: in this process, or by workers on other machines.

| module | contents |
|---|---|
| shards | the tables to predict, and the name of the output of each |
| folder | the output folder: its manifest, the receipts of finished shards, resuming |
| work | predicts one shard; runs in any process |
| runner | predicts all shards that are not finished yet |
| ray_workers | calls a function in worker processes of Ray |
"""
