"""What can be streamed: examples in sequence order, and a way to read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from featurestore.dataset.rows import RowIndex
from featurestore.tables.card import DatasetCard
from syntax.examples import LabelSpec

if TYPE_CHECKING:
    from featurestore.stream.iterator import FeatureStream
    from featurestore.stream.reader import WindowReader
    from syntax.batches import (
        Level,
        SeparatorEdge,
        Span,
        SpecialTokens,
        Truncation,
        TruncationSide,
        TruncationTie,
    )
    from syntax.contrast import Sampler


class StreamedDataset(ABC):
    """Examples that streams can be made of.

    An implementer sets the attributes, and says how examples are read and what they are.

    Attributes:
        name: Name of the dataset.
        version: Version of its table.
        card: Fields, labels, tokenizer.
        rows: Where the examples lie, and how long they are.
    """

    name: str
    version: int
    card: DatasetCard
    rows: RowIndex

    @property
    @abstractmethod
    def fingerprints(self) -> dict[str, Any]:
        """What a run should record: tokenizer, parsers, and the content."""

    @abstractmethod
    def open_reader(
        self, stored: bool, offsets: bool = False, tokens: bool = False
    ) -> WindowReader:
        """A reader of examples by their positions.

        Args:
            stored: Read the stored matrices too.
            offsets: Read the characters that pieces cover, too.
            tokens: Read the dataset's own tokens, too; only with ``offsets``.
        """

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def langs(self) -> dict[str, int]:
        """Number of examples in each language, of those that have any."""
        counts = Counter(self.rows.part.tolist())
        langs: Counter[str] = Counter()
        for part, (_, lang) in enumerate(self.rows.parts):
            langs[lang] += counts[part]
        return {lang: count for lang, count in sorted(langs.items()) if count}

    @property
    def special_tokens(self) -> SpecialTokens:
        """Special tokens that streams put around the segments."""
        return self.card.special_tokens

    @property
    def labels(self) -> tuple[LabelSpec, ...]:
        """Label columns."""
        return self.card.labels

    def stream(
        self,
        batch_size: int = 32,
        seed: int = 0,
        epoch: int = 0,
        rank: int = 0,
        world_size: int = 1,
        max_length: int | None = 128,
        policy: str = "attach",
        shuffle: bool = True,
        bucket: bool = True,
        matrices: Sequence[str] | Literal["stored"] = ("distance", "depth", "ancestor"),
        buffers: Literal["fresh", "ring"] = "fresh",
        drop_last: bool = False,
        prefetch: int = 0,
        pool: int | None = 8,
        joint_root: bool = True,
        separator_edge: SeparatorEdge = "root",
        truncation: Truncation = "longest_first",
        pad_to_multiple_of: int = 1,
        batch_tokens: int | None = None,
        truncation_side: TruncationSide | Sequence[TruncationSide] = "right",
        segment_limits: Sequence[int | None] = (),
        template: str | Sequence[str] = (),
        stride: int | None = None,
        level: Level = "document",
        offsets: bool = False,
        first_pieces: bool = False,
        token_ids: bool = False,
        spans: Mapping[str, Sequence[Span]] | Sequence[str] | None = None,
        samplers: Sequence[Sampler] = (),
        nodes: bool = False,
        truncation_tie: TruncationTie = "fast",
    ) -> FeatureStream:
        """One epoch of batches.

        Args:
            batch_size: Examples in a batch.
            seed: With ``epoch``, chooses the order, which is the same for every world size.
            epoch: Number of the epoch.
            rank: This rank.
            world_size: Number of ranks. They take turns over one global sequence of batches;
                every rank gets the same number of batches, none larger than asked for, and nothing
                is lost or repeated (`featurestore.stream.turns`).
            max_length: Longest sequence, special tokens included; ``None`` cuts nothing.
            policy: Subword policy.
            shuffle: ``False`` gives sequence order (``seq``).
            bucket: Batch examples of like length; only when shuffled.
            matrices: Which matrices to derive, by their names in `syntax.matrices.MATRICES`; ``()``
                for vectors only, when the device derives them; ``"stored"`` reads the stored ones,
                which is slower and needs ``attach``.
            buffers: ``"fresh"`` arrays for every batch, or a ``"ring"`` of reused ones: then a
                batch is valid until the next one is asked for.
            drop_last: Leave out the examples that do not fill a batch on every rank.
            prefetch: Batches that a thread prepares ahead; 0 for none.
            pool: Chunks of about 256k pieces that are shuffled together; ``None`` shuffles all of
                them together, exactly, and holds the epoch in memory.
            joint_root: As in `syntax.batches.AssemblySpec`, and so the next three.
            separator_edge: What separators hang from.
            truncation: Which segment is shortened.
            pad_to_multiple_of: The padded length is a multiple of this.
            batch_tokens: Instead of ``batch_size``: positions of a padded batch, at most, before
                ``pad_to_multiple_of``. Batches of short examples then have more of them; one that
                is longer alone is a batch of its own.
            truncation_side: As in `syntax.batches.AssemblySpec`, and so all that follow.
            segment_limits: Pieces that each segment keeps at most.
            template: Sequences by names of fields, as `syntax.batches.Template.of` takes them.
            stride: Pieces between the starts of windows over what is too long.
            level: ``"sentence"`` makes a sequence of each sentence.
            offsets: Read the characters that pieces cover, and say which are where.
            first_pieces: Say which pieces are the first of their words.
            token_ids: Say which of the dataset's own tokens pieces show, and how many there are.
            spans: Spans of characters by ``example_id``, for matrices that go by marks
                (`syntax.batches.mark_spans`); examples without any have none. Or the names of
                label columns of kind ``spans``.
            samplers: Contrastive samples to draw for each example (`syntax.contrast`), from
                ``seed``, ``epoch`` and ``example_id``; their arrays join the batch. One of a kind.
            nodes: Give the nodes of whole sequences, too, for a device that derives the matrices.
            truncation_tie: Which of equally long segments ``longest_first`` shortens.

        Raises:
            SpecError: An option is of another type, or options contradict each other or the
                dataset.
            UnknownNameError: The template names a field that the dataset does not have.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        from featurestore.stream.iterator import FeatureStream
        from featurestore.stream.options import StreamOptions

        return FeatureStream(self, StreamOptions.of(**given))
