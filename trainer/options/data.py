"""Options of the stored examples of a run, and of its batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from syntax.batches import MAX_LENGTH, SequenceSpec, TruncationSide, TruncationTie
from syntax.contrast import read_sampler
from syntax.options import Option, check_options, check_range

SeparatorEdge: TypeAlias = Literal["as_published", "as_released", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions(SequenceSpec):
    """Stored examples that a run reads, and their form in batches."""

    dataset: Annotated[str, Option("Name of the dataset in the store.")]
    train_split: Annotated[str, Option("Split to train on.")] = "train"
    lang: Annotated[
        str,
        Option(
            "Language of both splits: one, several (`en,fr`), or `*` for all. Each must have "
            "examples."
        ),
    ] = "en"
    dev_split: Annotated[str, Option("Split on which models are selected.")] = "dev"
    tokenizer: Annotated[
        str | None,
        Option("Name or fingerprint; needed if the store holds several. The result records it."),
    ] = None
    parser: Annotated[
        str | None,
        Option(
            "Name or fingerprint, or one per language (`en:NAME,fr:NAME`); needed if a language "
            "has several."
        ),
    ] = None
    version: Annotated[
        int | None,
        Option("Version of the dataset, by default the newest. The result records it."),
    ] = None
    # The published systems cut as BERT's own code does.
    truncation_tie: TruncationTie = "slow"
    truncation_side: TruncationSide = "right"
    max_length: int = MAX_LENGTH
    template: tuple[str, ...] = ()
    separator_edge: Annotated[
        SeparatorEdge,
        Option(
            "What separators hang from: as in the paper (`root`), as in the released code "
            "(`last_piece`), or `none`."
        ),
    ] = "as_published"
    limit: Annotated[
        int | None,
        Option(
            "In training, at most so many examples of each language, chosen by their keys: those "
            "of a smaller limit are among those of a larger one.",
            low=1,
        ),
    ] = None
    bucket: Annotated[bool, Option("Batch examples of similar length.")] = True
    matrices: Annotated[
        Literal["host", "device"],
        Option(
            "`host`: the stream derives matrices; `device`: the device derives them from the trees."
        ),
    ] = "host"
    gold: Annotated[
        str | None,
        Option(
            "Dataset of a treebank: in training its examples of the same split are repeated to one "
            "for every `gold_every` of the others, and shuffled among them."
        ),
    ] = None
    gold_every: Annotated[
        int | None,
        Option("Other examples for each of `gold`; `null` adds each of `gold` once.", low=1),
    ] = 8
    gold_version: Annotated[int | None, Option("Of `gold`; as `version`.")] = None
    lang_exponent: Annotated[
        float | None,
        Option(
            "In training, languages are drawn in proportion to their shares of the examples to "
            "this power, from 0 to 1: those of smaller languages are repeated."
        ),
    ] = None
    treebank: Annotated[
        str | None,
        Option(
            "Dataset of the same sentences in the same words, whose trees a parser learns and is "
            "scored by; a model that reads trees reads those of `dataset`."
        ),
    ] = None
    treebank_version: Annotated[int | None, Option("Of `treebank`; as `version`.")] = None
    samplers: Annotated[
        tuple[str, ...],
        Option(
            "Contrastive samples that each batch carries for objectives: `phrase` and `tree`, "
            "settings in brackets (`phrase(way=lr_sib, negatives=5)`)."
        ),
    ] = ()

    def __post_init__(self) -> None:
        check_options(self)
        if self.lang_exponent is not None:
            check_range("data.lang_exponent", self.lang_exponent, 0, 1)
        for sampler in self.samplers:
            read_sampler(sampler)

    @property
    def spreads(self) -> bool:
        return self.splits
