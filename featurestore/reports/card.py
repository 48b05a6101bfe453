"""The dataset card of an export, in Markdown that the Hugging Face hub reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from featurestore.dataset.dataset import FeatureDataset
from featurestore.tables.schema import TOKENS, VECTORS
from syntax.labels import field_of, is_local

_COLUMNS = {
    "example_id": "name of the example in its benchmark",
    "texts": "its segments: {fields}",
    "parse_keys": "keys of the segments' parses in the store",
    "segment_lengths": "pieces of each segment; the vectors below hold them end to end",
    "input_ids": "wordpieces, untruncated, without special tokens",
    "head": "the tree over pieces, 0-based within the segment; -1 at the root of a sentence, -2 "
    "for a piece without a word",
    "word_ids": "word of each piece, 0-based within the segment; -1 for none",
    "upos": "tag of its word",
    "deprel": "relation of its word",
    "sentence_ids": "sentence of each piece",
    "offsets": "characters of each piece in its segment's text",
    "token_counts": "tokens that the benchmark has for each segment; 0 where it has running text, "
    "null where nobody recorded them",
    "token_offsets": "characters of each of these tokens in its segment's text",
}


def dataset_card(data: FeatureDataset) -> str:
    return "\n".join(
        (*_head(data), *_parts(data), *_columns(data), *_makers(data), *_missing(data), "")
    )


def _head(data: FeatureDataset) -> Iterator[str]:
    langs = sorted({lang for _, lang in data.parts})
    yield from ("---", f"pretty_name: {json.dumps(data.name)}", "language:")
    # YAML takes a bare `no` for false, and a bare 2020 for a number.
    yield from (f"- {json.dumps(lang)}" for lang in langs)
    yield from ("license: other", f"license_name: {json.dumps(data.spec.licence or 'unknown')}")
    yield from ("tags:", "- universal-dependencies", "configs:")
    for lang in langs:
        yield from (f"- config_name: {json.dumps(lang)}", "  data_files:")
        for split in sorted(split for split, of in data.parts if of == lang):
            # The library's names of splits are of letters, digits, "_" and ".".
            yield f"  - split: {json.dumps(split.replace('-', '_'))}"
            yield f"    path: {json.dumps(f'data/{lang}/{split}-?????-of-?????.parquet')}"
    yield from ("---", "", f"# {data.name}, with Universal Dependencies", "")
    yield "Exported by Parsebank: dependency trees aligned to wordpieces."


def _parts(data: FeatureDataset) -> Iterator[str]:
    rows = Counter(data.rows.parts[part] for part in data.rows.part.tolist())
    yield from ("", "| split | language | examples |", "|---|---|---|")
    yield from (f"| {split} | {lang} | {rows[split, lang]} |" for split, lang in data.parts)
    yield from ("", f"Source: {data.spec.source or 'not recorded'}  ")
    yield f"Licence of the data: {data.spec.licence or 'not recorded'}"


def _columns(data: FeatureDataset) -> Iterator[str]:
    yield from ("", "## Columns", "")
    for name in ("example_id", "texts", "parse_keys", "segment_lengths", *VECTORS, *TOKENS):
        yield f"* `{name}`: {_COLUMNS[name].format(fields=', '.join(data.card.fields))}"
    for label in data.labels:
        names = f": {', '.join(label.names)}" if label.names else ""
        of = f" of {data.card.fields[field_of(label, data.card.fields)]}" if is_local(label) else ""
        yield f"* `{label.name}`: label ({label.kind}{of}){names}"


def _makers(data: FeatureDataset) -> Iterator[str]:
    card = data.card
    yield from ("", "## Made by", "")
    yield f"* tokenizer {card.tokenizer}, fingerprint `{card.tokenizer_fingerprint}`"
    for fingerprint, content in data.parsers.items():
        treebank = f", treebank {content['treebank']}" if content.get("treebank") else ""
        licence = f", licence {content.get('licence') or 'not recorded'}"
        name = content.get("name", "unknown")
        yield f"* parser {name}{treebank}{licence}, fingerprint `{fingerprint}`"
    yield f"* version {data.version} of the table, examples `{data.fingerprints['examples']}`"


def _missing(data: FeatureDataset) -> Iterator[str]:
    yield from ("", "## Missing", "")
    if not data.report:
        yield "Every example is here."
    for reason, count in data.report.items():
        yield f"* {count} examples: {reason}"
