"""UDPipe sentences from parses, spaced as UDPipe's own tokenizer records it, for its writers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import ufal.udpipe

from service.lindat.request import Tokenizer
from syntax import Parse

_SPACES: Final = re.compile(r"[\r\n\t ]+")
_LINE_END: Final = re.compile(r"[^\r\n]*[\r\n]*")
_NEW_PARAGRAPH: Final = 2


@dataclass(frozen=True, slots=True)
class Placed:
    """A parse of a part of a document, and the characters before that part."""

    start: int
    parse: Parse


@dataclass(frozen=True, slots=True)
class Shown:
    """Annotation to write."""

    tags: bool
    heads: bool


def tokenized(text: str, parses: Sequence[Placed], options: Tokenizer, shown: Shown) -> list[Any]:
    """Sentences of a document from parses of its parts in order, with paragraphs."""
    sentences: list[Any] = []
    for tokens in _by_sentence(list(_tokens(text, parses, options.presegmented))):
        sentence = _sentence(tokens, shown)
        _record_spaces(sentence, tokens, options)
        _comment(sentence, tokens, len(sentences) + 1)
        sentences.append(sentence)
    return sentences


def annotate(sentence: Any, parse: Parse, shown: Shown, first_word: int = 0) -> None:
    """Write a parse, from ``first_word`` on, into its sentence; all else stays."""
    if shown.heads:
        sentence.unlinkAllNodes()
    words = sentence.words
    for at in range(first_word, first_word + len(words) - 1):
        # By index: iteration would give copies.
        word = words[at - first_word + 1]
        if shown.tags:
            # UDPipe's taggers give an underscore for a lemma that they do not know.
            word.lemma = parse.lemma[at] or "_"
            word.upostag, word.xpostag = parse.upos[at] or "", parse.xpos[at] or ""
            word.feats = parse.feats[at] or ""
        if shown.heads:
            sentence.setHead(at - first_word + 1, parse.head[at], parse.deprel[at] or "")


def write(sentences: Sequence[Any], output: str) -> str:
    writer = ufal.udpipe.OutputFormat.newOutputFormat(output)
    return "".join([*map(writer.writeSentence, sentences), writer.finishDocument()])


@dataclass(slots=True)
class _Token:
    """A token of a document, and the characters around it.

    As in UDPipe, white space after a sentence belongs to its last token, and the rest to the first
    token of the next sentence.

    Attributes:
        words: First word and end in the parse.
        span: Start and end in the document.
    """

    parse: Parse
    words: tuple[int, int]
    span: tuple[int, int]
    written: str
    ends_sentence: bool
    before: str = ""
    after: str = ""
    line_breaks: int = _NEW_PARAGRAPH

    @property
    def is_multiword(self) -> bool:
        return self.words[1] - self.words[0] > 1


def _tokens(text: str, parses: Sequence[Placed], by_line: bool) -> Iterator[_Token]:
    last: _Token | None = None
    for token in _bare_tokens(text, parses):
        _share_gap(text, last, token, by_line)
        yield token
        last = token
    if last is not None:
        last.after = _own_spaces(text[last.span[1] :], by_line)


def _bare_tokens(text: str, parses: Sequence[Placed]) -> Iterator[_Token]:
    for placed in parses:
        parse, shift = placed.parse, placed.start
        ends = {end for _, end in parse.word_ranges()}
        spans = zip(parse.token_start, parse.token_end, parse.token_ranges(), strict=True)
        for start, end, words in spans:
            span = (start + shift, end + shift)
            yield _Token(parse, words, span, text[slice(*span)], words[1] in ends)


def _share_gap(text: str, last: _Token | None, token: _Token, by_line: bool) -> None:
    if last is None:
        token.before = text[: token.span[0]]
        return
    gap = text[last.span[1] : token.span[0]]
    last.after = _own_spaces(gap, by_line) if last.ends_sentence else gap
    token.before = gap[len(last.after) :]
    token.line_breaks = gap.count("\n")


def _own_spaces(gap: str, by_line: bool) -> str:
    """White space that belongs to the sentence before it; of lines, up to the end of its line."""
    if by_line:
        gap = "".join(_LINE_END.findall(gap)[:1])
    for position, character in enumerate(gap):
        if character not in "\r\n\t" and unicodedata.category(character) != "Zs":
            return gap[:position]
    return gap


def _by_sentence(tokens: Sequence[_Token]) -> Iterator[Sequence[_Token]]:
    first = 0
    for end, token in enumerate(tokens, 1):
        if token.ends_sentence:
            yield tokens[first:end]
            first = end


def _sentence(tokens: Sequence[_Token], shown: Shown) -> Any:
    parse, first, end = tokens[0].parse, tokens[0].words[0], tokens[-1].words[1]
    sentence = ufal.udpipe.Sentence()
    for form in parse.form[first:end]:
        sentence.addWord(_one_line(form))
    for number, misc in enumerate((parse.misc or [])[first:end], 1):
        sentence.words[number].misc = misc or ""
    for token in filter(lambda token: token.is_multiword, tokens):
        ids = token.words[0] - first + 1, token.words[1] - first
        multiword = ufal.udpipe.MultiwordToken(*ids, _one_line(token.written), "")
        sentence.multiwordTokens.push_back(multiword)
    annotate(sentence, parse, shown, first)
    return sentence


def _record_spaces(sentence: Any, tokens: Sequence[_Token], options: Tokenizer) -> None:
    for token, target in zip(tokens, _targets(sentence, tokens), strict=True):
        if options.normalized_spaces:
            target.setSpaceAfter(token.after != "")
        else:
            target.setSpacesBefore(token.before)
            target.setSpacesAfter(token.after)
            target.setSpacesInToken("" if token.written == target.form else token.written)
        if options.ranges:
            target.setTokenRange(*token.span)


def _targets(sentence: Any, tokens: Sequence[_Token]) -> Iterator[Any]:
    first, words, multiword = tokens[0].words[0], sentence.words, sentence.multiwordTokens
    number = count()
    for token in tokens:
        if token.is_multiword:
            yield multiword[next(number)]
        else:
            yield words[token.words[0] - first + 1]


def _comment(sentence: Any, tokens: Sequence[_Token], number: int) -> None:
    if number == 1:
        sentence.setNewDoc(True, "")
    if tokens[0].line_breaks >= _NEW_PARAGRAPH:
        sentence.setNewPar(True, "")
    sentence.setSentId(str(number))
    forms = [target.form for target in _targets(sentence, tokens)]
    gaps = [" " if token.after else "" for token in tokens[:-1]]
    text = "".join(map("".join, zip(forms, [*gaps, ""], strict=True)))
    sentence.comments.push_back(f"# text = {text}")


def _one_line(form: str) -> str:
    return _SPACES.sub(" ", form)
