"""UD-PrLM's two phases of pre-training, and what is fine-tuned and probed after them.

Algorithm 1 is two runs. In the first, each step has a batch of trees (the stream ``ud``) and a
batch of masked text, which reads h_L; in the second, which starts from the first, text reads
h_(L+1), and a step has a batch of trees with probability 0.8. Gradients of both add.

The paper does not give the length of its warm-up; the released scripts (commit f6fce79) have a
tenth, and 0.8 in both phases. Masked text is that of the corpus and of the treebanks, as in the
paper; the release masks the corpus alone, and takes each language's lines as they are. The paper's
exponential weights of languages are multilingual BERT's, with its exponent of 0.7. The release
draws for each batch, ours for each step. Evaluation, checkpoints and, where neither says it,
fine-tuning are our own choice.
"""

from __future__ import annotations

from dataclasses import replace

from trainer import options
from trainer.options import (
    DataOptions,
    GroupOptions,
    OptimizerOptions,
    ParserOptions,
    Recipe,
    StreamOptions,
    TrainingOptions,
    UdPrlmOptions,
)
from trainer.recipes.base import RECIPES, variant

_TRAINING = TrainingOptions(
    batch_size=128,
    max_steps=600_000,
    learning_rate=5e-5,
    betas=(0.9, 0.98),
    epsilon=1e-6,
    weight_decay=0.01,
    warmup_share=0.1,
    evaluate_every=10_000,
    checkpoint_every=10_000,
    log_every=100,
    keep="last",
)

_RELEASED = (
    *("batch_size=6", "accumulation=2", "learning_rate=3e-5", "betas=[0.9,0.999]"),
    *("clip_norm=5", "data.max_length=512", "data.gold=null", "lang_exponent=null"),
    *("activation=as_released", "mlp_init=as_released", "fusion=as_released"),
    "streams.ud.share=0.8",
)


def _pieces(dataset: str, max_length: int) -> DataOptions:
    return DataOptions(
        dataset=dataset,
        policy="chain",
        joint_root=False,
        separator_edge="none",
        max_length=max_length,
    )


def phase_1() -> Recipe:
    """Masked text, and in each step a batch of trees, which do not reach the text."""
    return Recipe(
        name="udprlm-phase-1",
        data=replace(_pieces("text", 384), gold="ud", gold_every=None, lang_exponent=0.7),
        model=UdPrlmOptions(usi=False),
        task=options.MlmOptions(),
        streams=(
            StreamOptions(
                "ud", _pieces("ud", 256), task=options.UslOptions(), share=1.0, joins=True
            ),
        ),
        training=_TRAINING,
    )


def phase_2() -> Recipe:
    """Masked text that reads the trees; a batch of trees in 0.8 of the steps."""
    first = phase_1()
    return replace(
        first,
        name="udprlm-phase-2",
        model=UdPrlmOptions(),
        streams=tuple(replace(stream, share=0.8) for stream in first.streams),
    )


def phase_2_corrected() -> Recipe:
    """Phase 2 with the content of heads, and whole matrices of labels."""
    return variant(phase_2(), "corrected", "neighbours=corrected", "mixing=corrected")


def phase_1_as_released() -> Recipe:
    """Phase 1 as the released scripts train it, with trees in 0.8 of the steps."""
    return variant(phase_1(), "as-released", *_RELEASED)


def phase_2_as_released() -> Recipe:
    """Phase 2 as the released scripts train it."""
    return variant(phase_2(), "as-released", *_RELEASED)


def direct() -> Recipe:
    """The parser inside the model alone: trees of a treebank, without text."""
    return Recipe(
        name="udprlm-direct",
        data=_pieces("ud", 256),
        model=UdPrlmOptions(usi=False),
        task=options.UslOptions(),
        training=replace(
            _TRAINING, batch_size=32, max_steps=None, evaluate_every=2000, keep="best"
        ),
    )


def xnli() -> Recipe:
    """XNLI from English: the state of [CLS] in h_(L+1)."""
    return Recipe(
        name="udprlm-xnli",
        data=_pieces("xnli", 128),
        model=UdPrlmOptions(),
        task=options.SequenceClassificationOptions(),
        training=TrainingOptions(),
    )


def squad() -> Recipe:
    """SQuAD 1.1, for XQuAD: spans of h_(L+1)."""
    data = replace(
        _pieces("squad", 384),
        template=("question passage",),
        truncation="only_second",
        stride=128,
    )
    return Recipe(
        name="udprlm-squad",
        data=data,
        model=UdPrlmOptions(),
        task=options.ExtractiveQaOptions(),
        training=TrainingOptions(
            epochs=2, batch_size=32, learning_rate=3e-5, warmup_share=0.1, evaluate_every=2000
        ),
    )


def parser() -> Recipe:
    """A fresh parser on frozen states: the last four layers and the further one, mixed.

    The paper's parser is supar's (appendix A): 300 numbers of a word's states, and 100 each of the
    word, its UPOS and its characters, three LSTM layers of 400. The rate of 2e-3 is supar's, and
    so, from memory, are betas and epsilon; it multiplies the rate by 0.75 every 5,000 steps, and
    ours is constant. Batches, passes and patience are our own choice.
    """
    lstm = ParserOptions(
        states="mix",
        mixed_layers=5,
        pieces="mean",
        tag="upos",
        tag_width=100,
        word_width=100,
        char_width=100,
        projection=300,
        context="lstm",
        context_layers=3,
        context_width=400,
        context_dropout=0.33,
        shared_dropout=True,
    )
    frozen = GroupOptions("encoder", ("encoder",), learning_rate=0.0)
    return Recipe(
        name="udprlm-parser",
        data=_pieces("ud", 256),
        model=UdPrlmOptions(),
        task=options.DependencyOptions(parser=lstm, metric="las_subtypes"),
        training=TrainingOptions(
            batch_size=32,
            epochs=100,
            learning_rate=2e-3,
            betas=(0.9, 0.9),
            epsilon=1e-12,
            schedule="constant",
            clip_norm=5.0,
            evaluate_every="epoch",
            patience=10,
        ),
        optimizers=(OptimizerOptions("main", groups=(frozen,)),),
    )


def parser_crosslingual() -> Recipe:
    """The fresh parser of other languages: of what joins the states, the tag alone.

    Train on one language (``data.lang``) and evaluate on others.
    """
    settings = ("task.parser.word_width=0", "task.parser.char_width=0")
    return variant(parser(), "crosslingual", *settings)


def constituency() -> Recipe:
    """A CRF parser of constituents on frozen states, mixed as for `udprlm-parser`.

    Sizes are those of Zhang, Zhou and Li (2020); training is that of `udprlm-parser`, our own
    choice, as is that the parser reads states alone.
    """
    fresh = parser()
    return replace(
        fresh,
        name="udprlm-constituency",
        data=_pieces("brackets", 256),
        task=options.ConstituencyOptions(
            states="mix", mixed_layers=5, pieces="mean", lstm_layers=3, lstm_width=400
        ),
    )


RECIPES.add("udprlm-phase-1", phase_1)
RECIPES.add("udprlm-phase-2", phase_2)
RECIPES.add("udprlm-phase-2-corrected", phase_2_corrected)
RECIPES.add("udprlm-phase-1-as-released", phase_1_as_released)
RECIPES.add("udprlm-phase-2-as-released", phase_2_as_released)
RECIPES.add("udprlm-direct", direct)
RECIPES.add("udprlm-xnli", xnli)
RECIPES.add("udprlm-squad", squad)
RECIPES.add("udprlm-parser", parser)
RECIPES.add("udprlm-parser-crosslingual", parser_crosslingual)
RECIPES.add("udprlm-constituency", constituency)
