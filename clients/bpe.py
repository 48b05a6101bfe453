"""Training of tokenizers whose pieces give the text back: BPE, or whole words.

NFC, case kept. Each word begins with the space before it, as ``▁``, so joined pieces are the text
with single spaces. The same texts give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clients.wordpiece import SPECIAL_TOKENS, TrainedTokenizer, check_size, framed, survey
from syntax.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class BpeOptions:
    """Options of training.

    Attributes:
        kind: ``bpe`` (Sennrich et al. 2016), or ``words``: every other word is unknown.
        vocab_size: Pieces, special tokens included; by default as SG-Net for translation.
        special: Further special tokens, such as ``<python>`` for a language (PLBART).
    """

    kind: Literal["bpe", "words"] = "bpe"
    vocab_size: int = 40_000
    special: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_size(self.vocab_size - len(self.special))


def train_bpe(texts: Callable[[], Iterable[str]], options: BpeOptions) -> TrainedTokenizer:
    """Train a tokenizer. ``texts`` gives all texts at each call, and is called twice."""
    from tokenizers import decoders, trainers

    learner = _untrained(options)
    corpus = survey(texts(), learner)
    if not corpus.types:
        raise InputError("the texts have no words, so no tokenizer can be trained")
    kind = trainers.BpeTrainer if options.kind == "bpe" else trainers.WordLevelTrainer
    special = [*SPECIAL_TOKENS, *options.special]
    trainer = kind(vocab_size=options.vocab_size, special_tokens=special, show_progress=False)
    learner.train_from_iterator(texts(), trainer)
    learner.decoder = decoders.Metaspace()
    return TrainedTokenizer(framed(learner), options, corpus)


def _untrained(options: BpeOptions) -> Tokenizer:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    unknown = "[UNK]"
    model = models.BPE if options.kind == "bpe" else models.WordLevel
    tokenizer = Tokenizer(model(unk_token=unknown))
    tokenizer.normalizer = normalizers.NFC()
    parts = [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation("isolated")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
    return tokenizer
