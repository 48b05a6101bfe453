"""From texts to parses and features, free of HTTP."""

from service.parsers import Limits
from service.pipeline.adhoc import AdhocDataset
from service.pipeline.assembly import FeatureAssembler
from service.pipeline.inputs import check_input, parse_key
from service.pipeline.pipeline import FeaturePipeline
from service.pipeline.records import (
    FeatureAnswer,
    FeatureRequest,
    ItemFeatures,
    MatrixName,
    Pieces,
)

__all__ = [
    "AdhocDataset",
    "FeatureAnswer",
    "FeatureAssembler",
    "FeaturePipeline",
    "FeatureRequest",
    "ItemFeatures",
    "Limits",
    "MatrixName",
    "Pieces",
    "check_input",
    "parse_key",
]
