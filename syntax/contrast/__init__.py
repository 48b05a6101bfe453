"""Contrastive samples of phrases and trees (SynCLM), drawn outside of the training step."""

from syntax.contrast.base import Sampler
from syntax.contrast.phrases import PhraseSampler
from syntax.contrast.registry import SAMPLERS, read_sampler
from syntax.contrast.trees import TreeSampler

__all__ = ["SAMPLERS", "PhraseSampler", "Sampler", "TreeSampler", "read_sampler"]
