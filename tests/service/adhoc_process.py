"""A process that appends adhoc rows and then waits to be killed.

It prints ``committed`` once the first rows are flushed, and ``waiting`` once more are buffered.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from featurestore import open_store
from service.pipeline.adhoc import AdhocDataset, AdhocSegment
from service.tokenizers import load_tokenizer
from syntax import fingerprint
from syntax.batches import SegmentFeatures

PARSER = fingerprint({"name": "nobody"})


def segment(text: str, lang: str = "en", pieces: int = 2) -> AdhocSegment:
    """A text of so many pieces, each a word that hangs from the first."""
    numbers = np.arange(pieces, dtype=np.int32)
    features = SegmentFeatures(
        input_ids=numbers + 10,
        head=np.where(numbers == 0, -1, 0).astype(np.int32),
        word_ids=numbers,
        upos=np.zeros(pieces, np.uint8),
        deprel=np.zeros(pieces, np.uint8),
        sentence_ids=np.zeros(pieces, np.int32),
        offsets=np.zeros((pieces, 2), np.int32),
    )
    return AdhocSegment(fingerprint({"text": text}), lang, PARSER, text, features)


def tell(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def main(uri: str, committed: str, buffered: str) -> None:
    tokenizer = load_tokenizer("parsebank-wordpiece-en")
    adhoc = AdhocDataset(open_store(uri), commit_seconds=3600)
    for number in range(int(committed)):
        adhoc.add(tokenizer, [segment(f"text {number}")])
    adhoc.flush()
    tell("committed")
    for number in range(int(committed), int(committed) + int(buffered)):
        adhoc.add(tokenizer, [segment(f"text {number}")])
    tell("waiting")
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
