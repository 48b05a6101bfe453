"""Syntax-MBERT (Ahmad et al. 2021, https://aclanthology.org/2021.acl-long.350)."""
