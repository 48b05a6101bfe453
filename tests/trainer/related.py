"""A small dataset of relations in GATE's format, made from real parses and read by the real reader.

The relation of two words depends on nothing but the tree: whether one is the head of the other.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np

from clients.benchmarks import BENCHMARKS
from featurestore import FeatureStore, ParseRecord
from service.parsers import Limits, ParseInput, Parser
from service.tokenizers import LoadedTokenizer
from syntax.examples import Example
from syntax.matrices import tree_distance
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from syntax.trees.parse import Parse
from tests.trainer.rows import handle_of, row_of
from tests.trainer.tagged import sentences

ACE = BENCHMARKS["ace"]
NAME = "related"
PARSER = "cd" * 16
CONTENT = ("ADJ", "ADV", "NOUN", "PRON", "PROPN", "VERB")


def write_related(folder: Path, parser: Parser, lines: Sequence[str] = (), pairs: int = 2) -> None:
    """Files as the reader expects them: half of the sentences each."""
    (folder / "English").mkdir(parents=True)
    given = lines or sentences()
    parses = [parser.parse(ParseInput("raw", line), Limits()) for line in given]
    whole = [parse for parse in parses if len(parse.sentence_start) == 1]
    for split, chosen in (("train", whole[::2]), ("dev", whole[1::2])):
        records = [record for parse in chosen for record in _records(parse, pairs)]
        (folder / f"English/{split}.json").write_text(json.dumps(records), "utf-8")


def _records(parse: Parse, pairs: int) -> list[dict[str, object]]:
    """As many neighbours as others."""
    distance = tree_distance(np.asarray(parse.head) - 1)
    words = [at for at, upos in enumerate(parse.upos) if upos in CONTENT]
    near, far = [], []
    for subject, object_ in permutations(words, 2):
        (near if distance[subject, object_] == 1 else far).append((subject, object_))
    count, draw = min(len(near), len(far), pairs), random.Random(len(parse.form))
    chosen = [(*pair, "linked") for pair in draw.sample(near, count)]
    chosen += [(*pair, "no_relation") for pair in draw.sample(far, count)]
    return [_record(parse, *one) for one in chosen]


def _record(parse: Parse, subject: int, object_: int, relation: str) -> dict[str, object]:
    return {
        "token": list(parse.form),
        "stanford_pos": list(parse.upos),
        "stanford_ner": ["PER" if upos == "PRON" else "O" for upos in parse.upos],
        "stanford_deprel": list(parse.deprel),
        "stanford_head": [str(head) for head in parse.head],
        "relation": relation,
        "subj_type": str(parse.upos[subject]),
        "subj_start": subject,
        "subj_end": subject,
        "obj_type": str(parse.upos[object_]),
        "obj_start": object_,
        "obj_end": object_,
    }


def append_related(
    store: FeatureStore,
    tokenizer: LoadedTokenizer,
    folder: Path,
    split: str,
    *,
    lang: str = "en",
) -> None:
    """The examples of a split, with the trees of the files."""
    spec = ACE.spec(split, lang, path=folder, name=NAME)
    store.describe(PARSER, "parser", {"name": "gold"})
    items = [item for item in ACE.read(folder, split, lang) if isinstance(item, Example)]
    parses = [_parse(item) for item in items]
    made = enumerate(zip(items, parses, strict=True))
    rows = [
        row_of(tokenizer, PARSER, seq, item.example_id, [parse], item.labels, tokens=True)
        for seq, (item, parse) in made
    ]
    # Several relations are of one text.
    keyed = {row.parse_keys[0]: parse for row, parse in zip(rows, parses, strict=True)}
    store.parses.append(
        [ParseRecord(key, lang, PARSER, "gold", parse) for key, parse in keyed.items()]
    )
    store.features.append(handle_of(spec, tokenizer), rows)


def _parse(item: Example) -> Parse:
    return parse_from_sentences(list(parse_conllu(item.segments[0].conllu or "")))
