"""PrOnto's five tasks for any encoder, as its evaluation trains them.

Gessler (2023), "PrOnto: Language Model Evaluations for 859 Languages", and its code
(gessler/pronto, commit 0832de4). Scores are accuracies on test.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trainer import options
from trainer.options import DataOptions, Recipe, SyntaxBertOptions, TrainingOptions
from trainer.recipes.base import RECIPES
from trainer.recipes.parsing import with_local_attention

if TYPE_CHECKING:
    from trainer.options import SequenceClassificationOptions

_TRAINING: Final = TrainingOptions(
    batch_size=16,
    epochs=10,
    learning_rate=2e-5,
    weight_decay=0.01,
    evaluate_every="epoch",
    keep="lowest_loss",
)


def _of_verse(task: str, epochs: int = 10) -> Recipe:
    return Recipe(
        name=f"pronto-{task.replace('_', '-')}",
        data=DataOptions(
            dataset=f"pronto_{task}", max_length=512, joint_root=False, separator_edge="none"
        ),
        model=SyntaxBertOptions(use_syntax=False),
        training=replace(_TRAINING, epochs=epochs),
    )


def pair_with_sense() -> SequenceClassificationOptions:
    """Two verses and a sense: [CLS] verse [SEP] verse [SEP] sense, the sense one token."""
    return options.SequenceClassificationOptions(item="sense")


def nonpronominal_mention() -> Recipe:
    """How many mentions that are no pronouns a verse has: 0, 1, 2, or more."""
    return _of_verse("nonpronominal_mention")


def proper_noun_subject() -> Recipe:
    """Whether a proper noun is in the subject of a verse."""
    return _of_verse("proper_noun_subject")


def sentence_mood() -> Recipe:
    """The mood of a verse's sentence."""
    return _of_verse("sentence_mood", epochs=20)


def same_sense() -> Recipe:
    """Whether two verses have a verb of a sense."""
    return replace(_of_verse("same_sense"), task=pair_with_sense())


def same_arg_count() -> Recipe:
    """Whether the verb of a sense has as many arguments in both verses."""
    return replace(_of_verse("same_arg_count"), task=pair_with_sense())


def nonpronominal_mention_sla() -> Recipe:
    """Mentions that are no pronouns, for an exported MicroBERT with local attention."""
    return with_local_attention(nonpronominal_mention())


def proper_noun_subject_sla() -> Recipe:
    """Proper nouns in the subject, for an exported MicroBERT with local attention."""
    return with_local_attention(proper_noun_subject())


def sentence_mood_sla() -> Recipe:
    """The mood of a sentence, for an exported MicroBERT with local attention."""
    return with_local_attention(sentence_mood())


def same_sense_sla() -> Recipe:
    """A sense of verbs in two verses, for an exported MicroBERT with local attention."""
    return with_local_attention(same_sense())


def same_arg_count_sla() -> Recipe:
    """As many arguments in two verses, for an exported MicroBERT with local attention."""
    return with_local_attention(same_arg_count())


def same_sense_disjoint() -> Recipe:
    """The same, trained without the verses of dev and test."""
    return _disjoint(same_sense())


def same_arg_count_disjoint() -> Recipe:
    """The same, trained without the verses of dev and test."""
    return _disjoint(same_arg_count())


def _disjoint(recipe: Recipe) -> Recipe:
    data = replace(recipe.data, dataset=f"{recipe.data.dataset}_disjoint")
    return replace(recipe, name=f"{recipe.name}-disjoint", data=data)


for _make in (
    nonpronominal_mention,
    proper_noun_subject,
    sentence_mood,
    same_sense,
    same_arg_count,
    nonpronominal_mention_sla,
    proper_noun_subject_sla,
    sentence_mood_sla,
    same_sense_sla,
    same_arg_count_sla,
    same_sense_disjoint,
    same_arg_count_disjoint,
):
    RECIPES.add(f"pronto-{_make.__name__.replace('_', '-')}", _make)
