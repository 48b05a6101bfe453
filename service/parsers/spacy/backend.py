"""spaCy as a parser: each token is a word of UD; white space is not shown to the pipeline."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from service.parsers.base import (
    Backend,
    Limits,
    ModelFile,
    Outcome,
    ParseInput,
    ParserIdentity,
    attempt,
)
from service.parsers.bulk import BulkParser
from service.parsers.columns import Annotation, Columns
from service.parsers.spacy.folder import FAMILY, files_of, find_spacy, spacy_version
from service.parsers.surface import Surface, joined_surface, within_limit
from syntax import Parse
from syntax.errors import ModelLoadError, ParsebankError
from syntax.extras import missing_extra

COMPONENTS: Final = (
    *("tok2vec", "transformer", "curated_transformer", "tagger", "morphologizer"),
    *("parser", "attribute_ruler", "lemmatizer", "trainable_lemmatizer"),
)

_PARAGRAPH: Final = re.compile(r"\r\n\s*\r\n|\n\s*\n|\r\s*\r")


@dataclass(frozen=True, slots=True)
class Draft:
    """Words that go through the pipeline together.

    Attributes:
        surface: Their spans in the text as received.
        starts: True for a word that begins a sentence; ``None`` lets the parser decide.
    """

    surface: Surface
    form: list[str]
    starts: list[bool | int | None]

    @property
    def is_one_sentence(self) -> bool:
        return not any(start is not False for start in self.starts[1:])


class SpacyParser(BulkParser):
    """A spaCy pipeline, a ``spacy.Language``."""

    lot_words = 2_000
    lot_texts = 64

    def __init__(self, nlp: Any, identity: ParserIdentity) -> None:
        super().__init__(identity)
        self._nlp = nlp
        self._has_xpos = "tagger" in nlp.pipe_names

    def _together(self, items: Sequence[ParseInput], limits: Limits) -> list[Outcome]:
        limit = limits.max_words_per_sentence
        found = [attempt(self._drafts, item, limit) for item in items]
        sound = [draft for drafts in found if isinstance(drafts, list) for draft in drafts]
        docs = iter(self._parsed(sound))
        return [
            drafts
            if isinstance(drafts, ParsebankError)
            else attempt(self._finished, item, [(one, next(docs)) for one in drafts], limit)
            for item, drafts in zip(items, found, strict=True)
        ]

    def _drafts(self, item: ParseInput, limit: int) -> list[Draft]:
        if item.mode in ("pretokenized", "tokens_mwt") and item.tokens is not None:
            whole, form = joined_surface(item.tokens), list(item.tokens)
        else:
            whole, form = self._words(item.joined)
        if not form:
            return []
        if item.mode == "raw":
            return [Draft(whole, form, _paragraphs(item.joined, whole))]
        return list(_pieces(item, whole, form, limit))

    def _words(self, text: str) -> tuple[Surface, list[str]]:
        tokens = [token for token in self._nlp.tokenizer(text) if not token.is_space]
        starts = [token.idx for token in tokens]
        form = [token.text for token in tokens]
        ends = [start + len(word) for start, word in zip(starts, form, strict=True)]
        return Surface(starts, ends, [1] * len(form)), form

    def _parsed(self, drafts: Sequence[Draft]) -> list[Any]:
        with _quietly():
            return list(self._nlp.pipe([self._doc(draft) for draft in drafts]))

    def _doc(self, draft: Draft) -> Any:
        from spacy.tokens import Doc

        surface = draft.surface
        followed = zip(surface.end, [*surface.start[1:], surface.end[-1]], strict=True)
        spaces = [end < start for end, start in followed]
        return Doc(self._nlp.vocab, words=draft.form, spaces=spaces, sent_starts=draft.starts)

    def _finished(self, item: ParseInput, parsed: Sequence[tuple[Draft, Any]], limit: int) -> Parse:
        """Finish a text; sentences that are too long are cut and parsed again."""
        columns = Columns(item.joined)
        for draft, doc in parsed:
            for first, end, surface in _sentences(draft, doc):
                if draft.is_one_sentence or end - first <= limit:
                    columns.add(surface, self._annotation(doc, first, end))
                    continue
                pieces = list(_pieces(item, surface, draft.form[first:end], limit))
                for piece, again in zip(pieces, self._parsed(pieces), strict=True):
                    columns.add(piece.surface, self._annotation(again, 0, len(again)))
        return columns.parse()

    def _annotation(self, doc: Any, first: int, end: int) -> Annotation:
        """Annotation of the words of a sentence.

        Words without a head in the sentence but the first of them hang from the first as
        ``parataxis``: spaCy's parser may leave several in a sentence that is given.
        """
        tokens = doc[first:end]
        above = [(token.i, token.head.i) for token in tokens]
        heads = [
            head - first + 1 if head != at and first <= head < end else 0 for at, head in above
        ]
        deprels = [token.dep_.partition("||")[0] for token in tokens]
        root = heads.index(0)
        for at, head in enumerate(heads):
            if head == 0:
                heads[at] = 0 if at == root else root + 1
                deprels[at] = "root" if at == root else "parataxis"
        return Annotation(
            form=[token.text for token in tokens],
            lemma=[token.lemma_ for token in tokens],
            upos=[token.pos_ for token in tokens],
            xpos=[token.tag_ if self._has_xpos else None for token in tokens],
            feats=[str(token.morph) for token in tokens],
            head=heads,
            deprel=deprels,
        )


def load_spacy(model: ModelFile, identity: ParserIdentity, device: str) -> SpacyParser:  # noqa: ARG001 - it runs on the processor whatever is asked for
    if files_of(model.path) != model.parts:
        # The fingerprint would be that of a part of the pipeline.
        raise ModelLoadError(
            f"files of {model.path} came or went since it was found, as while it is copied; "
            f"run `touch {model.path.parent}` once it is complete",
            path=str(model.path),
        )
    with _quietly():
        try:
            import spacy
        except ImportError as error:
            raise missing_extra(f"spaCy cannot be imported ({error})", "spacy") from None
        try:
            names = spacy.util.load_config(model.path / "config.cfg")["nlp"]["pipeline"]
            nlp = spacy.load(model.path, exclude=[name for name in names if name not in COMPONENTS])
        except Exception as error:
            # A damaged file raises whatever its format's reader raises.
            raise ModelLoadError(
                f"spaCy cannot load {model.path}: {type(error).__name__}: {str(error)[:300]}; copy "
                "the model again, and install the version of spaCy that it needs",
                path=str(model.path),
            ) from error
    parser = SpacyParser(nlp, identity)
    parser.parse(ParseInput("pretokenized", tokens=("a",)), Limits())
    return parser


SPACY: Final = Backend(
    FAMILY,
    find_spacy,
    spacy_version,
    load_spacy,
    options={"components": ",".join(COMPONENTS)},
    bulk=True,
)


def _pieces(item: ParseInput, whole: Surface, form: Sequence[str], limit: int) -> Iterator[Draft]:
    first = 0
    for surface in within_limit(item.joined, whole, limit, item.long_sentences):
        end = first + surface.word_count
        starts: list[bool | int | None] = [at == first for at in range(first, end)]
        yield Draft(surface, list(form[first:end]), starts)
        first = end


def _paragraphs(text: str, surface: Surface) -> list[bool | int | None]:
    gaps = zip(surface.end, surface.start[1:], strict=False)
    later = [True if _PARAGRAPH.search(text[end:start]) else None for end, start in gaps]
    return [True, *later]


def _sentences(draft: Draft, doc: Any) -> Iterable[tuple[int, int, Surface]]:
    if draft.is_one_sentence:
        return [(0, len(doc), draft.surface)]
    spans = [(sentence.start, sentence.end) for sentence in doc.sents]
    surface = draft.surface
    return [
        (a, z, Surface(surface.start[a:z], surface.end[a:z], surface.words[a:z])) for a, z in spans
    ]


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppress warnings: they are for people who make pipelines, and may hold texts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
