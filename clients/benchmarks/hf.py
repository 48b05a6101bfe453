"""Files that the Hugging Face library `datasets` reads: Parquet, and datasets saved to disk.

The library is an extra, and imported only here, when such a file is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from syntax.errors import InputError, SpecError
from syntax.examples import LabelKind
from syntax.extras import missing_extra


def parquet_file(path: Path) -> Any:
    """A Parquet file as a stream of rows (`datasets.IterableDataset`), not copied into a cache.

    Raises:
        MissingExtraError: The library is not installed.
        InputError: It cannot read the file.
    """
    datasets = _library(path)
    files = {"all": str(path)}
    try:
        return datasets.load_dataset("parquet", data_files=files, split="all", streaming=True)
    except Exception as error:  # whatever the library and Arrow raise for a damaged file
        raise _damaged(path, error) from error


def arrow_file(path: Path) -> Any:
    """One file of a saved dataset, mapped into memory.

    Raises:
        MissingExtraError, InputError: As `parquet_file`.
    """
    datasets = _library(path)
    try:
        return datasets.Dataset.from_file(str(path))
    except Exception as error:
        raise _damaged(path, error) from error


def rows_in(data: Any, path: Path) -> Iterator[Mapping[str, Any]]:
    """The rows of an open file.

    Raises:
        InputError: The file is damaged behind the rows that came.
    """
    try:
        yield from data
    except Exception as error:
        raise _damaged(path, error) from error


def class_names(data: Any) -> dict[str, tuple[str, ...]]:
    """Names of the classes of each column that has a ``ClassLabel``, or a list of them."""
    features = {column: _innermost(feature) for column, feature in (data.features or {}).items()}
    return {
        column: tuple(feature.names)
        for column, feature in features.items()
        if hasattr(feature, "names")
    }


def plain_dataset(data: Any) -> Any:
    """One split whose rows are Python's own values, not arrays or tensors.

    Raises:
        SpecError: The data is several splits.
    """
    if isinstance(data, dict):
        names = ", ".join(map(str, data))
        raise SpecError(
            f"the data is a {type(data).__name__} of the splits {names}; pass one of them, such as "
            f"data[{next(iter(data), 'train')!r}]"
        )
    transformed = getattr(data, "format", {}).get("type") == "custom"
    return data if transformed else data.with_format(None)


def kind_of(feature: Any) -> LabelKind:
    """What a column of this feature holds, as a label."""
    if hasattr(_innermost(feature), "names"):
        return "class" if hasattr(feature, "names") else "tags"
    return "float" if str(getattr(feature, "dtype", "")).startswith("float") else "class"


def _innermost(feature: Any) -> Any:
    if isinstance(feature, list):
        return feature[0]
    return getattr(feature, "feature", feature)


def _library(path: Path) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise missing_extra(f"{path.name} is read by the library `datasets`", "hf") from error
    return datasets


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be read: {error}; fetch or write it again", path=str(path))
