"""Stored parses by key: shown, and deleted with every example that uses them."""

from __future__ import annotations

from dataclasses import dataclass

from featurestore import FeatureStore, ParseRecord
from featurestore.delete import Deleted, delete_parses
from service.jobs import JobManager
from service.pipeline.adhoc import AdhocDataset
from service.pipeline.records import FeatureAnswer, ItemFeatures, MadeBy
from syntax.errors import UnknownKeyError


@dataclass(frozen=True)
class StoredParses:
    """The parses of a store, for who has their keys. Safe for threads; every method may wait.

    Attributes:
        store: The store.
        adhoc: Its rows wait while parses are deleted.
        jobs: Their uploads may hold a text too.
    """

    store: FeatureStore
    adhoc: AdhocDataset
    jobs: JobManager

    def get(self, key: str) -> FeatureAnswer:
        """The parse under a key, as the answer to its text.

        Raises:
            SpecError: The key is not 32 hexadecimal digits.
            UnknownKeyError: The store has no such parse.
            StoreError: The store cannot be read.
        """
        record = self._record(key)
        item = ItemFeatures(key, cached=True, parse=record.parse)
        return FeatureAnswer(self._made_by(record.parser), record.lang, None, [item])

    def delete(self, key: str, dry_run: bool) -> tuple[Deleted, list[str]]:
        """Delete a parse and the examples that use it; the jobs whose uploads hold its text.

        Raises:
            SpecError, UnknownKeyError, StoreError: As `featurestore.delete.delete_parses`.
            JobDatabaseError: Nothing was deleted.
        """
        # What can fail comes first: a deletion that is done must be answered.
        record = self._record(key)
        jobs = self.jobs.holding(record.parse.text, record.lang)
        with self.adhoc.at_rest():
            return delete_parses(self.store, [key], dry_run), jobs

    def _record(self, key: str) -> ParseRecord:
        self.store.parses.refresh()
        record = self.store.parses.get_many([key]).get(key)
        if record is None:
            raise UnknownKeyError(
                f"the store has no parse under {key}; keys are in the answers of /parse", keys=[key]
            )
        return record

    def _made_by(self, fingerprint: str) -> MadeBy:
        try:
            name = self.store.resolve(fingerprint).get("name", fingerprint)
        except UnknownKeyError:
            name = fingerprint
        return MadeBy(name, fingerprint)
