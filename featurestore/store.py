"""The feature store: parses, datasets, drops and fingerprints below one location."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from featurestore.records import DatasetInfo
from featurestore.tables.drops import DropTable
from featurestore.tables.features import FeatureTables
from featurestore.tables.file_cache import file_cache
from featurestore.tables.fingerprints import FingerprintTable
from featurestore.tables.parses import ParseTable
from featurestore.tables.pins import PinTable
from featurestore.tables.root import StoreRoot
from syntax.drawing.page import listing, plain, short
from syntax.errors import without_passwords

if TYPE_CHECKING:
    import duckdb

    from featurestore.dataset.dataset import FeatureDataset


class FeatureStore:
    """A facade over the tables of a store.

    A store may be open in many threads and processes at once. Close it, or use it as a context
    manager, to commit what is buffered. A pickled store is opened again where it is loaded.

    Args:
        refresh_seconds: Writes of other processes may stay unseen for this long.
        reopen: Opens the same store in another process.
    """

    def __init__(
        self,
        root: StoreRoot,
        parses: ParseTable,
        refresh_seconds: float,
        reopen: Callable[[], FeatureStore],
    ) -> None:
        self._reopen = reopen
        self.root = root
        self.uri = root.location.uri
        self.parses = parses
        self.fingerprints = FingerprintTable(root)
        self.features = FeatureTables(root, self.fingerprints, refresh_seconds)
        self.drops = DropTable(root)
        self.pins = PinTable(root)

    def __reduce__(self) -> tuple[Callable[[], FeatureStore], tuple[()]]:
        return self._reopen, ()

    def __repr__(self) -> str:
        return plain("FeatureStore", {"uri": without_passwords(self.uri)})

    def _repr_html_(self) -> str:
        rows = [
            (*names, info.version, part.split, part.lang, part.rows)
            for info in self.datasets()
            for names in [(info.name, info.tokenizer, short(info.tokenizer_fingerprint))]
            for part in info.parts
        ]
        columns = (
            "dataset",
            "tokenizer",
            "fingerprint",
            "version",
            "split",
            "language",
            "examples",
        )
        return listing(f"FeatureStore {without_passwords(self.uri)}", columns, rows)

    def describe(self, fingerprint: str, kind: str, content: Mapping[str, Any]) -> bool:
        """Record what a fingerprint stands for; ``True`` if it is new.

        ``kind`` is ``parser``, ``tokenizer``, or a word of your own. ``content`` is plain JSON; a
        parser's ``name`` makes it selectable by that name.
        """
        return self.fingerprints.describe(fingerprint, kind, content)

    def resolve(self, fingerprint: str) -> dict[str, Any]:
        """The content that a fingerprint stands for.

        Raises:
            UnknownKeyError: It was never described.
        """
        return self.fingerprints.resolve(fingerprint)

    def datasets(self) -> list[DatasetInfo]:
        """Every dataset with its splits, languages and sizes, at its newest version."""
        return self.features.infos()

    def dataset(
        self,
        name: str,
        tokenizer: str | None = None,
        split: str | None = None,
        lang: str | Collection[str] | None = None,
        version: int | str | None = None,
        parser: str | Collection[str] | None = None,
    ) -> FeatureDataset:
        """A dataset pinned at a version.

        Args:
            name: Name of the dataset.
            tokenizer: Name of the tokenizer, its folder or the last part of that, or its
                fingerprint (a prefix of six digits will do); needed when there are several.
            split: Needed when there are several; ``"*"`` reads all of them, one after the other.
            lang: Only this language, or these: ``"en,fr"`` or ``["en", "fr"]``, at least one.
                All of them by default; ``"*"`` asks for every one, so that ``parser`` may leave
                none out.
            version: Version of the table, or the name of a pin; the newest by default.
            parser: Name or fingerprint (prefix) of the parser; needed when one language was
                parsed by several. For each language its own: ``"en:NAME,fr:NAME"``, or a mapping.
                One name alone chooses the examples that it parsed, in whatever language.
        """
        from featurestore.dataset.dataset import open_dataset

        return open_dataset(self, name, tokenizer, split, lang, version, parser)

    def sql(
        self, query: str, params: list[Any] | dict[str, Any] | None = None
    ) -> duckdb.DuckDBPyRelation:
        """Query the store's newest version with DuckDB; nothing is written, no other file is read.

        Args:
            query: One SELECT over the views ``parses``, ``sentences``, ``words``, ``examples``,
                ``drops`` and ``fingerprints``, or a graph pattern, ``pattern { V -[obj]-> O }``;
                docs/reference/store.md has columns, functions and the syntax of patterns.
            params: Values of ``?`` or ``$name`` in the query.

        Raises:
            duckdb.Error: DuckDB cannot run it, or it asks for files outside the store.
        """
        from featurestore.sql.session import run_query

        return run_query(self, query, params)

    def compact(self) -> None:
        """Join small files, lay examples in the order of their split, remove repeated rows.

        Older versions stay readable: `featurestore.maintenance.vacuum` deletes their files.
        """
        self.parses.compact()
        self.features.compact()
        self.drops.table.compact()
        self.fingerprints.table.compact()
        self.pins.table.compact()

    def flush(self) -> None:
        """Commit buffered parses; if that fails, they stay buffered."""
        self.parses.flush()

    def close(self) -> None:
        """Commit buffered parses and end the background thread."""
        self.parses.close()

    def __enter__(self) -> FeatureStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(
    uri: str | Path,
    *,
    storage_options: Mapping[str, str] | None = None,
    cache_items: int = 10_000,
    buffer_rows: int = 256,
    buffer_seconds: float = 0.2,
    refresh_seconds: float = 0.0,
    cache_dir: str | Path | None = None,
    cache_bytes: int | None = None,
) -> FeatureStore:
    """Open a store; its folder is made at the first write.

    Args:
        uri: A local folder, or a URL such as ``s3://bucket/prefix``.
        storage_options: Options of the object store, as ``deltalake`` takes them
            (``AWS_ENDPOINT_URL``, ...); credentials may also come from the environment.
        cache_items: Decoded parses kept in memory.
        buffer_rows: Buffered parses (`ParseTable.put`) that start a commit.
        buffer_seconds: Age of the oldest buffered parse that starts a commit: a crash loses at
            most what was put without ``durable`` within this time, and the running commit.
        refresh_seconds: Writes of other processes may stay unseen for this long; 0 looks at the
            log whenever a key is not found.
        cache_dir: Folder of the copies that streams over a remote store make of its files; by
            default ``PARSEBANK_CACHE_DIR``, or ``parsebank/shards`` among the user's caches.
        cache_bytes: Bytes of all copies, beyond which those used longest ago go; 0 for none. By
            default ``PARSEBANK_CACHE_BYTES``, or 10 GB.

    Example:
        >>> store = open_store("./parsebank-data")          # doctest: +SKIP
        >>> store.sql("select count(*) from words").fetchall()  # doctest: +SKIP
    """
    root = StoreRoot(uri, storage_options, file_cache(cache_dir, cache_bytes))
    options: dict[str, Any] = {
        "cache_items": cache_items,
        "buffer_rows": buffer_rows,
        "buffer_seconds": buffer_seconds,
        "refresh_seconds": refresh_seconds,
    }
    reopen = partial(
        open_store,
        root.location.uri,
        storage_options=storage_options,
        cache_dir=cache_dir,
        cache_bytes=cache_bytes,
        **options,
    )
    return FeatureStore(root, ParseTable(root, **options), refresh_seconds, reopen)
