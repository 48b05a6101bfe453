"""Training of WordPiece tokenizers, by the recipe of MicroBERT (Gessler, Zeldes 2022).

NFD and lower case, accents kept; words and punctuation are separate pre-tokens. The same texts give
the same bytes, in whatever order they come.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from syntax.errors import InputError, SpecError
from syntax.fingerprint import fingerprint
from syntax.tokenizers import special_tokens_of, tokenizer_content

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from clients.bpe import BpeOptions

SPECIAL_TOKENS: Final = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")

RECORD: Final = "training.json"
"""File beside the tokenizer that says from what it was trained."""

_ROLES: Final = ("pad_token", "cls_token", "sep_token", "unk_token", "mask_token")
_CONTINUATION: Final = "##"
_MAX_LENGTH: Final = 512


def published_size(types: int) -> int:
    """Number of pieces for so many types (words between white space), as released by the authors.

    >>> published_size(59_190), published_size(14_457)
    (8589, 8000)
    """
    return 8_000 + max(0, int((types - 15_000) * 6_000 / 450_000))


@dataclass(frozen=True, slots=True)
class WordPieceOptions:
    """Options of training.

    Attributes:
        vocab_size: Pieces, special tokens included; by default `published_size`. There
            are fewer if the texts have no more, and more if they have more characters.
        lowercase: Make upper case lower.
        strip_accents: Remove combining marks.
    """

    vocab_size: int | None = None
    lowercase: bool = True
    strip_accents: bool = False

    def __post_init__(self) -> None:
        if self.vocab_size is not None:
            check_size(self.vocab_size)


def check_size(vocab_size: int) -> None:
    if vocab_size <= len(SPECIAL_TOKENS):
        raise SpecError(
            f"`vocab_size` is {vocab_size}; {len(SPECIAL_TOKENS)} are special tokens already, so "
            "give more"
        )


@dataclass(frozen=True, slots=True)
class Corpus:
    """Measures of the texts of a tokenizer.

    Attributes:
        tokens, types: Numbers of words between white space, and of different ones.
        sha256: SHA-256 of the sorted types with their numbers, whatever the order of the texts.
        characters: Characters that continue a word, once normalized, sorted.
    """

    texts: int
    tokens: int
    types: int
    sha256: str
    characters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrainedTokenizer:
    """A tokenizer and its training."""

    tokenizer: Tokenizer
    options: WordPieceOptions | BpeOptions
    corpus: Corpus

    @property
    def fingerprint(self) -> str:
        names = dict(zip(_ROLES, SPECIAL_TOKENS, strict=True))
        special = special_tokens_of(self.tokenizer, names)
        if special is None:
            raise AssertionError("the template has the form [CLS] A [SEP] B [SEP]")
        return fingerprint(tokenizer_content(self.tokenizer, special))


def train_wordpiece(
    texts: Callable[[], Iterable[str]], options: WordPieceOptions | None = None
) -> TrainedTokenizer:
    """Train a tokenizer; ``texts`` is called twice, and only the types are kept in memory."""
    from tokenizers import trainers

    options = options or WordPieceOptions()
    learner = _untrained(options)
    corpus = survey(texts(), learner)
    if not corpus.types:
        raise InputError("the texts have no words, so no tokenizer can be trained")
    # The trainer numbers the characters that continue a word as its randomly seeded hash map yields
    # them, and decides between equally frequent pairs by number. As "special tokens" they have
    # their numbers first.
    numbered = [*SPECIAL_TOKENS, *(_CONTINUATION + each for each in corpus.characters)]
    size = options.vocab_size or published_size(corpus.types)
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=numbered, show_progress=False
    )
    learner.train_from_iterator(texts(), trainer)
    return TrainedTokenizer(_trained(learner.get_vocab(), options), options, corpus)


def survey(texts: Iterable[str], tokenizer: Tokenizer) -> Corpus:
    count = 0
    counts: Counter[str] = Counter()
    for text in texts:
        count += 1
        counts.update(text.split())
    digest = hashlib.sha256()
    characters: set[str] = set()
    for word in sorted(counts):
        digest.update(f"{word}\t{counts[word]}\n".encode("utf-8", "surrogatepass"))
        for part in _pretokens(tokenizer, word):
            characters.update(part[1:])
    continuing = tuple(sorted(characters))
    return Corpus(count, counts.total(), len(counts), digest.hexdigest(), continuing)


def save_tokenizer(trained: TrainedTokenizer, folder: Path, source: dict[str, Any]) -> None:
    """Write ``tokenizer.json``, ``tokenizer_config.json`` and the `RECORD` into a new folder.

    The folder appears when all files are written; it must not exist, or be empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SpecError(f"{folder} exists already; name a new folder, or remove it first")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as draft:
        new = Path(draft) / "tokenizer"
        new.mkdir()
        trained.tokenizer.save(str(new / "tokenizer.json"))
        _write_json(new / "tokenizer_config.json", _config())
        _write_json(new / RECORD, _record(trained, source))
        new.replace(folder)


def _untrained(options: WordPieceOptions, vocabulary: dict[str, int] | None = None) -> Tokenizer:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    steps: list[normalizers.Normalizer] = [normalizers.NFD()]
    if options.lowercase:
        steps.append(normalizers.Lowercase())
    if options.strip_accents:
        steps.append(normalizers.StripAccents())
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary or {}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def _trained(vocabulary: dict[str, int], options: WordPieceOptions) -> Tokenizer:
    from tokenizers import decoders

    tokenizer = _untrained(options, vocabulary)
    tokenizer.decoder = decoders.WordPiece(prefix=_CONTINUATION)
    return framed(tokenizer)


def framed(tokenizer: Tokenizer) -> Tokenizer:
    """Put [CLS] and [SEP] around texts from now on."""
    from tokenizers import processors

    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, SPECIAL_TOKENS.index(name)) for name in ("[CLS]", "[SEP]")],
    )
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def _pretokens(tokenizer: Tokenizer, word: str) -> Iterator[str]:
    normalized = tokenizer.normalizer.normalize_str(word)
    for part, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normalized):
        yield part


def _config() -> dict[str, Any]:
    """Options of Hugging Face's `AutoTokenizer`; `BertTokenizer` would strip the accents."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": _MAX_LENGTH,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        **dict(zip(_ROLES, SPECIAL_TOKENS, strict=True)),
    }


def _record(trained: TrainedTokenizer, source: dict[str, Any]) -> dict[str, Any]:
    corpus = asdict(trained.corpus)
    del corpus["characters"]
    return {
        "fingerprint": trained.fingerprint,
        "pieces": trained.tokenizer.get_vocab_size(),
        "options": asdict(trained.options),
        "corpus": {**source, **corpus},
        "versions": {name: version(name) for name in ("parsebank", "tokenizers")},
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
