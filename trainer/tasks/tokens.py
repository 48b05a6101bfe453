"""Tags of a dataset's tokens, at pieces and back: what the tasks that tag tokens share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from syntax.batches import IGNORE, label_tokens, labels_of_tokens
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.variant import Variant
from trainer.batch import SyntaxBatch
from trainer.nn.crf import bioul_names, to_bioul
from trainer.tasks.base import Arrays

if TYPE_CHECKING:
    from featurestore import FeatureDataset

STREAM_OPTIONS: Final[Mapping[str, Any]] = {"offsets": True, "token_ids": True}
"""Arrays of a stream by which tokens are found."""


class TokenTags:
    """One label column of kind ``tags`` about the first segment."""

    def __init__(
        self, label: LabelSpec, pieces: Literal["first", "words"], word_labels: Variant
    ) -> None:
        if label.kind != "tags" or len(label.names) < 2:
            raise SpecError(
                f"the label {label.name!r} is of kind {label.kind!r} with {len(label.names)} "
                "names; tagging needs a label of kind 'tags' with at least two"
            )
        self.label, self._pieces, self._word_labels = label, pieces, word_labels
        self._missing = label.names.index("O") if "O" in label.names else 0

    def targets(self, arrays: Arrays) -> NDArray[np.int64]:
        """The labels of pieces. *Shape:* (B, L), -100 where there is none."""
        return label_tokens(
            arrays,
            arrays[self.label.name],
            pieces=self._pieces,
            names=self.label.names,
            variant=self._word_labels,
        )

    def pairs(
        self, arrays: Arrays, predicted_BL: NDArray[np.int64]
    ) -> list[tuple[list[str], list[str]]]:
        """Gold and predicted tags of each example; no gold ones of an example without tags.

        A token that truncation left without a piece is predicted as ``O``, or as the first name.
        """
        gold, names = _of_examples(arrays, self.label.name), self.label.names
        counts = arrays["token_counts"][:, 0]
        found = labels_of_tokens(
            arrays, predicted_BL, counts, pieces=self._pieces, missing=self._missing
        )
        return [
            ([names[tag] for tag in ours.tolist()], [names[tag] for tag in theirs.tolist()])
            for ours, theirs in zip(gold, found, strict=True)
        ]


def token_arrays(
    arrays: Arrays, tags_BL: NDArray[np.int64], names: Sequence[str], bioul: bool
) -> dict[str, NDArray[np.int64]]:
    """The tokens that each sequence shows of the first segment, as `trainer.nn.tagger.Tokens`.

    Needs ``token_ids=True`` of the stream. ``bioul`` gives tags of BIOUL for those of BIO.
    """
    starts_BL = arrays["token_starts"] & (arrays["segment_ids"] == 0)
    B, T = len(starts_BL), max(1, int(starts_BL.sum(1).max(initial=0)))
    pieces = np.full(starts_BL.shape, -1, np.int64)
    places, tags = np.full((B, T), -1, np.int64), np.full((B, T), IGNORE, np.int64)
    own = {name: number for number, name in enumerate(bioul_names(names))} if bioul else {}
    for row in range(B):
        (found,) = np.nonzero(starts_BL[row])
        places[row, : len(found)] = found
        tags[row, : len(found)] = tags_BL[row, found]
        tagged = np.flatnonzero(tags[row] != IGNORE)
        if bioul:
            spelled = to_bioul([names[tag] for tag in tags[row, tagged].tolist()])
            tags[row, tagged] = [own[tag] for tag in spelled]
        ids = arrays["token_ids"][row]
        (shown,) = np.nonzero((ids >= 0) & (arrays["segment_ids"][row] == 0))
        at = np.searchsorted(ids[found], ids[shown])
        # Pieces of a token that begins before the sequence are nobody's.
        begun = (at < len(found)) & (np.append(ids[found], -1)[at] == ids[shown])
        pieces[row, shown[begun]] = at[begun]
    return {"token_pieces": pieces, "token_places": places, "token_tags": tags}


def piece_loss(logits_BLC: Tensor, batch: SyntaxBatch, label: str) -> Tensor | None:
    """Mean cross-entropy of the labelled positions; None when the batch carries no labels."""
    gold_BL = batch.labels.get(label)
    if gold_BL is None:
        return None
    return F.cross_entropy(logits_BLC.flatten(0, 1), gold_BL.flatten(), ignore_index=IGNORE)


def example_ids(arrays: Arrays) -> list[str]:
    """Name of each example of a batch, however many sequences it became."""
    names: list[str] = _of_examples(arrays, "example_id")
    return names


def _of_examples(arrays: Arrays, name: str) -> list[Any]:
    values: list[Any] = arrays[name]
    if "example_index" not in arrays:
        return values
    _, first = np.unique(arrays["example_index"], return_index=True)
    return [values[row] for row in first.tolist()]


def tagged_tokens(data: FeatureDataset, label: LabelSpec) -> Iterator[tuple[list[str], list[str]]]:
    """The forms and the tags of each example's tokens; no tags for an unlabelled example."""
    table = data.columns(["texts", "token_counts", "token_offsets", label.name])
    for texts, counts, offsets, tags in zip(*(one.to_pylist() for one in table), strict=True):
        spans = np.frombuffer(offsets or b"", "<i4").reshape(-1, 2)[: counts[0] if counts else 0]
        forms = [texts[0][start:end] for start, end in spans.tolist()]
        # A store of an earlier release may not have recorded where the tokens are.
        yield forms if len(forms) == len(tags or ()) else [""] * len(tags or ()), tags or []


@dataclass(frozen=True, slots=True)
class TagLexicon:
    """The tag that each form has most often, a baseline; unknown forms have the default."""

    label: LabelSpec
    tags: Mapping[str, str]
    default: str

    @classmethod
    def of(cls, train: FeatureDataset, label: LabelSpec) -> TagLexicon:
        """The lexicon of training examples; of equally frequent tags the first counts."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for forms, tags in tagged_tokens(train, label):
            for form, tag in zip(forms, tags, strict=False):
                counts[form][tag] += 1
        order = {name: -at for at, name in enumerate(label.names)}

        def most_frequent(found: Counter[str]) -> str:
            return max(found, key=lambda tag: (found[tag], order[tag]), default=label.names[0])

        default = most_frequent(sum(counts.values(), Counter()))
        return cls(label, {form: most_frequent(own) for form, own in counts.items()}, default)

    def tag(self, forms: Sequence[str]) -> list[str]:
        return [self.tags.get(form, self.default) for form in forms]
