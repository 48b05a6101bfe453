"""Train the embedded WordPiece tokenizer from the text of a Universal Dependencies treebank.

The recipe is that of the uncased BERT vocabulary (Devlin et al. 2019), only smaller. The same
treebank gives the same bytes, whatever the number of threads.

    python -m service.resources.tokenizers.train_wordpiece --treebank DIR --out DIR
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY_SIZE = 6000
MAX_LENGTH = 512
CONTINUATION = "##"
TEXT_COMMENT = "# text = "


def sentence_texts(treebank: Path) -> Iterator[str]:
    paths = sorted(treebank.glob("*-ud-train.conllu"))
    if not paths:
        raise FileNotFoundError(
            f"no *-ud-train.conllu in {treebank}: give the folder of a UD treebank, "
            "as it is cloned from github.com/UniversalDependencies"
        )
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            yield from (line[len(TEXT_COMMENT) :].rstrip("\n") for line in lines if _is_text(line))


def train_tokenizer(texts: Iterable[str], vocabulary_size: int = VOCABULARY_SIZE) -> Tokenizer:
    vocabulary = learn_vocabulary(list(texts), vocabulary_size)
    tokenizer = _empty_tokenizer(vocabulary)
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, SPECIAL_TOKENS.index(name)) for name in ("[CLS]", "[SEP]")],
    )
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def learn_vocabulary(texts: list[str], size: int) -> dict[str, int]:
    """Return piece to id, the same for the same *texts*.

    The trainer numbers continuation characters as a randomly seeded hash map yields the words, and
    breaks ties between merges by those numbers: two runs differ in dozens of pieces. Named as
    special tokens, in sorted order, the characters get their numbers first and the ties one answer.
    """
    learner = _empty_tokenizer({})
    numbered = [*SPECIAL_TOKENS, *_continuation_characters(learner, texts)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=numbered, show_progress=False
    )
    learner.train_from_iterator(texts, trainer)
    return dict(learner.get_vocab())


def tokenizer_config() -> dict[str, Any]:
    names = ("pad", "unk", "cls", "sep", "mask")
    special = {f"{name}_token": token for name, token in zip(names, SPECIAL_TOKENS, strict=True)}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MAX_LENGTH,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        **special,
    }


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = json.dumps(tokenizer_config(), indent=2, sort_keys=True)
    (folder / "tokenizer_config.json").write_text(config + "\n", encoding="utf-8")


def main() -> None:
    """Train the tokenizer and write it, ready for ``AutoTokenizer.from_pretrained(out)``."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--treebank", type=Path, required=True, help="folder of a UD treebank")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the tokenizer to")
    parser.add_argument("--size", type=int, default=VOCABULARY_SIZE, help="pieces to learn")
    arguments = parser.parse_args()
    tokenizer = train_tokenizer(sentence_texts(arguments.treebank), arguments.size)
    save_tokenizer(tokenizer, arguments.out)


def _empty_tokenizer(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _continuation_characters(tokenizer: Tokenizer, texts: list[str]) -> list[str]:
    characters: set[str] = set()
    for text in texts:
        normalized = tokenizer.normalizer.normalize_str(text)
        for word, _span in tokenizer.pre_tokenizer.pre_tokenize_str(normalized):
            characters.update(word[1:])
    return [CONTINUATION + character for character in sorted(characters)]


def _is_text(line: str) -> bool:
    return line.startswith(TEXT_COMMENT)


if __name__ == "__main__":
    main()
