"""The language test: a classifier tells the language of words by an encoder's states.

Ahmad et al. 2019, "Cross-lingual dependency parsing with unlabeled auxiliary languages": the
encoder is frozen, and a classifier of several layers learns for 50 passes in batches of 128. The
lower its accuracy on held-out sentences, the less the states tell of the language. `RELEASED` are
the settings of the release's LanguageTest.py (f9b6acd); docs/systems/adversarial.md says what else
it does.

Letters in shapes: ``N`` words, ``D`` width of the states, ``C`` languages.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.errors import SpecError
from syntax.mixing import splitmix, stream_seed
from trainer.data import device_batches, source_of
from trainer.evaluation.trained import TrainedRun, load_run
from trainer.nn.discriminator import Discriminator
from trainer.nn.positions import word_positions
from trainer.options import Recipe
from trainer.results import part_name, write_json
from trainer.tasks import TreesOptions

if TYPE_CHECKING:
    from featurestore import FeatureStore

_RATE = 1e-3
_LINEAR = 512


@dataclass(frozen=True, slots=True)
class LanguageTestOptions:
    """Options of the classifier and its training.

    Attributes:
        train, held_out: Splits that it learns from, and is scored on.
        select: Split by which the weights of a pass are chosen, by the mean of the languages'
            accuracies; None takes those of the last pass.
        patience: So many passes without higher ones are the last.
        classifier: ``mlp``: 256, tanh, 128, tanh; ``linear``: 512, and nothing between the maps.
        sentences: Examples of each language and split at most, drawn by the seed.
        epochs: Passes.
        batch_size: Sentences per batch.
        seed: Of initial weights and orders.
    """

    train: str = "train"
    held_out: str = "dev"
    select: str | None = None
    patience: int = 5
    classifier: Literal["mlp", "linear"] = "mlp"
    sentences: int = 1000
    epochs: int = 50
    batch_size: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("sentences", "epochs", "batch_size", "patience"):
            if getattr(self, name) < 1:
                raise SpecError(f"`{name}={getattr(self, name)}` must be at least 1")
        for name in ("train", "select"):
            if getattr(self, name) == self.held_out:
                raise SpecError(
                    f"`{name}={self.held_out}` is held out, too; name another split to score on"
                )


RELEASED: Final = LanguageTestOptions(
    held_out="test", select="dev", classifier="linear", sentences=10_000
)


class Words(NamedTuple):
    """The words of some sentences.

    Attributes:
        states: *Shape:* (N, D), float32.
        languages: Place of each word's language. *Shape:* (N,).
        sentences: Sentence of each word, in ascending order. *Shape:* (N,).
    """

    states: Tensor
    languages: Tensor
    sentences: Tensor

    def of_sentences(self, chosen: Tensor) -> Words:
        kept = torch.isin(self.sentences, chosen)
        return Words(self.states[kept], self.languages[kept], self.sentences[kept])


def language_test(
    folder: Path,
    store: FeatureStore,
    langs: Sequence[str],
    options: LanguageTestOptions | None = None,
    *,
    dataset: str | None = None,
    parser: str | None = None,
) -> dict[str, Any]:
    """Train and score the classifier, and write ``language-test-SPLIT.json`` into the run's folder.

    The result has ``accuracy`` on held-out words, ``per_language``, the ``majority`` share that
    knows nothing, the number of ``words``, the ``passes`` of training, and the options.
    """
    options = options or LanguageTestOptions()
    if len(set(langs)) < 2:
        raise SpecError(
            f"`langs={','.join(langs)}` is one language; name two or more to tell apart"
        )
    run = load_run(folder).on(store, dataset, parser)
    known, held_out = (
        _words(run, store, split, langs, options) for split in (options.train, options.held_out)
    )
    judges = _words(run, store, options.select, langs, options) if options.select else None
    classifier, passes = trained_classifier(known, judges, len(langs), options, run.model.device)
    right = right_words(classifier, held_out, run.model.device)
    counts = torch.bincount(held_out.languages, minlength=len(langs))
    result = {
        "accuracy": float(right.double().mean()),
        "per_language": {
            lang: float(right[held_out.languages == place].double().mean())
            for place, lang in enumerate(langs)
        },
        "majority": float(counts.max() / counts.sum()),
        "passes": passes,
        "words": {"train": len(known.languages), "held_out": len(held_out.languages)},
        "languages": list(langs),
        "dataset": run.recipe.data.dataset,
        "options": asdict(options),
    }
    name = part_name(folder, run.recipe.data.dataset, options.held_out)
    write_json(folder / f"language-test-{name}.json", result)
    return result


def _words(
    run: TrainedRun,
    store: FeatureStore,
    split: str,
    langs: Sequence[str],
    options: LanguageTestOptions,
) -> Words:
    """The words of a split in several languages, as the run's encoder sees them."""
    recipe = replace(run.recipe, task=TreesOptions(), objectives=(), streams=(), optimizers=())
    states: list[Tensor] = []
    languages: list[int] = []
    lengths: list[int] = []
    for place, lang in enumerate(langs):
        found = list(_sentences(run, store, recipe, split, lang, options))
        if not sum(map(len, found)):
            raise SpecError(f"{recipe.data.dataset} has no words in {split}/{lang}")
        states += found
        lengths += map(len, found)
        languages += [place] * len(found)
    repeats = torch.tensor(lengths)
    return Words(
        torch.cat(states).float(),
        torch.tensor(languages).repeat_interleave(repeats),
        torch.arange(len(lengths)).repeat_interleave(repeats),
    )


@torch.no_grad()
def _sentences(
    run: TrainedRun,
    store: FeatureStore,
    recipe: Recipe,
    split: str,
    lang: str,
    options: LanguageTestOptions,
) -> Iterator[Tensor]:
    """The states of the words of each sentence. *Shape:* (words, D) each."""
    data = recipe.data
    dataset = store.dataset(
        data.dataset, data.tokenizer, split, lang, data.version, parser=data.parser
    )
    # At most so many examples, in the order of the dataset.
    seed = stream_seed(options.seed, "language test", lang)
    chosen = np.sort(np.argsort(splitmix(len(dataset), seed))[: options.sentences])
    drawn = dataset.selected(dataset.rows.select(chosen), dataset.reader)
    source = source_of(drawn, recipe, store)
    run.model.eval()  # type: ignore[no-untyped-call]
    stream = source.evaluation_stream(recipe)
    for batch in device_batches(stream, recipe, source.task, run.model.device):
        states_BLD = run.model.encoder(batch).last_hidden_state
        for row, places in enumerate(word_positions(batch.arrays)):
            yield states_BLD[row, torch.from_numpy(places[places >= 0])].cpu()


def trained_classifier(
    words: Words,
    judges: Words | None,
    languages: int,
    options: LanguageTestOptions,
    device: torch.device,
) -> tuple[nn.Module, int]:
    """The classifier, from states, (N, D), to scores, (N, C), and the passes it learnt in."""
    random = torch.Generator().manual_seed(options.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        classifier = _classifier(options, words.states.shape[1], languages).to(device)
    optimizer = torch.optim.Adam(classifier.parameters(), lr=_RATE)
    sentences = words.sentences.unique()
    best, weights, passes = 0.0, None, 0
    for number in range(1, options.epochs + 1):
        order = sentences[torch.randperm(len(sentences), generator=random)]
        for chosen in order.split(options.batch_size):
            batch = words.of_sentences(chosen)
            scores_NC = classifier(batch.states.to(device))
            loss = F.cross_entropy(scores_NC, batch.languages.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if judges is None:
            passes = number
            continue
        right = right_words(classifier, judges, device).double()
        of_each = [right[judges.languages == place].mean() for place in range(languages)]
        mean = float(torch.stack(of_each).mean())
        if mean > best:
            best, weights, passes = mean, copy.deepcopy(classifier.state_dict()), number
        elif number - passes >= options.patience:
            break
    if weights is not None:
        classifier.load_state_dict(weights)
    return classifier, passes


def _classifier(options: LanguageTestOptions, width: int, languages: int) -> nn.Sequential:
    if options.classifier == "linear":
        return nn.Sequential(nn.Linear(width, _LINEAR), nn.Linear(_LINEAR, languages))
    return Discriminator(width, languages).layers


@torch.no_grad()
def right_words(classifier: nn.Module, words: Words, device: torch.device) -> Tensor:
    """The words whose language is told. bool, (N,)."""
    found_N: Tensor = classifier(words.states.to(device)).argmax(-1).cpu()
    return found_N == words.languages
