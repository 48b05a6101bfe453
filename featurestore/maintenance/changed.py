"""Examples whose content changed under their name."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from featurestore.sql.session import named_faults
from featurestore.store import FeatureStore

_QUERY: Final = """
    select dataset, tokenizer, split, lang, parser, example_id, count(distinct example_key)
    from examples group by all having count(distinct example_key) > 1 order by all
"""


@dataclass(frozen=True)
class ChangedExample:
    """One name with several contents (``rows``), each of which readers of the dataset see.

    A dataset is appended to and never changed, so that a version stays what it is: text, labels or
    options that come again under a known ``example_id``, but different, are one more example.
    """

    dataset: str
    tokenizer: str
    split: str
    lang: str
    parser: str
    example_id: str
    rows: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@named_faults()
def changed_examples(store: FeatureStore) -> list[ChangedExample]:
    return [ChangedExample(*row) for row in store.sql(_QUERY).fetchall()]
