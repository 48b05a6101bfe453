"""Options by which stored segments become model input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

from syntax.batches.template import Template
from syntax.errors import SpecError
from syntax.matrices import MATRICES
from syntax.options import Option, check_options
from syntax.subwords import POLICIES

SeparatorEdge = Literal["root", "last_piece", "none"]
Truncation = Literal["longest_first", "only_first", "only_second", "none"]
TruncationTie = Literal["fast", "slow"]
TruncationSide = Literal["right", "left"]
Level = Literal["document", "sentence"]

MAX_LENGTH: Final = 128
"""Longest sequence of streams, recipes and requests that do not say it."""


@dataclass(frozen=True, slots=True)
class SequenceSpec:
    """Options that streams and recipes share: which sequences an example becomes."""

    max_length: Annotated[
        int | None,
        Option("Longest sequence, special tokens included; `None` cuts nothing.", low=1),
    ] = None
    policy: Annotated[
        str,
        Option(
            "How the pieces of a word hang in the tree: `attach`, `broadcast`, `chain`, "
            "`copy_head`, `none`."
        ),
    ] = "attach"
    joint_root: Annotated[
        bool,
        Option(
            "One tree per sequence: sentence roots and the other special tokens before the text "
            "hang from the first special token. Otherwise every sentence is a tree."
        ),
    ] = True
    truncation: Annotated[
        Truncation,
        Option(
            "Which segment is shortened: `longest_first` removes one piece at a time from the "
            "longest, `only_first` and `only_second` shorten one segment, `none` refuses what is "
            "too long. Matrices stay those of the whole tree: truncation deletes rows and columns."
        ),
    ] = "longest_first"
    truncation_tie: Annotated[
        TruncationTie,
        Option(
            "Which of equally long segments `longest_first` shortens. `fast`: the one that was "
            "shortest originally (the first of several), as Hugging Face's fast tokenizers do; "
            "`slow`: the last one, as BERT's own code and the Python tokenizers do. The results "
            "differ by one piece in each of two segments."
        ),
    ] = "fast"
    truncation_side: Annotated[
        TruncationSide | tuple[TruncationSide, ...],
        Option(
            "Where pieces are removed: `right` is the end of a text in any script, `left` its "
            "beginning; one value for all segments, or one for each."
        ),
    ] = "right"
    segment_limits: Annotated[
        tuple[int | None, ...],
        Option(
            "Most pieces of each segment, applied before other truncation; `None` sets no limit.",
            low=1,
        ),
    ] = ()
    template: Annotated[
        Template | str | tuple[str, ...] | None,
        Option(
            "Fields of each sequence in order: `'question passage'`, or a list of such texts for "
            "several sequences. `None`: all fields in one sequence. With a template, options of "
            "segments apply to its parts."
        ),
    ] = None
    stride: Annotated[
        int | None,
        Option(
            "Pieces from the start of one window to the start of the next: an example that is too "
            "long becomes several sequences, which share out the segment that `truncation` names "
            "(or the only one) and repeat the others. Windows overlap or meet, so no piece is left "
            "out. `None` truncates instead.",
            low=1,
        ),
    ] = None
    level: Annotated[
        Level,
        Option(
            "`sentence` makes one sequence of each sentence of the segment that `truncation` names "
            "(or the only one), together with the other segments."
        ),
    ] = "document"

    @property
    def splits(self) -> bool:
        return self.stride is not None or self.level == "sentence"

    @property
    def rearranges(self) -> bool:
        return bool(self.template) or self.splits


@dataclass(frozen=True, slots=True)
class AssemblySpec(SequenceSpec):
    """Options of a batch, decided when it is made; none is stored."""

    separator_edge: Annotated[
        SeparatorEdge,
        Option(
            "What separators hang from. `root`: the joint root, if there is one (Syntax-MBERT as "
            "published: Ahmad et al. 2021, section 3). `last_piece`: in sequences of several "
            "parts, the last piece of the segment before them, kept or not (Syntax-MBERT as "
            "released), and otherwise, or if that segment is empty, the joint root. `none`: "
            "nothing."
        ),
    ] = "root"
    pad_to_multiple_of: Annotated[
        int,
        Option(
            "The padded length is a multiple of this; a multiple of 8 saves copying the matrices "
            "once.",
            low=1,
        ),
    ] = 1
    matrices: Annotated[
        tuple[str, ...],
        Option(
            "Names of matrices to derive (`syntax.matrices.MATRICES`), with settings in "
            "parentheses: `sla_mask(threshold=4)`; an empty list gives only vectors."
        ),
    ] = ("distance", "depth", "ancestor")
    offsets: Annotated[bool, Option("Add where each piece is in its text.")] = False
    first_pieces: Annotated[bool, Option("Add which pieces are the first of their words.")] = False
    token_ids: Annotated[
        bool, Option("Add which of the dataset's own tokens each piece belongs to.")
    ] = False
    nodes: Annotated[
        bool,
        Option(
            "Add the nodes of whole sequences, before truncation, from which a device can derive "
            "the matrices."
        ),
    ] = False

    def __post_init__(self) -> None:
        check_options(self)
        if not self.sides:
            raise SpecError("truncation_side is empty; give a side for all segments, or each")
        if self.stride is not None and self.max_length is None:
            raise SpecError(f"stride {self.stride} came without max_length, which windows fill")
        if self.splits and self.truncation == "none":
            raise SpecError(
                "truncation 'none' cuts nothing; with stride or level 'sentence' it must name the "
                "segment that is spread over sequences: only_first or only_second"
            )
        POLICIES.resolve(self.policy)
        full = [MATRICES.resolve(name) for name in self.matrices]
        for at, name in enumerate(full):
            if name in full[:at]:
                raise SpecError(
                    f"the matrices {self.matrices[full.index(name)]!r} and "
                    f"{self.matrices[at]!r} are the same, {name}; name it once"
                )

    @property
    def sides(self) -> tuple[TruncationSide, ...]:
        return (
            (self.truncation_side,)
            if isinstance(self.truncation_side, str)
            else self.truncation_side
        )

    def for_fields(self, fields: Sequence[str]) -> AssemblySpec:
        """The same with fields by number in the template, as `assemble_batch` needs it."""
        if not self.template or isinstance(self.template, Template):
            return self
        texts = (self.template,) if isinstance(self.template, str) else self.template
        return replace(self, template=Template.of(fields, *texts))

    @property
    def layout(self) -> Template | None:
        if isinstance(self.template, Template):
            return self.template
        if self.template:
            raise SpecError(
                f"the template {self.template!r} names fields; `AssemblySpec.for_fields` turns "
                "these into numbers of segments"
            )
        return None
