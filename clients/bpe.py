"""Training of tokenizers whose pieces give the text back: BPE, or whole words.

NFC, case kept. Each word begins with the space before it, as ``▁``, and punctuation is apart, so
that pieces put together are the text, its spaces as single ones. A model that writes text needs
that; `clients.wordpiece` serves models that only read. The same texts give the same bytes.
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
    """How a tokenizer is trained.

    Attributes:
        kind: ``bpe`` (Sennrich et al. 2016), or ``words``: every other word is unknown.
        vocab_size: Number of pieces, special tokens included, by default that of SG-Net for
            translation.
        special: Further special tokens, such as ``<python>`` for a language (PLBART).
    """

    kind: Literal["bpe", "words"] = "bpe"
    vocab_size: int = 40_000
    special: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_size(self.vocab_size - len(self.special))


def train_bpe(texts: Callable[[], Iterable[str]], options: BpeOptions) -> TrainedTokenizer:
    """Train a tokenizer. The texts are read twice.

    Args:
        texts: Gives all texts, each time that it is called.
        options: How.
    """
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
