"""A small dataset of relations in GATE's format, made from real parses and read by the real reader.

The relation of two words depends on nothing but the tree: what the head of the subject is.
"""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np

from clients.benchmarks import BENCHMARKS
from featurestore import DatasetHandle, ExampleRow, FeatureStore
from service.parsers import Limits, ParseInput, Parser
from service.tokenizers import LoadedTokenizer
from syntax.alignment import segment_features
from syntax.conllu import parse_conllu, parse_from_sentences
from syntax.examples import Example
from syntax.fingerprint import fingerprint
from syntax.parse import Parse
from tests.trainer.tagged import sentences

ACE = BENCHMARKS["ace"]
NAME = "related"
PARSER = "cd" * 16
CONTENT = ("ADJ", "ADV", "NOUN", "PRON", "PROPN", "VERB")
RELATIONS = {"VERB": "of-verb", "NOUN": "of-noun", "PROPN": "of-noun", "PRON": "of-noun"}


def write_related(folder: Path, parser: Parser, pairs: int = 2) -> None:
    """Files as the reader expects them: half of the sentences each."""
    (folder / "English").mkdir(parents=True)
    parses = [parser.parse(ParseInput("raw", line), Limits()) for line in sentences()]
    whole = [parse for parse in parses if len(parse.sentence_start) == 1]
    for split, chosen in (("train", whole[::2]), ("dev", whole[1::2])):
        records = [record for parse in chosen for record in _records(parse, pairs)]
        (folder / f"English/{split}.json").write_text(json.dumps(records), "utf-8")


def _records(parse: Parse, pairs: int) -> list[dict[str, object]]:
    words = [at for at, upos in enumerate(parse.upos) if upos in CONTENT and parse.head[at]]
    return [_record(parse, *pair) for pair in list(permutations(words, 2))[:pairs]]


def _record(parse: Parse, subject: int, object_: int) -> dict[str, object]:
    relation = RELATIONS.get(str(parse.upos[int(parse.head[subject]) - 1]), "no_relation")
    return {
        "token": list(parse.form),
        "stanford_pos": list(parse.upos),
        "stanford_ner": ["PER" if upos == "PRON" else "O" for upos in parse.upos],
        "stanford_deprel": list(parse.deprel),
        "stanford_head": [str(head) for head in parse.head],
        "relation": relation,
        **{"subj_type": str(parse.upos[subject]), "subj_start": subject, "subj_end": subject},
        **{"obj_type": str(parse.upos[object_]), "obj_start": object_, "obj_end": object_},
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
    handle = DatasetHandle(
        spec, tokenizer.name, tokenizer.fingerprint, tokenizer.special_tokens, matrices=False
    )
    store.describe(PARSER, "parser", {"name": "gold"})
    items = [item for item in ACE.read(folder, split, lang) if isinstance(item, Example)]
    rows = [_row(tokenizer, seq, item) for seq, item in enumerate(items)]
    store.features.append(handle, rows)


def _row(tokenizer: LoadedTokenizer, seq: int, item: Example) -> ExampleRow:
    parse = parse_from_sentences(list(parse_conllu(item.segments[0].conllu or "")))
    features = segment_features(parse, *tokenizer.encode(parse.text))
    return ExampleRow(
        seq,
        item.example_id,
        fingerprint([item.example_id, parse.text]),
        PARSER,
        (parse.text,),
        (fingerprint([PARSER, parse.text]),),
        (features,),
        item.labels,
        (np.stack([parse.word_start, parse.word_end], axis=1).astype(np.int32),),
    )
