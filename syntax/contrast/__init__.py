"""Contrastive samples of phrases and trees (SynCLM), drawn before the training step."""

from syntax.contrast.base import Sampler
from syntax.contrast.phrases import PhraseSampler
from syntax.contrast.trees import TreeSampler

__all__ = ["PhraseSampler", "Sampler", "TreeSampler"]
