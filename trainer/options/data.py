"""Which stored examples a run reads, and how they become batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

SeparatorEdge: TypeAlias = Literal["as_published", "as_released", "none"]


@dataclass(frozen=True, slots=True)
class DataOptions:
    """Which stored examples a run reads, and how they become batches.

    Attributes:
        dataset: Name in the store.
        train_split, lang: What is trained on, in which language: one, several with commas between
            them (``en,fr``), or ``*`` for all. Each must have examples.
        dev_split: What models are selected on, in the same language.
        tokenizer: Its name or fingerprint; may be left out when the store holds one. A result
            records the one found.
        parser: Its name or fingerprint; may be left out when each language has one. For each
            language its own as ``en:NAME,fr:NAME``.
        version: The dataset's version, pinned; the newest when left out. A result records it.
        max_length: Wordpieces of an example, specials included.
        truncation: How a longer example is shortened.
        truncation_tie: Which of equally long segments ``longest_first`` shortens: the last
            (``slow``, as BERT's own code and with it the published systems), or as Hugging Face's
            fast tokenizers (``fast``).
        truncation_side: Which end of a text is shortened.
        segment_limits: Pieces that each segment keeps at most, before anything else is cut; none
            when empty.
        template: Which fields stand where, and in how many sequences, as in
            ``("article+question option_*",)``; all fields in order when empty.
        stride: Pieces from one window to the next of what is too long; truncated when left out.
        level: ``sentence`` makes a sequence of every sentence of the segment that ``truncation``
            names, with the others.
        policy: How the pieces of a word hang in the tree.
        joint_root: Whether [CLS] is the root of all trees.
        separator_edge: What [SEP] hangs from (a switch), or ``none``.
        bucket: Whether batches gather examples of similar length.
        matrices: ``host`` streams them; ``device`` derives them there, from the trees of whole
            examples.
    """

    dataset: str
    train_split: str = "train"
    lang: str = "en"
    dev_split: str = "dev"
    tokenizer: str | None = None
    parser: str | None = None
    version: int | None = None
    max_length: int = 128
    truncation: Literal["longest_first", "only_first", "only_second", "none"] = "longest_first"
    truncation_side: Literal["right", "left"] = "right"
    segment_limits: tuple[int | None, ...] = ()
    template: tuple[str, ...] = ()
    stride: int | None = None
    level: Literal["document", "sentence"] = "document"
    policy: str = "attach"
    joint_root: bool = True
    separator_edge: SeparatorEdge = "as_published"
    bucket: bool = True
    matrices: Literal["host", "device"] = "host"
    truncation_tie: Literal["fast", "slow"] = "slow"

    @property
    def spreads(self) -> bool:
        """Whether an example may be spread over several sequences."""
        return self.stride is not None or self.level == "sentence"
