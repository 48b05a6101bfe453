"""The heads of words without a model: of each the word beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from syntax.trees.parse import Parse
from trainer.metrics.dependency import ParsedWord


@dataclass(frozen=True, slots=True)
class NeighbourHeads:
    """The word ``step`` further (-1 or 1) as head of each; the last on that side is the root."""

    step: int
    relation: str

    @classmethod
    def of(cls, trees: Iterable[Parse]) -> NeighbourHeads:
        """The side on which more words of the trees have their head, and the relation of most.

        Of equal counts, the word before, and the first relation in the alphabet.
        """
        found = {-1: Counter[str](), 1: Counter[str]()}
        for parse in trees:
            steps = parse.parents() - np.arange(parse.word_count)
            for head, step, name in zip(parse.head, steps.tolist(), parse.deprel, strict=True):
                if head and step in found and name is not None:
                    found[step][name] += 1
        step = max((-1, 1), key=lambda side: found[side].total())
        ranked = sorted(found[step].items(), key=lambda one: (-one[1], one[0]))
        return cls(step, ranked[0][0] if ranked else "dep")

    @property
    def name(self) -> str:
        return f"the {'previous' if self.step < 0 else 'next'} word as head"

    def words(self, parse: Parse) -> Iterator[ParsedWord]:
        sentences, gold = parse.sentence_ids(), parse.parents().tolist()
        for word in range(parse.word_count):
            head = word + self.step
            if not 0 <= head < parse.word_count or sentences[head] != sentences[word]:
                head = -1
            relation = self.relation if head >= 0 else "root"
            yield ParsedWord(gold[word], head, parse.deprel[word], relation, parse.upos[word])
