"""Fine-tuning without anything of ours: loops over ``AutoModel...``, their tokenizer and batches.

Only scores are computed by our metrics. An example is a pair: what is read, and what is learned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from trainer.metrics.entities import entity_scores

IGNORED: Final = -100
Example = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings of both sides.

    ``new_rate`` is that of all weights but the encoder's. Where the two differ, ``rate`` is that of
    the recipe, which is not set.
    """

    encoder: str
    epochs: int
    batch_size: int
    rate: float
    new_rate: float
    warmup: float
    max_length: int


class Plain(ABC):
    """One task: its model, its loss and its score on dev."""

    def __init__(self, train: Sequence[Example], dev: Sequence[Example], setting: Setting) -> None:
        self.train, self.dev, self.setting = train, dev, setting
        self.tokenizer = AutoTokenizer.from_pretrained(setting.encoder)

    @abstractmethod
    def model(self) -> Any:
        """A model with a pretrained encoder and new layers."""

    @abstractmethod
    def loss(self, model: Any, batch: Sequence[Example]) -> Tensor:
        """Loss of a batch."""

    @abstractmethod
    def evaluate(self, model: Any) -> float:
        """Score of dev, from 0 to 1."""

    def score(self, seed: int) -> float:
        """Train from a seed, and score the last weights."""
        torch.manual_seed(seed)
        model, setting, train = self.model(), self.setting, self.train
        steps = setting.epochs * -(-len(train) // setting.batch_size)
        optimizer = torch.optim.AdamW(self._groups(model), weight_decay=0.0, fused=True)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(self._share, steps))
        model.train()
        for _ in range(setting.epochs):
            order = torch.randperm(len(train)).tolist()
            for at in range(0, len(order), setting.batch_size):
                batch = [train[one] for one in order[at : at + setting.batch_size]]
                self.loss(model, batch).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        with torch.no_grad():
            return self.evaluate(model.eval())

    def _share(self, steps: int, done: int) -> float:
        """Share of the rates after ``done`` steps: it rises to 1 in the warm-up, and falls to 0."""
        warmup = int(steps * self.setting.warmup)
        return (done + 1) / warmup if done < warmup else (steps - done) / (steps - warmup)

    def _groups(self, model: Any) -> list[dict[str, Any]]:
        encoder = {id(one) for one in getattr(model, model.base_model_prefix).parameters()}
        rest = [one for one in model.parameters() if id(one) not in encoder]
        known = [one for one in model.parameters() if id(one) in encoder]
        return [
            {"params": known, "lr": self.setting.rate},
            {"params": rest, "lr": self.setting.new_rate},
        ]

    def encode(self, *texts: Any, words: bool = False) -> Any:
        return self.tokenizer(
            *texts,
            is_split_into_words=words,
            padding=True,
            truncation=True,
            max_length=self.setting.max_length,
            return_tensors="pt",
        )

    def batches(self) -> Iterator[Sequence[Example]]:
        """Dev, by 64."""
        for at in range(0, len(self.dev), 64):
            yield self.dev[at : at + 64]


class Classes(Plain):
    """Texts with a class: ``AutoModelForSequenceClassification``."""

    def model(self) -> Any:
        self.names = sorted({label for _, label in self.train})
        return AutoModelForSequenceClassification.from_pretrained(
            self.setting.encoder, num_labels=len(self.names), dtype=torch.float32
        )

    def loss(self, model: Any, batch: Sequence[Example]) -> Tensor:
        ids = torch.tensor([self.names.index(label) for _, label in batch])
        found: Tensor = model(**self._encoded(batch), labels=ids).loss
        return found

    def evaluate(self, model: Any) -> float:
        found = [model(**self._encoded(batch)).logits.argmax(-1) for batch in self.batches()]
        ids = np.array([self.names.index(label) for _, label in self.dev])
        return self.scored(ids, torch.cat(found).numpy())

    def scored(self, gold: Any, found: Any) -> float:
        return float((gold == found).mean())

    def _encoded(self, batch: Sequence[Example]) -> Any:
        return self.encode(*(list(column) for column in zip(*(x for x, _ in batch), strict=True)))


class Correlated(Classes):
    """The same, scored by Matthews' coefficient."""

    def scored(self, gold: Any, found: Any) -> float:
        return float(np.corrcoef(gold, found)[0, 1]) if len(set(found.tolist())) > 1 else 0.0


class Tags(Plain):
    """Words with a tag each, that of their first piece: ``AutoModelForTokenClassification``."""

    def model(self) -> Any:
        return AutoModelForTokenClassification.from_pretrained(
            self.setting.encoder, num_labels=len(self.tags), dtype=torch.float32
        )

    @cached_property
    def tags(self) -> list[str]:
        return sorted({tag for tags in map(self.tags_of, self.train) for tag in tags})

    def tags_of(self, example: Example) -> Sequence[str]:
        tags: Sequence[str] = example[1]
        return tags

    def loss(self, model: Any, batch: Sequence[Example]) -> Tensor:
        encoded = self.encode([words for words, _ in batch], words=True)
        found: Tensor = model(**encoded, labels=self.ids(batch, encoded)).loss
        return found

    def ids(self, batch: Sequence[Example], encoded: Any) -> Tensor:
        """Tags at first pieces, *shape* (B, L); `IGNORED` elsewhere."""
        ids = torch.full(encoded["input_ids"].shape, IGNORED)
        for row, example in enumerate(batch):
            tags = self.tags_of(example)
            for at, word in first_pieces(encoded.word_ids(row)):
                ids[row, at] = self.tags.index(tags[word])
        return ids

    def evaluate(self, model: Any) -> float:
        found: list[list[str]] = []
        for batch in self.batches():
            encoded = self.encode([words for words, _ in batch], words=True)
            chosen = self.tag_logits(model, encoded).argmax(-1).tolist()
            for row, (words, _) in enumerate(batch):
                tags = ["O"] * len(words)  # where truncation has taken the word
                for at, word in first_pieces(encoded.word_ids(row)):
                    tags[word] = self.tags[chosen[row][at]]
                found.append(tags)
        return entity_scores([list(self.tags_of(one)) for one in self.dev], found)[""].f1

    def tag_logits(self, model: Any, encoded: Any) -> Tensor:
        logits: Tensor = model(**encoded).logits
        return logits


class OverEncoder(nn.Module):
    """An ``AutoModel`` and new layers over its last states."""

    base_model_prefix = "encoder"

    def __init__(self, name: str, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(name, dtype=torch.float32)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleDict()

    def forward(self, encoded: Any) -> Tensor:
        states: Tensor = self.dropout(self.encoder(**encoded).last_hidden_state)
        return states

    @property
    def width(self) -> int:
        return int(self.encoder.config.hidden_size)

    def add(self, name: str, layer: nn.Module) -> None:
        """A new layer, which starts as those of ``AutoModelFor...`` do: torch's own are larger."""
        for part in layer.modules():
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=self.encoder.config.initializer_range)
                nn.init.zeros_(part.bias)
        self.layers[name] = layer


class Utterances(Tags):
    """Words with tags and an intent, learned together; scored by the F1 of tags."""

    def model(self) -> Any:
        self.intents = sorted({intent for _, (_, intent) in self.train})
        model = OverEncoder(self.setting.encoder)
        model.add("tags", nn.Linear(model.width, len(self.tags)))
        classifier = (nn.Linear(model.width, model.width), nn.Tanh(), nn.Dropout(0.1))
        model.add("intent", nn.Sequential(*classifier, nn.Linear(model.width, len(self.intents))))
        return model

    def tags_of(self, example: Example) -> Sequence[str]:
        tags: Sequence[str] = example[1][0]
        return tags

    def loss(self, model: Any, batch: Sequence[Example]) -> Tensor:
        encoded = self.encode([words for words, _ in batch], words=True)
        states_BLD = model(encoded)
        tags = model.layers["tags"](states_BLD).flatten(0, 1)
        of_tags = nn.functional.cross_entropy(
            tags, self.ids(batch, encoded).flatten(), ignore_index=IGNORED
        )
        known = [self.intents.index(intent) for _, (_, intent) in batch]
        return of_tags + nn.functional.cross_entropy(
            model.layers["intent"](states_BLD[:, 0]), torch.tensor(known)
        )

    def tag_logits(self, model: Any, encoded: Any) -> Tensor:
        logits: Tensor = model.layers["tags"](model(encoded))
        return logits


def first_pieces(words: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """Place and word of each word's first piece."""
    for at, word in enumerate(words):
        if word is not None and word not in words[:at]:
            yield at, word
