"""The options of each task: what a recipe trains a model to do. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np

from syntax.errors import SpecError
from syntax.options import (
    Bounds,
    Count,
    NonNegative,
    NonNegativeInt,
    Probability,
    Share,
    check_range,
)
from syntax.trees.constituents import CHAIN, PART, Constituent, ConstituentTree, binarised
from syntax.variant import Variant
from trainer.metrics.answers import Rules
from trainer.options.parser import (
    BIAFFINE,
    LINEAR,
    MixedStates,
    ParserOptions,
    TaggerOptions,
    Trees,
    cut_trees,
    fitted_parser,
    universal,
    words_with,
)
from trainer.options.task import TaskOptions
from trainer.tasks.next_pieces import NextPieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featurestore import FeatureDataset
    from syntax.batches import SpecialTokens
    from trainer.denoising import SpanNoise
    from trainer.masking import PieceMasking
    from trainer.nn.target import TargetTokenizer
    from trainer.options.data import DataOptions

METRICS: Final[Mapping[str, tuple[str, ...]]] = {
    "distance": ("uuas", "spearman"),
    "depth": ("root_accuracy", "spearman"),
}
"""Metrics to select models on, by the target of a structural probe."""

TEXT_IDS: Final = "text_ids"


@dataclass(frozen=True, slots=True)
class SequenceClassificationOptions(TaskOptions):
    """One class for each example.

    Attributes:
        label: The label column, of kind ``class``.
        metric: Selects models, of `trainer.metrics.classification.CLASS_METRICS`: ``accuracy``,
            mean F1 of the classes (``macro_f1``), or Matthews' correlation (``mcc``), as in CoLA.
        pooler: Whether [CLS] goes through the encoder's own pretrained pooler, as in BERT.
        state: The classified state: of the ``first`` position, [CLS], or ``last``, as in BART.
        item: A label column of kind ``string`` that the model is given, such as the sense that two
            verses may share: each value is a token of its own, behind the last separator.
        items: Its values; those of the training examples when left out. Others share one token.
    """

    name: str = "sequence_classification.v1"
    label: str = "label"
    metric: str = "accuracy"
    pooler: bool = False
    state: Literal["first", "last"] = "first"
    item: str | None = None
    items: tuple[str, ...] = ()

    def columns(self) -> tuple[str, ...]:
        return (self.label, *self.given())

    def given(self) -> tuple[str, ...]:
        return () if self.item is None else (self.item,)

    def fitted(self, dataset: FeatureDataset) -> SequenceClassificationOptions:
        if self.item is None or self.items:
            return self
        values = dataset.columns([self.item])[self.item].to_pylist()
        return replace(self, items=tuple(sorted({value for value in values if value})))

    def settled(self, before: TaskOptions) -> TaskOptions:
        if not isinstance(before, SequenceClassificationOptions) or self.item != before.item:
            return self
        return replace(self, items=self.items or before.items)

    def added_tokens(self) -> int:
        """One for each item, and one for all others."""
        return 0 if self.item is None else 1 + len(self.items)

    def special_tokens(self, special: SpecialTokens) -> SpecialTokens:
        """A token more behind the last one: the first that is added, which `arrays` replaces."""
        if self.item is None:
            return special
        suffix = (*special.suffix, special.vocab_size)
        return replace(special, suffix=suffix, vocab_size=special.vocab_size + self.added_tokens())

    def arrays(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.item is None:
            return arrays
        places = {item: place for place, item in enumerate(self.items, start=1)}
        input_ids = arrays["input_ids"].copy()  # the stream may use its own memory again
        found = [places.get(item, 0) for item in arrays[self.item]]
        input_ids[np.arange(len(found)), arrays["lengths"] - 1] += np.array(found, np.int64)
        return {**arrays, "input_ids": input_ids}


@dataclass(frozen=True, slots=True)
class TokenClassificationOptions(TaskOptions):
    """One class for each token of the dataset; scored on those tokens, whatever the parser cut.

    Attributes:
        label: The label column, of kind ``tags``.
        pieces: Predict at the ``first`` piece of a token, or at the first of each of its parsed
            ``words``, of which the first word counts in the scores.
        word_labels: A switch: the label of a token's second word.
        positive: The tag whose tokens F1 and F0.5 are of, where tags spell no entities.
        metric: Selects models: F1 or F0.5 of entities, or accuracy of tokens.
        tagger: Parts between the encoder and the tags; a linear map when left out.
    """

    name: str = "token_classification.v1"
    label: str = "tags"
    pieces: Literal["first", "words"] = "first"
    word_labels: Variant = "as_published"
    positive: str | None = None
    metric: Literal["f1", "f05", "accuracy"] = "f1"
    tagger: TaggerOptions = LINEAR

    def __post_init__(self) -> None:
        TaskOptions.__post_init__(self)
        if self.tagger != LINEAR and self.pieces != "first":
            raise SpecError(
                f"task.tagger tags tokens, and task.pieces is {self.pieces!r}; set task.pieces="
                "first, or leave the tagger's options alone"
            )

    def columns(self) -> tuple[str, ...]:
        return (self.label,)


@dataclass(frozen=True, slots=True)
class IntentSlotsOptions(TaskOptions):
    """One class for an utterance, and one for each of its tokens.

    Attributes:
        intent: The label column of the utterance, of kind ``class``.
        slots: The label column of the tokens, of kind ``tags``.
        pieces, word_labels: As in `TokenClassificationOptions`.
        slot_weight: Weight of the slots' loss beside the intent's.
        metric: Selects models: share of utterances all right, accuracy of intents, or F1 of slots.
    """

    name: str = "intent_slots.v1"
    intent: str = "intent"
    slots: str = "slots"
    pieces: Literal["first", "words"] = "first"
    word_labels: Variant = "as_published"
    slot_weight: NonNegative = 1.0
    metric: Literal["exact_match", "intent_accuracy", "slot_f1"] = "exact_match"

    def columns(self) -> tuple[str, ...]:
        return (self.intent, self.slots)


@dataclass(frozen=True, slots=True)
class RelationOptions(TaskOptions):
    """The class of two given mentions: a relation, or the role that an argument has of an event.

    Attributes:
        label: The label column, of kind ``class``.
        subject, object: The label columns of the mentions, of kind ``spans``.
        tags: A label column of kind ``tags`` that models may read, such as named entities.
        null: The class that stands for none, which scores leave out.
        empty_precision: A switch: precision where nothing but ``null`` is predicted.
        classifier: A switch: the layers over the text and the two mentions.
    """

    name: str = "relation.v1"
    label: str = "relation"
    subject: str = "subject"
    object: str = "object"
    tags: str | None = "ner"
    null: str = "no_relation"
    empty_precision: Variant = "as_published"
    classifier: Variant = "as_published"

    def columns(self) -> tuple[str, ...]:
        return (self.label, *self.given())

    def given(self) -> tuple[str, ...]:
        return (*self.spans(), *([self.tags] if self.tags else []))

    def spans(self) -> tuple[str, ...]:
        return (self.subject, self.object)


@dataclass(frozen=True, slots=True)
class ExtractiveQaOptions(TaskOptions):
    """A span of a passage for each question.

    Attributes:
        answers: The label column, of kind ``spans``; an example without spans has no answer.
        segment: Segment of the passage: 1 after the question, 0 before it.
        normalisation: Softmax over a ``sequence`` or all of a ``passage`` (Clark and Gardner 2018).
        sentence_head: Whether [CLS] scores its sequence, learned with the spans by one softmax over
            the passage; the answer is then the best span of the best sequence.
        no_answer: Whether a question may have no answer, which [CLS] then stands for.
        threshold: With ``no_answer``: how much [CLS] must score above the best answer.
        tune_threshold: Score dev, and then other data, with the threshold best for F1 on dev.
        max_answer: Pieces of an answer at most.
        rules: Comparison of answers: ``squad`` (1.1), ``squad2``, ``mlqa``; else the dataset's own.
        metric: Selects models.
    """

    name: str = "extractive_qa.v1"
    answers: str = "answers"
    segment: NonNegativeInt = 1
    normalisation: Literal["sequence", "passage"] = "sequence"
    sentence_head: bool = False
    no_answer: bool = False
    threshold: float = 0.0
    tune_threshold: bool = False
    max_answer: Count = 30
    rules: Rules | None = None
    metric: Literal["f1", "exact_match"] = "f1"

    def __post_init__(self) -> None:
        TaskOptions.__post_init__(self)
        if self.no_answer and self.normalisation == "passage":
            raise SpecError(
                "task.no_answer goes with task.normalisation=sequence: a passage has a [CLS] for "
                "each of its sequences"
            )
        if self.no_answer and self.sentence_head:
            raise SpecError(
                "task.sentence_head goes with task.no_answer=false: it asks which sequence of a "
                "passage has the answer"
            )
        if self.tune_threshold and not self.no_answer:
            raise SpecError("task.tune_threshold is about task.no_answer, which is false")

    def columns(self) -> tuple[str, ...]:
        return (self.answers,)

    def rules_of(self, dataset: str) -> Rules:
        """The rules asked for; else MLQA's of ``mlqa``, and of any other dataset SQuAD's own."""
        if self.rules is not None or dataset == "mlqa":
            return self.rules or "mlqa"
        return "squad2" if self.no_answer else "squad"

    def with_rules(self, rules: Rules) -> ExtractiveQaOptions:
        return replace(self, rules=rules)

    def has_labels(self, values: Mapping[str, Sequence[Any]]) -> bool:
        """True where a question has an answer, or is said to have none where that is one, too."""
        answers = values[self.answers]
        return any(x is not None for x in answers) if self.no_answer else any(answers)

    def tuned(self, scores: Mapping[str, Any]) -> ExtractiveQaOptions:
        if not self.tune_threshold:
            return self
        return replace(self, threshold=scores["threshold"], tune_threshold=False)


@dataclass(frozen=True, slots=True)
class MultipleChoiceOptions(TaskOptions):
    """The right one of several sequences of an example, which ``data.template`` makes.

    Attributes:
        label: The label column, of kind ``class``: a class for each sequence of the template.
        group: A label column, of kind ``class``; accuracy is also given for each of its classes.
    """

    name: str = "multiple_choice.v1"
    label: str = "label"
    group: str | None = None

    def columns(self) -> tuple[str, ...]:
        return (self.label, *([self.group] if self.group else []))

    def found(self) -> tuple[str, ...]:
        return (self.label,)

    def has_labels(self, values: Mapping[str, Sequence[Any]]) -> bool:
        return any(values[self.label])


@dataclass(frozen=True, slots=True)
class StructuralProbeOptions(TaskOptions):
    """A linear map of the states that is to tell the trees; no label column is read.

    Attributes:
        target: ``distance`` between words, or their ``depth``.
        rank: Of the linear map.
        metric: Selects models: ``uuas`` (distance), ``root_accuracy`` (depth), or ``spearman``; the
            first that fits when left out.
        shortest, longest: Words of the sentences that ``spearman`` averages over.
    """

    name: str = "structural_probe.v1"
    target: Literal["distance", "depth"] = "distance"
    rank: Count = 128
    metric: Literal["uuas", "root_accuracy", "spearman"] | None = None
    shortest: Count = 5
    longest: int = 50

    def __post_init__(self) -> None:
        TaskOptions.__post_init__(self)
        check_range("task.longest", self.longest, self.shortest)
        if self.metric is not None and self.metric not in METRICS[self.target]:
            raise SpecError(
                f"task.metric is {self.metric!r}; a probe of {self.target} has "
                f"{' and '.join(METRICS[self.target])}"
            )

    @property
    def headline(self) -> str:
        return self.metric or METRICS[self.target][0]


@dataclass(frozen=True, slots=True)
class DependencyOptions(TaskOptions):
    """A biaffine parser over any encoder.

    Attributes:
        parser: Its parts and sizes; settings such as ``task.parser.arc=100``.
        trees: Trees to learn and score by: ``gold`` ones, or ``all``, those of parsers, too.
        upos: Whether it also gives universal tags, from the same states of words.
        decoding: ``mst``: the best tree of each sentence; ``greedy``: the best head of each word,
            which may make cycles and several roots.
        single_root: With ``mst``, exactly one word of a sentence hangs from ROOT and has the
            relation ``root``, and no other, as Universal Dependencies want it.
        mst_space: A switch.
        metric: Selects models.
    """

    name: str = "dependency.v1"
    parser: ParserOptions = BIAFFINE
    trees: Trees = "gold"
    upos: bool = False
    decoding: Literal["mst", "greedy"] = "mst"
    single_root: bool = True
    mst_space: Variant = "as_published"
    metric: Literal["las", "uas", "clas", "las_subtypes", "las_no_punct_subtypes"] = "las"

    def reads_parses(self) -> bool:
        """True: whole relations and language-specific tags are in the parses alone."""
        return True

    def fitted(self, dataset: FeatureDataset) -> DependencyOptions:
        return replace(self, parser=fitted_parser(self.parser, dataset, self.trees))

    def settled(self, before: TaskOptions) -> TaskOptions:
        if not isinstance(before, DependencyOptions):
            return self
        return replace(self, parser=self.parser.settled(before.parser))

    def warnings(self, dataset: FeatureDataset, data: DataOptions) -> Iterator[str]:
        return cut_trees(dataset, data)


@dataclass(frozen=True, slots=True)
class ConstituencyOptions(TaskOptions):
    """A CRF parser of constituents over any encoder (Zhang, Zhou and Li 2020).

    Attributes:
        label: The label column of constituents, of kind ``spans``, over tokens.
        tags: The label column of the tokens' tags, by which evalb finds punctuation; the model does
            not read them.
        span, label_width: Width of the projections that score stretches and their labels.
        dropout: Of the words' states, in the LSTM, and of whole features of the projections.
        states, mixed_layers, pieces: As in `ParserOptions`.
        lstm_layers, lstm_width: Of an LSTM over the words, in each direction; 0 layers for none.
        labels: Of binary trees (`syntax.trees.constituents.binarised`); those of the training trees
            when left out, and a result records them.
        metric: Selects models.
    """

    name: str = "constituency.v1"
    label: str = "constituents"
    tags: str = "pos"
    span: Count = 500
    label_width: Count = 100
    dropout: Probability = 0.33
    states: MixedStates = "last"
    mixed_layers: Count | None = None
    pieces: Literal["first", "mean"] = "first"
    lstm_layers: NonNegativeInt = 0
    lstm_width: Count = 400
    labels: tuple[str, ...] = ()
    metric: Literal["f1", "unlabelled_f1", "complete_match"] = "f1"

    def columns(self) -> tuple[str, ...]:
        return (self.label, self.tags)

    def fitted(self, dataset: FeatureDataset) -> ConstituencyOptions:
        if self.labels:
            return self
        names: set[str] = set()
        for example_id, tree in stored_trees(dataset, self.label, self.tags):
            if tree is None:
                continue
            for label, *_ in tree.constituents:
                if not label or CHAIN in label or label.endswith(PART):
                    raise SpecError(
                        f"{example_id} has a constituent {label!r}; labels are not empty, have no "
                        f"{CHAIN!r} in them and no {PART!r} at their end, which mark binary trees"
                    )
            found = binarised(len(tree.words), tree.constituents)
            names.update(label for label, *_ in found)
        return replace(self, labels=tuple(sorted(names)))

    def settled(self, before: TaskOptions) -> TaskOptions:
        if not isinstance(before, ConstituencyOptions):
            return self
        return replace(self, labels=self.labels or before.labels)


def stored_trees(
    data: FeatureDataset, label: str, tags: str
) -> Iterator[tuple[str, ConstituentTree | None]]:
    """The id and the tree of each example; None for one without labels."""
    table = data.columns(["example_id", "texts", "token_counts", "token_offsets", label, tags])
    for name, texts, counts, offsets, spans, tagged in zip(
        *(one.to_pylist() for one in table), strict=True
    ):
        if spans is None or not tagged:
            yield name, None
            continue
        ends = np.frombuffer(offsets, "<i4").reshape(-1, 2)[: counts[0]].tolist()
        starts = {start: token for token, (start, _) in enumerate(ends)}
        behind = {end: token + 1 for token, (_, end) in enumerate(ends)}
        found = []
        for span in spans:
            first, last = starts.get(span["start_char"]), behind.get(span["end_char"])
            if first is None or last is None or first >= last:
                raise SpecError(
                    f"{name} has a constituent {span['label']} of the characters "
                    f"{span['start_char']} to {span['end_char']}; it does not begin and end with "
                    "tokens"
                )
            found.append(Constituent(span["label"], first, last))
        words = tuple(texts[0][start:end] for start, end in ends)
        yield name, ConstituentTree(words, tuple(tagged), tuple(found))


@dataclass(frozen=True, slots=True)
class UslOptions(TaskOptions):
    """The tree of pieces that ``data.policy`` makes of each sentence.

    Attributes:
        labels: Whole relations behind `RESERVED`; those of the training trees when left out.
        trees: Trees to learn and score by: ``gold`` ones, or ``all``.
        specials_in_loss: Whether special tokens have a head to learn, [CLS], and a label, ``_``.
        mask_reserved: Whether a word never gets a reserved label.
        metric: Selects models.
    """

    name: str = "usl.v1"
    labels: tuple[str, ...] = ()
    trees: Trees = "gold"
    specials_in_loss: bool = True
    mask_reserved: bool = True
    metric: Literal["las", "uas", "clas", "las_subtypes", "las_no_punct_subtypes"] = "las_subtypes"

    def reads_parses(self) -> bool:
        return True

    def fitted(self, dataset: FeatureDataset) -> UslOptions:
        from trainer.nn.piece_parser import RESERVED

        if self.labels or not (found := words_with(dataset, "deprel", self.trees)):
            return self
        relations = (name for name in found if name not in RESERVED)
        return replace(self, labels=(*RESERVED, *relations))

    def settled(self, before: TaskOptions) -> TaskOptions:
        if not isinstance(before, UslOptions):
            return self
        return replace(self, labels=self.labels or before.labels)

    def warnings(self, dataset: FeatureDataset, data: DataOptions) -> Iterator[str]:
        return cut_trees(dataset, data)


@dataclass(frozen=True, slots=True)
class UniversalParserOptions(TaskOptions):
    """A parser of heads and of relations without subtypes, over words and ROOT.

    Attributes:
        arc, relation: Width of the projections that score heads and relations.
        parser_dropout: Of whole features: of the words' states, and of the projections.
        root: The state of ROOT: that of the ``first`` position, or a ``learned`` vector.
        longest: Sentences of so many words, ROOT included, or more are counted and not scored.
        trees: Trees to learn and score by: ``gold`` ones, or ``all``.
        relations: Without subtypes; those of the training trees when left out. Results record them.
        metric: Selects models.
    """

    arc: Count = 512
    relation: Count = 128
    parser_dropout: Probability = 0.2
    root: Literal["first", "learned"] = "first"
    longest: Count = 140
    trees: Trees = "gold"
    relations: tuple[str, ...] = ()
    metric: Literal["las_no_punct", "uas_no_punct", "las", "uas"] = "las_no_punct"

    def reads_parses(self) -> bool:
        return True

    def fitted(self, dataset: FeatureDataset) -> UniversalParserOptions:
        if self.relations:
            return self
        found = words_with(dataset, "deprel", self.trees)
        return replace(self, relations=tuple(sorted({universal(name) for name in found})))

    def settled(self, before: TaskOptions) -> UniversalParserOptions:
        if not isinstance(before, UniversalParserOptions):
            return self
        return replace(self, relations=self.relations or before.relations)

    def warnings(self, dataset: FeatureDataset, data: DataOptions) -> Iterator[str]:
        return cut_trees(dataset, data)


@dataclass(frozen=True, slots=True)
class GraphParserOptions(UniversalParserOptions):
    """A biaffine parser that chooses the best tree of arcs and relations together.

    Attributes:
        single_root: Whether exactly one word of a sentence hangs from ROOT.
        mst_space: A switch.
    """

    name: str = "graph_parser.v1"
    single_root: bool = False
    mst_space: Variant = "as_published"


@dataclass(frozen=True, slots=True)
class StackParserOptions(UniversalParserOptions):
    """A stack-pointer network; a text is one tree, whatever its sentences are.

    Attributes:
        decoder_input, decoder_width: Of the LSTM.
        input_dropout, state_dropout: Of its input and states; the same at all steps.
        beam, dev_beam: Hypotheses that are kept: by a trained model, and on dev in training.
        ordered: Whether children are found in the order of the sentence, where that can be.
        search: Score of a move: of ``arcs`` alone, as published, or of relations, too (``joint``).
    """

    name: str = "stack_parser.v1"
    decoder_input: Count = 256
    decoder_width: Count = 300
    input_dropout: Probability = 0.2
    state_dropout: Probability = 0.1
    beam: Count = 5
    dev_beam: Count = 1
    ordered: bool = True
    search: Literal["arcs", "joint"] = "arcs"


@dataclass(frozen=True, slots=True)
class TreesOptions(TaskOptions):
    """No options: the objectives of the recipe are all that is learned."""

    name: str = "trees.v1"


@dataclass(frozen=True, slots=True)
class TranslationOptions(TaskOptions):
    """A text for each example.

    Attributes:
        label: The label column with the text, of kind ``string``.
        tokenizer: Folder or name of the text's tokenizer; that of the source when left out.
        fingerprint, vocabulary, pad, start, end: Of that tokenizer; training examples give them.
        longest: Most pieces of a text in training, the end among them; the rest is cut off, so that
            no end is learned there. ``target_too_long`` among the outcomes counts such texts.
        decoder_layers: As many as the encoder's when left out; the decoder has its other sizes.
        tie: Embeddings of the output layer: the ``target``'s, or with ``all`` those of source and
            target in one, which takes one tokenizer for both.
        output_mlp: Whether a layer with GELU goes before the output layer (SG-Net, equation 17).
        language: Of the text, which begins with the tokenizer's token ``<LANGUAGE>`` (PLBART).
        source_language: Of the source: its token stands behind the source's end.
        source_token: The id of that token.
        smoothing: Share of the target's probability that all ids have in equal parts, in training.
        beam: Hypotheses of the search; 1 is greedy decoding.
        length_penalty: Of `trainer.nn.generation.Search`.
        metric: Selects models; ``smoothed_bleu`` is CodeXGLUE's of summaries.
        code: Programming language of the texts, whose scores then have CodeBLEU.
        bleu: sacrebleu's tokenizer for BLEU; ``none`` for text that is tokenized already.
    """

    name: str = "translation.v1"
    label: str = "target"
    tokenizer: str | None = None
    fingerprint: str = ""
    vocabulary: int = 0
    pad: int = 0
    start: int = 0
    end: int = 0
    longest: Count = 256
    decoder_layers: Count | None = None
    tie: Literal["target", "all"] = "target"
    output_mlp: bool = False
    language: str | None = None
    source_language: str | None = None
    source_token: int | None = None
    smoothing: Probability = 0.1
    beam: Count = 5
    length_penalty: float = 0.6
    metric: Literal["bleu", "chrf", "exact_match", "smoothed_bleu", "codebleu"] = "bleu"
    code: Literal["java", "c_sharp"] | None = None
    bleu: str = "13a"

    def __post_init__(self) -> None:
        TaskOptions.__post_init__(self)
        if self.metric == "codebleu" and self.code is None:
            raise SpecError("task.metric=codebleu needs task.code, `java` or `c_sharp`")

    def columns(self) -> tuple[str, ...]:
        return (self.label,)

    def target(self) -> TargetTokenizer:
        from trainer.nn.target import target_tokenizer

        assert self.tokenizer is not None
        found = target_tokenizer(self.tokenizer)
        if self.fingerprint not in ("", found.fingerprint):
            raise SpecError(
                f"the run writes pieces of the tokenizer {self.fingerprint[:12]}, and "
                f"{self.tokenizer} has {found.fingerprint[:12]} now; put the earlier one back",
                expected=self.fingerprint,
                found=found.fingerprint,
            )
        return found

    def arrays(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        """The batch with the ids of the texts, int64 (B, T), where any example has a text."""
        from trainer.denoising import IGNORED
        from trainer.outcomes import outcome_arrays

        texts = arrays[self.label]
        if all(text is None for text in texts):
            return arrays
        target = self.target()
        ids_BT = target.encode(texts, self.longest)
        last = ids_BT[:, self.longest - 1 :]  # empty where no text is so long
        cut = int(((last != IGNORED) & (last != target.end)).sum())
        return {**arrays, TEXT_IDS: ids_BT, **outcome_arrays({"target_too_long": cut})}

    def lengths(self, dataset: FeatureDataset) -> NDArray[np.int64]:
        texts = dataset.columns([self.label])[self.label].to_pylist()
        return self.target().lengths(texts, self.longest)

    def fitted(self, dataset: FeatureDataset) -> TranslationOptions:
        own = replace(self, tokenizer=self.tokenizer or dataset.card.tokenizer)
        found, source = own.target(), self.source_language
        return replace(
            own,
            fingerprint=found.fingerprint,
            vocabulary=found.special.vocab_size,
            pad=found.special.pad_id,
            start=found.start if self.language is None else found.language(self.language),
            end=found.end,
            source_token=None if source is None else found.language(source),
        )

    def special_tokens(self, special: SpecialTokens) -> SpecialTokens:
        if self.source_token is None:
            return special
        return replace(special, suffix=(*special.suffix, self.source_token))

    def settled(self, before: TaskOptions) -> TranslationOptions:
        if not isinstance(before, TranslationOptions) or self.tokenizer not in (
            None,
            before.tokenizer,
        ):
            return self
        return replace(
            self,
            tokenizer=before.tokenizer,
            fingerprint=before.fingerprint,
            vocabulary=before.vocabulary,
            pad=before.pad,
            start=before.start,
            end=before.end,
            source_token=before.source_token,
        )


@dataclass(frozen=True, slots=True)
class DenoisingOptions(TaskOptions):
    """A share of each text is covered, and the model writes the text; no label column is read.

    Attributes:
        language: Of the texts. The tokenizer has a token ``<LANGUAGE>`` for it.
        noise: A switch.
        covered: Share of the pieces; as released 0.3, of the words.
        mean: Of the lengths of spans, which are Poisson's.
        random: As released: share of the masks that are a random piece instead.
        token: Id of the token of the language, which the training examples give.
    """

    name: str = "denoising.v1"
    language: str = "en"
    noise: Variant = "as_published"
    covered: Share = 0.35
    mean: Annotated[float, Bounds(0.1, 20)] = 3.5
    random: Probability = 0.1
    token: int | None = None

    def fitted(self, dataset: FeatureDataset) -> DenoisingOptions:
        from trainer.nn.target import target_tokenizer

        found = target_tokenizer(dataset.card.tokenizer).language(self.language)
        return replace(self, token=found)

    def settled(self, before: TaskOptions) -> TaskOptions:
        return replace(self, token=getattr(before, "token", None))

    def special_tokens(self, special: SpecialTokens) -> SpecialTokens:
        assert self.token is not None
        return replace(special, suffix=(*special.suffix, self.token))

    def samplers(self, special: SpecialTokens) -> tuple[SpanNoise, ...]:
        from trainer.denoising import SpanNoise

        if special.mask_id is None or len(special.suffix) < 2:
            raise SpecError(
                "denoising needs a tokenizer with a mask token and one that ends a text; take one "
                "such as `parsebank tokenizers train --kind bpe` makes"
            )
        ids = (special.mask_id, special.pad_id, special.suffix[-2], special.vocab_size)
        return (SpanNoise(*ids, self.noise, self.covered, self.mean, self.random),)

    def arrays(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        from trainer.denoising import with_noise

        return with_noise(arrays)


@dataclass(frozen=True, slots=True)
class MlmOptions(TaskOptions):
    """Some pieces are hidden, and the model finds them; no label column is read.

    Attributes:
        masked: Share of the pieces that are predicted, special tokens apart.
        whole_words: Whether the pieces of a word are predicted together.
        output_bias: Whether each id has a bias; MicroBERT's release has none.
    """

    name: str = "mlm.v1"
    masked: Share = 0.15
    whole_words: bool = False
    output_bias: bool = True

    def samplers(self, special: SpecialTokens) -> tuple[PieceMasking, ...]:
        from trainer.masking import piece_masking

        return (piece_masking(special, self.masked, self.whole_words),)


@dataclass(frozen=True, slots=True)
class ClmOptions(TaskOptions):
    """Each piece is to be told from those before it; no label column is read."""

    name: str = "clm.v1"

    def samplers(self, special: SpecialTokens) -> tuple[NextPieces, ...]:  # noqa: ARG002
        return (NextPieces(),)
