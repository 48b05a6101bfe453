"""SG-Net (Zhang et al. 2020, AAAI, https://arxiv.org/abs/1908.05147)."""
