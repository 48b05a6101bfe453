"""Stored parses by key: get one, or delete it with every example that uses it."""

from __future__ import annotations

from dataclasses import dataclass

from featurestore import FeatureStore, ParseRecord
from featurestore.maintenance.delete import Deleted, delete_parses, texts_of, unknown_parses
from service.jobs.manager import JobManager
from service.pipeline.adhoc import AdhocDataset
from service.pipeline.records import FeatureAnswer, ItemFeatures, MadeBy
from syntax.errors import UnknownKeyError


@dataclass(frozen=True)
class StoredParses:
    """Access to stored parses by key. Safe for threads; every method may block.

    Attributes:
        adhoc: The dataset whose commits pause during a deletion.
        jobs: The jobs whose uploads may hold a text too.
    """

    store: FeatureStore
    adhoc: AdhocDataset
    jobs: JobManager

    def get(self, key: str) -> FeatureAnswer:
        """The parse under a key, as the answer to its text."""
        record = self._record(key)
        item = ItemFeatures(key, cached=True, parse=record.parse)
        return FeatureAnswer(self._made_by(record.parser), record.lang, None, [item])

    def jobs_holding(self, key: str) -> list[str]:
        """The jobs whose uploads hold the text of a parse."""
        text, lang = texts_of(self.store, [key])[key]
        return self.jobs.holding(text, lang)

    def delete(self, key: str, dry_run: bool) -> Deleted:
        """Delete a parse and the examples that use it."""
        if dry_run:
            self.adhoc.flush()  # waiting rows would be deleted too
            return delete_parses(self.store, [key], dry_run)
        with self.adhoc.paused():
            return delete_parses(self.store, [key])

    def _record(self, key: str) -> ParseRecord:
        parses = self.store.parses
        record = parses.get_many([key]).get(key)
        if record is None:
            parses.refresh()
            record = parses.get_many([key]).get(key)
        if record is None:
            raise unknown_parses([key])
        return record

    def _made_by(self, fingerprint: str) -> MadeBy:
        try:
            name = self.store.resolve(fingerprint).get("name", fingerprint)
        except UnknownKeyError:
            name = fingerprint
        return MadeBy(name, fingerprint)
