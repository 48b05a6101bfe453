"""Base of the datasets that can be streamed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from featurestore.stream.iterator import FeatureStream
from featurestore.stream.options import read_options
from featurestore.stream.order import OrderPolicy
from featurestore.stream.window import WindowReader
from featurestore.tables.card import DatasetCard
from featurestore.tables.rows import RowIndex
from syntax.batches import MAX_LENGTH, AssemblySpec, Span, SpecialTokens
from syntax.contrast import Sampler
from syntax.drawing.page import plain, short, summary
from syntax.examples import LabelSpec


class StreamedDataset(ABC):
    """Examples that streams can be made of.

    An implementer sets the attributes and implements reading and description of examples.

    Attributes:
        other_lengths: Positions of each example that a reader pads beside its pieces, such as those
            of its translation: then the longer of the two counts for ``batch_tokens``.
            *Shape:* (N,), int64.
    """

    other_lengths: NDArray[np.int64] | None = None
    name: str
    version: int
    card: DatasetCard
    rows: RowIndex

    @property
    @abstractmethod
    def fingerprints(self) -> dict[str, Any]:
        """Content for a run to record: tokenizer, parsers and examples."""

    @abstractmethod
    def open_reader(
        self, stored: bool, offsets: bool = False, tokens: bool = False
    ) -> WindowReader:
        """A reader of examples by their positions; ``tokens`` needs ``offsets``."""

    @abstractmethod
    def renew_lease(self) -> None:
        """Keep the files that are read from a vacuum; streams call it before each batch."""

    def _kept_in_copies(self) -> dict[str, Any]:
        """Attributes that may be set after a dataset is made; for ``__reduce__``."""
        return {"card": self.card, "other_lengths": self.other_lengths}

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def _shown(self) -> dict[str, object]:
        parts = [self.rows.parts[part] for part in np.flatnonzero(self.rows.counts.any(axis=1))]
        return {
            "name": self.name,
            "version": self.version,
            "split": ", ".join(sorted({split for split, _ in parts})),
            "examples": len(self),
            "languages": ", ".join(f"{lang}: {count}" for lang, count in self.langs.items()),
            "tokenizer": self.card.tokenizer,
        }

    def __repr__(self) -> str:
        return plain(type(self).__name__, self._shown)

    def _repr_html_(self) -> str:
        # Not in `__repr__`, which reads nothing from the store.
        content = {"fingerprint": short(self.fingerprints["examples"])}
        return summary(type(self).__name__, {**self._shown, **content})

    @property
    def langs(self) -> dict[str, int]:
        """Number of examples in each language, of those that have any."""
        counts = self.rows.counts.sum(axis=1).tolist()
        langs: Counter[str] = Counter()
        for (_, lang), count in zip(self.rows.parts, counts, strict=True):
            langs[lang] += count
        return {lang: count for lang, count in sorted(langs.items()) if count}

    @property
    def special_tokens(self) -> SpecialTokens:
        return self.card.special_tokens

    @property
    def labels(self) -> tuple[LabelSpec, ...]:
        return self.card.labels

    def stream(
        self,
        batch_size: int = 32,
        seed: int = 0,
        epoch: int = 0,
        rank: int = 0,
        world_size: int = 1,
        max_length: int | None = MAX_LENGTH,
        policy: str = "attach",
        shuffle: bool = True,
        bucket: bool = True,
        matrices: Sequence[str] | Literal["stored"] = ("distance", "depth", "ancestor"),
        *,
        assembly: AssemblySpec | None = None,
        order: OrderPolicy | None = None,
        prefetch: int = 0,
        buffers: Literal["fresh", "ring"] = "fresh",
        spans: Mapping[str, Sequence[Span]] | Sequence[str] | None = None,
        samplers: Sequence[Sampler] = (),
    ) -> FeatureStream:
        """One epoch of batches.

        ``batch_size``, ``seed``, ``epoch``, ``shuffle`` and ``bucket`` are those of `OrderPolicy`,
        ``max_length``, ``policy`` and ``matrices`` those of `AssemblySpec`. Each may be given as a
        keyword or in its object: where one of the two has the default, the other one counts.

        Args:
            batch_size: Examples in a batch.
            seed: With ``epoch``, chooses the order, which is the same for every world size.
            epoch: Number of the epoch.
            rank: This rank, from 0.
            world_size: Number of ranks that share the epoch (`featurestore.stream.turns`).
            max_length: Longest sequence, special tokens included; ``None`` cuts nothing.
            policy: How the pieces of a word hang in the tree.
            shuffle: ``False`` gives sequence order.
            bucket: Batch examples of like length; only when shuffled.
            matrices: Matrices to derive; ``()`` for vectors only; ``"stored"`` reads the stored
                ones, which is slower and needs ``attach``.
            assembly: Further options of assembly.
            order: Further options of the order.
            prefetch: Batches that a thread prepares ahead; 0 for none.
            buffers: ``"fresh"`` arrays for every batch, or a ``"ring"`` of reused ones: then a
                batch is valid until the next one is requested.
            spans: Spans of characters by ``example_id``, for matrices that go by marks, or the
                names of label columns of kind ``spans``.
            samplers: Contrastive samples to draw for each example; their arrays join the batch.
        """
        given = {
            name: value
            for name, value in locals().items()
            if name not in ("self", "assembly", "order")
        }
        return FeatureStream(self, read_options(given, assembly, order))
