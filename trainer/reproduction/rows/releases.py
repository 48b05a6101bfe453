"""Losses and failures of published releases, counted on real data, beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from trainer.reproduction.row import Figure, Findings, Listing, Row, Source
from trainer.reproduction.rows import released_counts as counts
from trainer.reproduction.rows.released_counts import (
    PAWSX,
    TYDIQA,
    UNCASED,
    WIKIANN,
    XNLI,
    Count,
    RealData,
)
from trainer.reproduction.rows.treebanks import ENGLISH, OTHERS, TOKENIZER
from trainer.reproduction.trial import Trial
from trainer.results import read_json


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss or failure of a release, its count, and the outcome of the same examples here."""

    release: str
    does: str
    where: str
    count: Callable[[RealData], Count]
    ours: str


_SYNTAX_MBERT: Final = "Syntax-MBERT (1af0ef5)"
_SG_NET: Final = "SG-Net (3b23546)"
_LR_SIB: Final = "lr-sib (61e8873)"

LOSSES: Final = (
    Loss(
        _SYNTAX_MBERT,
        "crashes: an assertion fails on the first pair shorter than 128 pieces (trees on)",
        "XNLI dev, en: pairs",
        counts.short_pairs,
        "trained, whatever the length",
    ),
    Loss(
        _SYNTAX_MBERT,
        "silent: a text of several sentences becomes one tree",
        "XNLI dev, en: texts",
        counts.several_sentences,
        "a tree for each sentence, below one root or none (`joint_root`)",
    ),
    Loss(
        _SYNTAX_MBERT,
        "silent: the parser reads quotation marks as CSV writes them, doubled and in others",
        "PAWS-X dev, fr: texts",
        counts.quoted,
        "the text as it is in the file",
    ),
    Loss(
        _SYNTAX_MBERT,
        "drops examples with a word that lies in no token",
        "WikiAnn dev, en: sentences",
        counts.words_in_no_token,
        "a word belongs to every token that it shares a character with",
    ),
    Loss(
        _SYNTAX_MBERT,
        "silent: each word of a token repeats its label, so that one entity becomes several, "
        "in what is scored too",
        "WikiAnn dev, en: entities",
        counts.repeated_begins,
        "the first piece of a token has the label; scores are of the tokens of the file",
    ),
    Loss(
        _SG_NET,
        "drops questions whose answer it does not find, with a warning",
        "TyDi QA train, en: questions",
        counts.answers_not_found,
        "answers are characters of the passage; what does not fit is rejected by name",
    ),
    Loss(
        _SG_NET,
        "silent: the span of a subtree takes in words that are not of it",
        "EWT test: sentences",
        counts.wide_spans,
        "ancestors themselves, also of trees that are not projective",
    ),
    Loss(
        _SG_NET,
        "silent: a word of one piece without dependents does not attend to itself",
        "EWT test: words",
        counts.no_self_attention,
        "every piece attends to itself; as released by a switch",
    ),
    Loss(
        _LR_SIB,
        "drops gold trees of more than 512 pieces, with a warning",
        "train splits at hand: sentences",
        counts.cut_gold_trees,
        "stored whole and cut by the stream, or dropped as `text_too_long` (`--max-pieces`)",
    ),
    Loss(
        _LR_SIB,
        "silent: multiword tokens are gone, their words stand for the text",
        "French-Sequoia train: tokens",
        counts.multiword_tokens,
        "tokens and words are stored, each with its characters",
    ),
    Loss(
        _LR_SIB,
        "silent: the piece of a sentence of one piece is not near to itself",
        "EWT train: sentences",
        counts.one_piece_sentences,
        "every piece is near to itself; as released by a switch",
    ),
    Loss(
        "UD-PrLM (f6fce79)",
        "skips trees of more than 256 pieces, with a line of output",
        "train splits at hand: sentences",
        counts.skipped_trees,
        "stored whole and cut by the stream, or dropped as `text_too_long` (`--max-pieces`)",
    ),
    Loss(
        "CrossLingualDepParser (7ac7c15)",
        "silent: test sentences of 140 words or more are not scored",
        "test splits of 15 languages: sentences",
        counts.unscored,
        "left out as published, and counted in every table (`long_sentences`)",
    ),
    Loss(
        "structural-probes (ad37b02)",
        "silent: after a word with inner punctuation, words get the vectors of earlier pieces",
        "EWT test: sentences",
        counts.shifted_words,
        "pieces and words meet by their characters",
    ),
)


# What ours does

BACKFILLS: Final[Mapping[str, tuple[Source, tuple[str, ...]]]] = {
    "xnli": (XNLI, ("--split", "dev")),
    "pawsx": (PAWSX, ("--split", "dev")),
    "wikiann": (WIKIANN, ("--split", "dev", "--mode", "retokenize")),
    "tydiqa": (TYDIQA, ("--split", "dev")),
    "ud": (ENGLISH, ("--split", "dev,test", "--mode", "gold")),
}


def _backfilled(trial: Trial, reader: str) -> Counts:
    source, options = BACKFILLS[reader]
    if most := counts.MOST.get(trial.size):
        options = (*options, "--limit", str(most))
    where = ("--path", str(trial.data / source.path), "--lang", "en")
    tokenizer = ("--tokenizer", str(trial.data / TOKENIZER.path))
    trial.backfill(reader, reader, *where, *options, *tokenizer)
    report = read_json(
        trial.folder / "backfills" / f"{reader}.json", f"the backfill of {reader} has no report"
    )
    return Counts.of_jobs([job["counts"] for job in report["jobs"]])


@dataclass(frozen=True, slots=True)
class Counts:
    """Examples of a backfill: read, stored, and dropped by reason."""

    examples: int
    stored: int
    dropped: Mapping[str, int]

    @classmethod
    def of_jobs(cls, jobs: Sequence[Mapping[str, Any]]) -> Counts:
        dropped: dict[str, int] = {}
        for reason, number in chain.from_iterable(job["dropped"].items() for job in jobs):
            dropped[reason] = dropped.get(reason, 0) + number
        stored = sum(job["stored"] + job["already_stored"] for job in jobs)
        return cls(sum(job["examples"] for job in jobs), stored, dropped)

    @property
    def unaccounted(self) -> int:
        """Examples that are neither stored nor dropped with a reason."""
        return self.examples - self.stored - sum(self.dropped.values())


def _run(trial: Trial) -> Findings:
    ours = {reader: _backfilled(trial, reader) for reader in BACKFILLS}
    data = RealData(trial)
    counted = [(loss, *loss.count(data)) for loss in LOSSES]
    rows = [
        (loss.release, loss.does, loss.where, f"{lost:,} of {of:,}", loss.ours)
        for loss, lost, of in counted
    ]
    header = ("release", "what it does", "counted on", "how often", "ours")
    stored = [
        (
            f"{reader}: {source.path.rpartition('/')[2]}, {' '.join(options)}",
            *(f"{number:,}" for number in (ours[reader].examples, ours[reader].stored)),
            ", ".join(f"{name} {number}" for name, number in ours[reader].dropped.items()) or "-",
        )
        for reader, (source, options) in BACKFILLS.items()
    ]
    figures = [
        Figure(f"{reader}: examples neither stored nor dropped by name", None, (one.unaccounted,))
        for reader, one in ours.items()
    ]
    return Findings(
        figures,
        holds=not any(one.unaccounted for one in ours.values()),
        listings=(
            Listing("What the releases do, by their rules", header, tuple(rows)),
            Listing(
                "What `parsebank backfill` does with the same data",
                ("backfill", "read", "stored", "dropped by reason"),
                tuple(stored),
            ),
        ),
        notes=(
            "The rules are ours, of a few lines each, after the behaviour of the release at the "
            "commit; the releases themselves do not run here. Pieces are those of multilingual "
            "BERT and, for SG-Net and the probes, of uncased BERT; sentences and words of texts "
            "those of our English model. Rules that hit nothing in these data are listed, too.",
        ),
    )


ROW: Final = Row(
    name="releases",
    claim="Published releases lose, change or fail on real examples without telling; ours "
    "stores every example or drops it under a name",
    source="the releases of Syntax-MBERT, SG-Net, lr-sib, UD-PrLM, CrossLingualDepParser and "
    "structural-probes, each at the commit named",
    convention="examples, texts, words or trees to which a release's rule applies, of all in "
    "the data at hand",
    rule="of every backfill, the examples that are neither stored nor dropped under a named "
    "reason are 0",
    reductions={
        "small": "the first 1,000 items of each benchmark and of what is stored; rules read "
        "treebanks whole"
    },
    data=(XNLI, PAWSX, WIKIANN, TYDIQA, UNCASED, TOKENIZER, ENGLISH, *OTHERS.values()),
    run=_run,
    kind="sanity check",
)
