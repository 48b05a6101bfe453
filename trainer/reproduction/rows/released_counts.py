"""The rules of releases, counted on real data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from clients.benchmarks import BENCHMARKS
from clients.client.results import ItemError, ParsedItem
from syntax.examples import Example
from syntax.strict_json import parse_json
from syntax.trees.conllu import read_conllu
from syntax.trees.sentence import Sentence
from trainer.reproduction import released_rules as rules
from trainer.reproduction.row import Size, Source
from trainer.reproduction.rows.treebanks import ENGLISH, OTHERS, TOKENIZER
from trainer.reproduction.trial import Trial

XNLI: Final = Source("benchmarks/xnli", "XNLI, files of XTREME: dev-en.tsv")
PAWSX: Final = Source("benchmarks/pawsx", "PAWS-X, files of XTREME: dev-{en,fr}.tsv")
WIKIANN: Final = Source("benchmarks/wikiann", "WikiAnn (PAN-X), files of XTREME: dev-en.tsv")
TYDIQA: Final = Source("benchmarks/tydiqa", "TyDi QA GoldP, English, in the format of SQuAD")
UNCASED: Final = Source("tokenizers/bert-base-uncased", "google-bert/bert-base-uncased, vocab.txt")

MOST: Final[Mapping[Size, int]] = {"small": 1000}
"""Most items of a benchmark that are read; all of them where a size has no number."""

_AT_ONCE: Final = 128

Count = tuple[int, int]
"""Items that it happens to, and all items."""


class RealData:
    """The data of the trial, each part read and parsed once."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._counts: dict[tuple[str, str], int] = {}

    def folder(self, source: Source) -> Path:
        return self.trial.data / source.path

    def examples(self, name: str, source: Source, lang: str = "en") -> list[Example]:
        read = BENCHMARKS[name].read(self.folder(source), "dev", lang)
        items = islice(read, MOST.get(self.trial.size))
        return [item for item in items if isinstance(item, Example)]

    def texts(self, name: str, source: Source, lang: str = "en") -> list[str]:
        segments = chain.from_iterable(one.segments for one in self.examples(name, source, lang))
        return [segment.text or "" for segment in segments]

    def sentences(self, treebank: Source, split: str) -> list[Sentence]:
        """The gold sentences of a split; none where the treebank has no such split."""
        files = self.folder(treebank).glob(f"*-ud-{split}.conllu")
        return [sentence for path in sorted(files) for sentence in read_conllu(path)]

    def every(self, split: str) -> Iterator[Sentence]:
        for treebank in (ENGLISH, *OTHERS.values()):
            yield from self.sentences(treebank, split)

    def pieces(self, form: str, tokenizer: Source = TOKENIZER) -> list[str]:
        found: list[str] = self._tokenizers[tokenizer.path].tokenize(form)
        return found

    def count(self, form: str, tokenizer: Source = TOKENIZER) -> int:
        """Count the wordpieces of a word, remembered; 1, the unknown one, of a word without any."""
        key = (form, tokenizer.path)
        if key not in self._counts:
            self._counts[key] = len(self.pieces(form, tokenizer)) or 1
        return self._counts[key]

    @cached_property
    def _tokenizers(self) -> Mapping[str, Any]:
        from transformers import AutoTokenizer

        return {
            one.path: AutoTokenizer.from_pretrained(str(self.folder(one)), local_files_only=True)
            for one in (TOKENIZER, UNCASED)
        }

    @cached_property
    def xnli(self) -> list[ParsedItem]:
        parsed = self._parsed("texts", self.texts("xnli", XNLI), "raw")
        return [item for item in parsed if isinstance(item, ParsedItem)]

    @cached_property
    def wikiann(self) -> list[tuple[Example, ParsedItem]]:
        examples = self.examples("wikiann", WIKIANN)
        tokens = [list(one.segments[0].tokens or ()) for one in examples]
        parsed = zip(examples, self._parsed("tokens", tokens, "retokenize"), strict=True)
        return [(one, item) for one, item in parsed if isinstance(item, ParsedItem)]

    def _parsed(self, kind: str, inputs: Sequence[Any], mode: str) -> list[ParsedItem | ItemError]:
        from clients.client.client import Client

        common = {"lang": "en", "mode": mode, "store": False}
        found: list[ParsedItem | ItemError] = []
        store = str(self.trial.folder / "service")
        with Client.embedded(store, request_deadline_seconds=600) as client:
            for start in range(0, len(inputs), _AT_ONCE):
                options: dict[str, Any] = {kind: inputs[start : start + _AT_ONCE], **common}
                found += client.parse(None, **options).items
        return found


# What the releases do


def several_sentences(data: RealData) -> Count:
    """Texts of several sentences, which are given to the parser as one."""
    return sum(len(one.parse.sentence_first_word) > 1 for one in data.xnli), len(data.xnli)


def quoted(data: RealData) -> Count:
    """Texts that reach the parser with the quotation marks of CSV."""
    texts = data.texts("pawsx", PAWSX, "fr")
    return sum(rules.written_by_csv(text) != text for text in texts), len(texts)


def short_pairs(data: RealData) -> Count:
    """Pairs of less than 128 pieces, on the first of which an assertion fails."""
    texts = data.texts("xnli", XNLI)
    pairs = zip(texts[::2], texts[1::2], strict=True)
    short = sum(sum(len(data.pieces(text)) for text in pair) + 3 < 128 for pair in pairs)
    return short, len(texts) // 2


def token_spans(tokens: Sequence[str]) -> list[rules.Span]:
    """Places of tokens that single spaces join."""
    starts = [sum(len(one) + 1 for one in tokens[:number]) for number in range(len(tokens))]
    return [(start, start + len(one)) for start, one in zip(starts, tokens, strict=True)]


def _found_tokens(example: Example, item: ParsedItem) -> list[int | None]:
    spans = token_spans(example.segments[0].tokens or ())
    found = zip(item.parse.token_start, item.parse.token_end, strict=True)
    return [rules.token_of(word, spans) for word in found]


def words_in_no_token(data: RealData) -> Count:
    """Examples with a word that lies in no token, which are left out."""
    lost = sum(None in _found_tokens(example, item) for example, item in data.wikiann)
    return lost, len(data.wikiann)


def repeated_begins(data: RealData) -> Count:
    """Entities that become several, as each word of their first token begins one."""
    repeated = entities = 0
    for example, item in data.wikiann:
        owners = _found_tokens(example, item)
        words = [end - first for first, end in item.parse.token_ranges()]
        if None not in owners:
            labels: Any = example.labels["ner_tags"]
            for token, label in enumerate(labels):
                if label.startswith("B-"):
                    entities += 1
                    parts = zip(owners, words, strict=True)
                    repeated += sum(count for owner, count in parts if owner == token) > 1
    return repeated, entities


def answers_not_found(data: RealData) -> Count:
    """Training questions whose answer the reader does not find, which are left out."""
    path = data.folder(TYDIQA) / "tydiqa.goldp.en.train.json"
    paragraphs = chain.from_iterable(
        one["paragraphs"] for one in parse_json(path.read_text(encoding="utf-8"))["data"]
    )
    found = [
        rules.answer_is_found(paragraph["context"], first["answer_start"], first["text"])
        for paragraph in paragraphs
        for first in (question["answers"][0] for question in paragraph["qas"])
    ]
    return found.count(False), len(found)


def wide_spans(data: RealData) -> Count:
    """Sentences in which a span of a subtree takes in other words."""
    sentences = data.sentences(ENGLISH, "test")
    return sum(rules.has_wide_span(rules.heads_of(x)) for x in sentences), len(sentences)


def no_self_attention(data: RealData) -> Count:
    """Words that do not see themselves."""
    lost = words = 0
    for sentence in data.sentences(ENGLISH, "test"):
        counts = [data.count(word.form, UNCASED) for word in sentence.words]
        lost += rules.words_without_themselves(rules.heads_of(sentence), counts)
        words += len(counts)
    return lost, words


def _longer(data: RealData, limit: int) -> Count:
    """Training trees of all treebanks that have more pieces, with two special ones, than this."""
    sizes = [sum(data.count(x.form) for x in one.words) + 2 for one in data.every("train")]
    return sum(size > limit for size in sizes), len(sizes)


def cut_gold_trees(data: RealData) -> Count:
    """Gold trees of more than 512 pieces, which are left out with a warning."""
    return _longer(data, 512)


def skipped_trees(data: RealData) -> Count:
    """Trees of more than 256 pieces, which are skipped with a line of output."""
    return _longer(data, 256)


def multiword_tokens(data: RealData) -> Count:
    """Surface tokens that are gone, as only lines with a whole number are read."""
    sentences = data.sentences(OTHERS["fr"], "train")
    tokens = [token for sentence in sentences for token in sentence.tokens]
    return sum(token.is_multiword for token in tokens), len(tokens)


def one_piece_sentences(data: RealData) -> Count:
    """Sentences of one piece, which does not see itself."""
    sentences = data.sentences(ENGLISH, "train")
    alone = [sum(data.count(word.form) for word in one.words) == 1 for one in sentences]
    return sum(alone), len(alone)


def unscored(data: RealData) -> Count:
    """Test sentences of 140 words or more with ROOT, which are in no bucket and never scored."""
    sizes = [len(sentence.words) + 1 for sentence in data.every("test")]
    return sum(size >= 140 for size in sizes), len(sizes)


def _rows(data: RealData) -> list[tuple[int, int]]:
    """Words that an alignment by ## finds, and words, of each sentence."""
    return [
        (
            rules.rows_by_continuation(
                data.pieces(" ".join(word.form for word in one.words), UNCASED)
            ),
            len(one.words),
        )
        for one in data.sentences(ENGLISH, "test")
    ]


def shifted_words(data: RealData) -> Count:
    """Sentences in which words get the vectors of earlier pieces."""
    rows = _rows(data)
    return sum(found > words for found, words in rows), len(rows)
