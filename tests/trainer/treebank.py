"""Small treebanks in a store: gold trees, and the same as if a parser had made them."""

from __future__ import annotations

from typing import Final

from featurestore import ExampleRow, FeatureStore, ParseRecord
from service.tokenizers import LoadedTokenizer
from syntax.alignment import segment_features
from syntax.examples import DatasetSpec
from syntax.fingerprint import fingerprint
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from tests.trainer.rows import handle_of
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES

NAME: Final = "treebank"

DOG: Final = """\
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2\tdog\tdog\tNOUN\tNN\t_\t3\tnsubj\t_\t_
3\tbarks\tbark\tVERB\tVBZ\t_\t0\troot\t_\t_

"""
GO: Final = "1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n\n"
EATEN: Final = """\
1\tIt\tit\tPRON\tPRP\t_\t3\tnsubj:pass\t_\t_
2\twas\tbe\tAUX\tVBD\t_\t3\taux:pass\t_\t_
3\teaten\teat\tVERB\tVBN\t_\t0\troot\t_\t_
4\tby\tby\tADP\tIN\t_\t5\tcase\t_\t_
5\tcats\tcat\tNOUN\tNNS\t_\t3\tobl:agent\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

"""
DU: Final = """\
1\tVenez\tvenir\tVERB\tV\t_\t0\troot\t_\t_
2-3\tdu\t_\t_\t_\t_\t_\t_\t_\t_
2\tde\tde\tADP\tP\t_\t4\tcase\t_\t_
3\tle\tle\tDET\tD\t_\t4\tdet\t_\t_
4\tparc\tparc\tNOUN\tN\t_\t1\tobl\t_\t_

"""
"""The words *de* and *le* share the characters of ``du``, so *le* has no piece."""

TREES: Final = (DOG, GO, EATEN, DU, GO + DOG, EATEN + GO)


def append_treebank(
    store: FeatureStore,
    tokenizer: LoadedTokenizer,
    split: str,
    trees: tuple[str, ...] = TREES,
    silver: tuple[int, ...] = (),
    name: str = NAME,
    keep_parses: bool = True,
    lang: str = "en",
) -> None:
    """Write some CoNLL-U as a split; the examples of the ``silver`` numbers are not gold."""
    spec = DatasetSpec(name, split, lang, ("text",), (), "gold")
    made_by = "gold" if len(silver) < len(trees) else "another/parser"
    parser = fingerprint([made_by])
    store.describe(parser, "parser", {"name": made_by})
    rows, records = [], []
    for seq, conllu in enumerate(trees):
        mode = "raw" if seq in silver else "gold"
        parse = parse_from_sentences(list(parse_conllu(conllu)))
        key = fingerprint([mode, conllu])
        records.append(ParseRecord(key, "en", parser, mode, parse))
        features = segment_features(parse, *tokenizer.encode(parse.text))
        row_key = fingerprint([split, seq, key])
        made = (parser, (parse.text,), (key,), (features,))
        rows.append(ExampleRow(seq, f"{split}-{seq}", row_key, *made))
    if keep_parses:
        store.parses.append(list({record.key: record for record in records}.values()))
    store.features.append(handle_of(spec, tokenizer), rows)


def recipe(*settings: str) -> Recipe:
    """A short run of the parser on a tiny encoder without syntax in it."""
    common = [
        *("task.name=dependency.v1", f"data.dataset={NAME}", "model.use_syntax=false"),
        *("batch_size=3", "max_steps=4", "evaluate_every=4", "log_every=1", "warmup_steps=0"),
        *("task.parser.arc=32", "task.parser.relation=16", "max_length=32"),
    ]
    return with_settings(RECIPES["sample"](), [*common, *settings])
