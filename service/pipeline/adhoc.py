"""The dataset ``adhoc``: the features of interactive requests.

The buffer's thread commits, so no answer waits for the disk.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from featurestore import DatasetHandle, ExampleRow, FeatureStore
from featurestore.tables.buffer import WriteBuffer
from service.logs import get_logger
from service.pipeline.records import FeatureAnswer, ItemFeatures
from service.tokenizers import LoadedTokenizer
from syntax import fingerprint
from syntax.batches import SegmentFeatures
from syntax.errors import InputError, StoreError
from syntax.examples import DatasetSpec

NAME: Final = "adhoc"
"""Dataset of single texts; examples of n texts go to ``adhoc-n``."""

SPLIT: Final = "parse"

COMMIT_ROWS: Final = 1_024

ROOM: Final = 2_000_000
"""Most wordpieces that may wait to be written, about 100 MB; further rows are dropped."""

ROW_WEIGHT: Final = 100

MOST_SEGMENTS: Final = 8
"""Most texts of an example, because each number of texts has its own table."""

REMEMBERED: Final = 50_000
"""Examples remembered as appended, which are skipped (10 MB)."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AdhocSegment:
    """One text of an example."""

    key: str
    lang: str
    parser: str
    text: str
    features: SegmentFeatures


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A row that waits for a commit; ``key`` is unique over all tables."""

    key: str
    segments: tuple[AdhocSegment, ...]
    tokenizer: LoadedTokenizer
    seq: int
    generation: int
    matrices: bool


class AdhocDataset:
    """Appends features to the dataset ``adhoc``. Safe for threads.

    A commit starts when the oldest row is ``commit_seconds`` old; at most ``room`` pieces wait.

    Attributes:
        counts: Rows so far by outcome: ``stored``, ``known`` (already in the table), ``full`` (the
            buffer was full), ``refused`` (by the table), ``deleted`` (a text was deleted before the
            commit; missing while zero).
    """

    def __init__(self, store: FeatureStore, commit_seconds: float, room: int = ROOM) -> None:
        self.counts: Counter[str] = Counter(
            dict.fromkeys(("stored", "known", "full", "refused"), 0)
        )
        self._store = store
        self._buffer: WriteBuffer[_Waiting] = WriteBuffer(
            self._commit, COMMIT_ROWS, commit_seconds, "adhoc rows", _weight, room
        )
        self._remembered: dict[str, None] = {}
        self._joint: dict[tuple[str, ...], str] = {}
        self._last_seq = 0
        self._lock = threading.Lock()
        self._committing = threading.Lock()

    def add(
        self,
        tokenizer: LoadedTokenizer,
        segments: Sequence[AdhocSegment],
        generation: int | None = None,
        matrices: bool = False,
    ) -> None:
        """Append one example with the next commit, unless it is stored. Never blocks.

        More than `MOST_SEGMENTS` segments are ignored. Rows whose parses were deleted are dropped,
        if ``generation`` (`ParseTable.generation` before the lookup of parses; by default now) has
        changed at the commit. Matrices are distance, depth and ancestor, as of backfills.
        """
        if len(segments) > MOST_SEGMENTS:
            return
        key = tokenizer.fingerprint + example_key([segment.key for segment in segments])
        with self._lock:
            if key in self._remembered:
                return
            self._last_seq = max(time.time_ns() // 1_000, self._last_seq + 1)
            if generation is None:
                generation = self._store.parses.generation
            waiting = _Waiting(
                key, tuple(segments), tokenizer, self._last_seq, generation, matrices
            )
            if not self._buffer.offer(waiting):
                self.counts["full"] += 1
                return
            self._remembered[key] = None
            if len(self._remembered) > REMEMBERED:
                del self._remembered[next(iter(self._remembered))]

    def add_answer(self, answer: FeatureAnswer, generation: int) -> None:
        if answer.tokenizer is None:
            return
        parser = answer.parser.fingerprint
        for item in answer.items:
            if isinstance(item, ItemFeatures) and item.pieces is not None:
                features = item.pieces.features
                segment = AdhocSegment(item.key, answer.lang, parser, item.parse.text, features)
                self.add(answer.tokenizer, [segment], generation, bool(item.matrices))

    def flush(self) -> None:
        self._buffer.flush()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Commit waiting rows, and no others during the block: for callers that delete texts."""
        self.flush()
        with self._committing:
            try:
                yield
            finally:
                self.forget()

    def forget(self) -> None:
        with self._lock:
            self._remembered.clear()

    def close(self) -> None:
        """Commit waiting rows; those that cannot be written are lost, but not their parses."""
        with suppress(StoreError, OSError):
            self._buffer.close()

    def _commit(self, rows: Sequence[_Waiting]) -> None:
        groups: dict[tuple[str, str, int, bool], list[_Waiting]] = {}
        for row in rows:
            lang, count = _langs(row.segments), len(row.segments)
            group = (row.tokenizer.fingerprint, lang, count, row.matrices)
            groups.setdefault(group, []).append(row)
        for (_, lang, count, matrices), group_rows in groups.items():
            try:
                handle = self._handle(group_rows[0].tokenizer, lang, count, matrices)
                with self._committing:
                    self._append(handle, group_rows)
            except InputError as error:
                self.counts["refused"] += len(group_rows)
                _log.warning("adhoc rows refused", rows=len(group_rows), reason=error.message)

    def _handle(
        self, tokenizer: LoadedTokenizer, lang: str, count: int, matrices: bool
    ) -> DatasetHandle:
        name = NAME if count == 1 else f"{NAME}-{count}"
        # A tokenizer has one table under all its names.
        card = self._store.features.card_of(name, tokenizer.fingerprint)
        return DatasetHandle(
            _spec(name, lang, count),
            tokenizer=tokenizer.lasting_name if card is None else card.tokenizer,
            tokenizer_fingerprint=tokenizer.fingerprint,
            special_tokens=tokenizer.special_tokens,
            matrices=matrices,
        )

    def _append(self, handle: DatasetHandle, rows: Sequence[_Waiting]) -> None:
        content = {"name": handle.tokenizer, **rows[0].tokenizer.content}
        self._store.describe(handle.tokenizer_fingerprint, "tokenizer", content)
        keys = dict.fromkeys(segment.key for row in rows for segment in row.segments)
        parses = self._store.parses.get_many(list(keys))
        now = self._store.parses.generation
        kept = [r for r in rows if r.generation == now or all(x.key in parses for x in r.segments)]
        gone = {row.key for row in rows} - {row.key for row in kept}
        if gone:
            # Their texts were deleted; they may come again.
            self.counts["deleted"] += len(gone)
            with self._lock:
                for key in gone:
                    self._remembered.pop(key, None)
        stored = self._store.features.append_new(handle, [self._row(row) for row in kept])
        self._store.parses.keep([*parses.values()])
        self.counts.update(stored=stored, known=len(kept) - stored)

    def _row(self, row: _Waiting) -> ExampleRow:
        keys = tuple(segment.key for segment in row.segments)
        return ExampleRow(
            seq=row.seq,
            example_id=",".join(keys),
            example_key=example_key(keys),
            parser=self._parser(tuple(segment.parser for segment in row.segments)),
            texts=tuple(segment.text for segment in row.segments),
            parse_keys=keys,
            segments=tuple(segment.features for segment in row.segments),
        )

    def _parser(self, parsers: tuple[str, ...]) -> str:
        """Parser of all texts, or a fingerprint that stands for several in their order."""
        if len(set(parsers)) == 1:
            return parsers[0]
        if parsers not in self._joint:
            known = self._store.fingerprints.all("parser")
            names = [known.get(parser, {}).get("name", parser) for parser in parsers]
            content = {"name": " + ".join(names), "parsers": list(parsers)}
            joint = fingerprint({"parsers": list(parsers)})
            self._store.describe(joint, "parser", content)
            self._joint[parsers] = joint
        return self._joint[parsers]


def example_key(parse_keys: Sequence[str]) -> str:
    return parse_keys[0] if len(parse_keys) == 1 else fingerprint({"parses": list(parse_keys)})


def _weight(row: _Waiting) -> int:
    return ROW_WEIGHT + sum(len(segment.features) for segment in row.segments)


def _langs(segments: Sequence[AdhocSegment]) -> str:
    langs = [segment.lang for segment in segments]
    return langs[0] if len(set(langs)) == 1 else "-".join(langs)


def _spec(name: str, lang: str, count: int) -> DatasetSpec:
    numbered = tuple(f"text_{number}" for number in range(1, count + 1))
    return DatasetSpec(
        name=name,
        split=SPLIT,
        lang=lang,
        fields=("text",) if count == 1 else numbered,
        source="texts sent to /parse and /features",
    )
