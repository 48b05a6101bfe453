"""The description of a dataset table, in the properties of the Delta table."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from featurestore.records import DatasetHandle
from featurestore.tables.layout import TableLayout
from featurestore.tables.schema import (
    ABOUT_EXAMPLES,
    EXAMPLE_COLUMNS,
    LABEL_TYPES,
    NULLABLE_EXAMPLE_COLUMNS,
    VECTORS,
)
from syntax.batches import SpecialTokens
from syntax.errors import SpecError, StoreFormatError
from syntax.examples import LabelSpec
from syntax.matrices import MATRICES
from syntax.strict_json import parse_json

PROPERTY: Final = "parsebank.dataset"
ADDED_COLUMNS: Final = ("dataset", "tokenizer")
"""Columns that the view ``examples`` of SQL has beside those of the tables."""

SHOWN_NAMES: Final = 5

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class DatasetCard:
    """The constants of a dataset table: they hold for every split, language and version."""

    name: str
    tokenizer: str
    tokenizer_fingerprint: str
    special_tokens: SpecialTokens
    fields: tuple[str, ...]
    labels: tuple[LabelSpec, ...]

    @classmethod
    def of(cls, handle: DatasetHandle) -> DatasetCard:
        for name in (handle.spec.name, handle.spec.split, handle.spec.lang):
            if not _NAME.fullmatch(name):
                raise SpecError(
                    f"{name!r} cannot name a dataset, split or language; "
                    "use letters, digits, '.', '_' and '-'"
                )
        card = cls(
            name=handle.spec.name,
            tokenizer=handle.tokenizer,
            tokenizer_fingerprint=handle.tokenizer_fingerprint,
            special_tokens=handle.special_tokens,
            fields=tuple(handle.spec.fields),
            labels=tuple(handle.spec.labels),
        )
        card.check_labels()
        return card

    @classmethod
    def read(cls, table: DeltaTable) -> DatasetCard:
        text = table.metadata().configuration.get(PROPERTY)
        if text is None:
            raise StoreFormatError(f"{table.table_uri} is not a dataset: no property {PROPERTY}")
        return cls.from_json(parse_json(text))

    def to_json(self) -> dict[str, Any]:
        labels = [asdict(label) for label in self.labels]
        return {
            "name": self.name,
            "tokenizer": self.tokenizer,
            "tokenizer_fingerprint": self.tokenizer_fingerprint,
            "special_tokens": self.special_tokens.to_json(),
            "fields": list(self.fields),
            "labels": labels,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> DatasetCard:
        labels = (LabelSpec(**{**x, "names": tuple(x["names"])}) for x in content["labels"])
        return cls(
            name=content["name"],
            tokenizer=content["tokenizer"],
            tokenizer_fingerprint=content["tokenizer_fingerprint"],
            special_tokens=SpecialTokens.from_json(content["special_tokens"]),
            fields=tuple(content["fields"]),
            labels=tuple(labels),
        )

    @property
    def path(self) -> str:
        return f"{self.name}/{self.folder}"

    @property
    def folder(self) -> str:
        """Folder of the table below the dataset's: readable, and unique by fingerprint."""
        last = self.tokenizer.rstrip("/").rsplit("/", 1)[-1]
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-.") or "tokenizer"
        return f"{readable}-{self.tokenizer_fingerprint[:12]}"

    def layout(self) -> TableLayout:
        labels = ((label.name, LABEL_TYPES[label.kind]) for label in self.labels)
        return TableLayout(
            schema=pa.schema([*EXAMPLE_COLUMNS, *labels]),
            partition_by=("split", "lang"),
            statistics=("seq",),
            plain=("example_id", "example_key", *VECTORS, "token_offsets"),
            nullable=(*NULLABLE_EXAMPLE_COLUMNS, *(label.name for label in self.labels)),
            description=(
                f"Parsebank's examples of {self.name} for the tokenizer {self.tokenizer}, with "
                f"the segments {', '.join(self.fields)}: one row per example"
            ),
            comments={**ABOUT_EXAMPLES, **{one.name: _about(one) for one in self.labels}},
            properties={PROPERTY: json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False)},
        )

    def check_labels(self) -> None:
        """Refuse labels that would hide a column; a table takes ``Head`` for ``head``."""
        taken = {name for name, _ in EXAMPLE_COLUMNS}
        for label in self.labels:
            if label.field not in (None, *self.fields):
                raise SpecError(
                    f"label {label.name!r} is about the field {label.field!r}; dataset "
                    f"{self.name!r} has the fields {', '.join(self.fields)}"
                )
            if label.name.casefold() in taken:
                raise SpecError(
                    f"a label cannot be called {label.name!r}: the name is taken, in upper or "
                    "lower case; choose another"
                )
            taken.add(label.name.casefold())

    def check_new(self) -> None:
        """Refuse labels that would hide an array of batches, before there is a table of them."""
        for label in self.labels:
            if label.name.casefold() in ("", *ADDED_COLUMNS):
                raise SpecError(
                    f"a label cannot be called {label.name!r}, which SQL could not tell from its "
                    "own columns; choose another"
                )
            matrix = label.name.split("(")[0] in MATRICES
            if matrix or label.name in _BATCH_NAMES or label.name.startswith(_BATCH_PREFIXES):
                raise SpecError(
                    f"a label cannot be called {label.name!r}: batches have an array of this name, "
                    "or may have; choose another"
                )

    def check_same(self, other: DatasetCard) -> None:
        for what in ("fields", "special_tokens"):
            if getattr(self, what) != getattr(other, what):
                raise SpecError(
                    f"dataset {self.name!r} has {what} {getattr(self, what)}, and rows came with "
                    f"{getattr(other, what)}; choose another dataset name"
                )
        if self.labels != other.labels:
            raise SpecError(
                f"dataset {self.name!r} has other labels than the rows that came: "
                f"{label_difference(self.labels, other.labels)}; read all its parts from one "
                "folder, "
                "so that they share their names, or choose another dataset name"
            )


_BATCH_NAMES: Final = {
    *("attention_mask", "token_type_ids", "special_tokens_mask", "segment_ids"),
    *("parents", "lengths", "dataset", "tokenizer", "token_ids", "token_starts", "token_words"),
    *("offset_mapping", "piece_ids", "shown_characters", "first_pieces", "is_max_context"),
    *("example_index", "choice_index", "window_index", "word_states"),
}
"""Arrays of batches that are not columns of the table."""

_BATCH_PREFIXES: Final = ("node_", "phrase_", "tree_")


def label_difference(ours: Sequence[LabelSpec], theirs: Sequence[LabelSpec]) -> str:
    """The difference between two lists of labels: other columns, or other names in one of them.

    >>> ours = [LabelSpec("intent", "class", ("buy", "sell"))]
    >>> label_difference(ours, [LabelSpec("intent", "class", ("buy", "rent"))])
    "intent: 'rent' came new, 'sell' did not come"
    """
    if _columns(ours) != _columns(theirs):
        return f"{_columns(ours)} here, {_columns(theirs)} came"
    pairs = zip(ours, theirs, strict=True)
    return "; ".join(f"{x.name}: {_of_names(x.names, y.names)}" for x, y in pairs if x != y)


def _columns(labels: Sequence[LabelSpec]) -> str:
    described = (f"{x.name} ({x.kind}{f' of {x.field}' if x.field else ''})" for x in labels)
    return ", ".join(described) or "none"


def _about(label: LabelSpec) -> str:
    of = f" of {label.field}" if label.field else ""
    names = f": {_some_of(label.names)}" if label.names else ""
    return f"Label{of}, of kind {label.kind}{names}; null where there is none"


def _of_names(ours: Sequence[str], theirs: Sequence[str]) -> str:
    new = [name for name in theirs if name not in ours]
    missing = [name for name in ours if name not in theirs]
    said = [
        *([f"{_some_of(new)} came new"] if new else []),
        *([f"{_some_of(missing)} did not come"] if missing else []),
    ]
    return ", ".join(said) or "the same names in another order"


def _some_of(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:SHOWN_NAMES]))
    return shown + (f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else "")
