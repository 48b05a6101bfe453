"""GATE (Ahmad et al. 2021, AAAI, https://arxiv.org/abs/2010.03009)."""
