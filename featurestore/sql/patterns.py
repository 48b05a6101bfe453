"""Graph patterns over the words of the store, in a part of Grew's syntax, as SQL.

``pattern { V [upos=VERB]; V -[obj]-> O; O << V }`` is an example; docs/reference/store.md lists
what is understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, NamedTuple

from featurestore.tables.delta import quoted
from syntax.errors import SpecError

_PATTERN: Final = re.compile(r"(?:\s|%[^\n]*\n)*pattern\s*\{")
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|%[^\n]*)
    |(?P<regex>re"(?:[^"\\]|\\.)*")
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<sign>->|-\[|\]->|<<|>>|<>|[<>=|,;{}\[\]!^*.])
    |(?P<name>\w+(?::\w+)*)""",
    re.VERBOSE,
)
_COLUMNS: Final = ("form", "lemma", "upos", "xpos")
_SHOWN: Final = ("id", *_COLUMNS, "feats", "head", "deprel")
_SENTENCE: Final = ("key", "lang", "parser", "sentence")
_ORDER: Final = {"<": "{0} + 1 = {1}", "<<": "{0} < {1}", ">": "{0} = {1} + 1", ">>": "{0} > {1}"}


def as_sql(query: str) -> str:
    """A query in SQL: a graph pattern becomes one, SQL stays as it is.

    What follows the blocks of a pattern is SQL over ``matches``. It has a row for each match, with
    the columns ``key``, ``lang``, ``parser`` and ``sentence``, and a struct for each node. Without
    it, the rows are the places, the text, and the id and the form of each node.

    >>> as_sql("select 1")
    'select 1'
    """
    return _Request(query).sql() if _PATTERN.match(query) else query


_Test = Callable[[str], str]
"""A condition on a value, both in SQL."""


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


@dataclass
class _Block:
    """Demands of a block: nodes that no earlier block has, and conditions over their aliases."""

    new: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)


class _Request:
    """Reads a pattern from left to right; what is read of a node is SQL over its alias."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._at = 0
        self._token = self._read()
        self._aliases: dict[str, str] = {}
        self._block = _Block()

    def sql(self) -> str:
        self._expect("pattern")
        found = self._read_block()
        nodes = dict(self._aliases)
        if not nodes:
            raise self._fault("a node in `pattern`, such as `V []`")
        tests = []
        while self._token.text in ("with", "without"):
            sign = "" if self._next().text == "with" else "not "
            block = self._read_block()
            tests.append(f"{sign}{_exists(block, self._aliases, nodes)}")
            self._aliases = dict(nodes)
        where = [*_joined(nodes, {}), *found.conditions, *tests]
        columns = [f"w0.{name}" for name in _SENTENCE]
        for name, alias in nodes.items():
            packed = ", ".join(f"{column} := {alias}.{column}" for column in _SHOWN)
            columns.append(f"struct_pack({packed}) as {_identifier(name)}")
        asked = " and ".join(where) or "true"
        matches = f"select {', '.join(columns)} from {_tables(nodes)} where {asked}"
        rest = self._query[self._token.start :].strip(" \t\r\n;")
        return f"with matches as ({matches}) {rest or _shown(nodes)}"

    def _read_block(self) -> _Block:
        self._block = _Block()
        self._expect("{")
        while self._token.text != "}":
            self._read_clause()
            if self._token.text != "}":
                self._expect(";")
        self._next()
        return self._block

    def _read_clause(self) -> None:
        """A node with its features, a relation, an order, or two features that are compared."""
        if self._take("*"):
            self._read_relation(None)
            return
        name = self._name("a node, or `*`")
        if self._take("["):
            self._read_features(self._alias(name))
        elif self._take("."):
            self._read_comparison(name)
        elif self._token.text in _ORDER:
            order = _ORDER[self._next().text]
            other = self._name("a node")
            ends = (f"{self._alias(one)}.id" for one in (name, other))
            self._block.conditions.append(order.format(*ends))
        else:
            self._read_relation(name)

    def _read_relation(self, head: str | None) -> None:
        """``N -[obj|iobj]-> M``; either end may be any node."""
        sign = self._next()
        if sign.text not in ("->", "-["):
            raise self._fault("`->`, `-[`, `<`, `<<`, `>`, `>>`, `[` or `.` behind a node", sign)
        is_labelled = self._read_labels() if sign.text == "-[" else None
        dependent = None if self._take("*") else self._name("a node, or `*`")
        if head is None and dependent is None:
            raise self._fault("a node at one end of a relation, and `*` at the other")
        above = None if head is None else self._alias(head)
        alias = "x" if dependent is None else self._alias(dependent)
        tests = [] if above is None else [f"{alias}.head = {above}.id"]
        tests.append(f"{alias}.head is not null" if is_labelled is None else is_labelled(alias))
        if above is not None and dependent is None:
            within = [_same_sentence("x", above), *tests]
            tests = [f"exists (select 1 from words x where {' and '.join(within)})"]
        self._block.conditions += tests

    def _read_labels(self) -> _Test:
        is_negated = self._take("^")
        tests = [self._read_label()]
        while self._take("|"):
            tests.append(self._read_label())
        self._expect("]->")
        return _any_of(tests, is_negated)

    def _read_label(self) -> _Test:
        """A relation as a whole, or a part of it: ``1=nmod``, ``2=poss``."""
        number = self._token.text
        if number in ("1", "2") and self._take(number):
            self._expect("=")
            is_equal = self._read_value("a relation")
            return lambda alias: is_equal(f"split_part({alias}.deprel, ':', {number})")
        is_equal = self._read_value("a relation")
        return lambda alias: is_equal(f"{alias}.deprel")

    def _read_features(self, alias: str) -> None:
        while not self._take("]"):
            is_absent = self._take("!")
            value = _value(alias, self._name("a feature"))
            if is_absent:
                self._block.conditions.append(f"{value} is null")
            elif self._token.text in ("=", "<>"):
                is_negated = self._next().text == "<>"
                tests = [self._read_value("a value")]
                while self._take("|"):
                    tests.append(self._read_value("a value"))
                self._block.conditions.append(_any_of(tests, is_negated)(value))
            else:
                self._block.conditions.append(f"{value} is not null")
            if self._token.text != "]":
                self._expect(",")

    def _read_comparison(self, name: str) -> None:
        """``N.lemma = M.lemma``, with ``<>`` for values that differ."""
        value = _value(self._alias(name), self._name("a feature"))
        sign = self._next()
        if sign.text not in ("=", "<>"):
            raise self._fault("`=` or `<>`", sign)
        other = self._alias(self._name("a node and its feature, such as `N.lemma`"))
        self._expect(".")
        self._block.conditions.append(
            f"{value} {sign.text} {_value(other, self._name('a feature'))}"
        )

    def _read_value(self, wanted: str) -> _Test:
        """A test of equality with a name or a string, or of a match with a regular expression."""
        token = self._next()
        if token.kind == "regex":
            expression = quoted(_unescaped(token.text[3:-1]))
            return lambda value: f"regexp_full_match({value}, {expression})"
        if token.kind not in ("string", "name"):
            raise self._fault(wanted, token)
        content = _unescaped(token.text[1:-1]) if token.kind == "string" else token.text
        return lambda value: f"{value} = {quoted(content)}"

    def _alias(self, name: str) -> str:
        if name not in self._aliases:
            taken = {other.lower() for other in (*self._aliases, *_SENTENCE, "text", "matches")}
            if name.lower() in taken:
                raise SpecError(
                    f"the node {name!r} of a pattern has the name of a column or, but for capital "
                    "letters, of another node; name it otherwise"
                )
            self._aliases[name] = f"w{len(self._aliases)}"
            self._block.new.append(name)
        return self._aliases[name]

    def _read(self) -> _Token:
        """The next token; its kind is empty at the end of the text."""
        while self._at < len(self._query):
            found = _TOKEN.match(self._query, self._at)
            if found is None or found.lastgroup is None:
                return _Token("unknown", self._query[self._at], self._at)
            self._at = found.end()
            if found.lastgroup != "space":
                return _Token(found.lastgroup, found.group(), found.start())
        return _Token("", "", len(self._query))

    def _next(self) -> _Token:
        token, self._token = self._token, self._read()
        return token

    def _take(self, text: str) -> bool:
        found = self._token.text == text and self._token.kind in ("sign", "name")
        if found:
            self._next()
        return found

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._fault(f"`{text}`")

    def _name(self, wanted: str) -> str:
        token = self._next()
        if token.kind != "name":
            raise self._fault(wanted, token)
        return token.text

    def _fault(self, wanted: str, token: _Token | None = None) -> SpecError:
        token = token or self._token
        line = self._query.count("\n", 0, token.start) + 1
        came = f"`{token.text}`" if token.text else "the end"
        return SpecError(
            f"line {line} of the pattern: {came} came, and {wanted} was expected at "
            f"`{self._query[max(0, token.start - 20) : token.start + 20].strip()}`. Patterns are a "
            "part of Grew's syntax, which docs/reference/store.md describes",
            line=line,
        )


def _exists(block: _Block, aliases: Mapping[str, str], nodes: Mapping[str, str]) -> str:
    """SQL of the test that a match has what a further block asks for."""
    new = {name: aliases[name] for name in block.new}
    tests = [*_joined(new, nodes), *block.conditions]
    if not new:
        return f"coalesce({' and '.join(tests) or 'true'}, false)"
    return f"exists (select 1 from {_tables(new)} where {' and '.join(tests)})"


def _joined(new: Mapping[str, str], nodes: Mapping[str, str]) -> list[str]:
    """Conditions that nodes are of one sentence, and no two are the same word."""
    pairs = [*combinations(new.values(), 2)]
    pairs += [(one, other) for one in new.values() for other in nodes.values() if one != other]
    beside = [alias for alias in new.values() if alias != "w0"]
    return [
        *(_same_sentence(alias, "w0") for alias in beside),
        *(f"{one}.id <> {other}.id" for one, other in pairs),
    ]


def _any_of(tests: Sequence[_Test], is_negated: bool) -> _Test:
    sign = "not " if is_negated else ""
    return lambda value: f"{sign}({' or '.join(test(value) for test in tests)})"


def _unescaped(content: str) -> str:
    return content.replace('\\"', '"')


def _same_sentence(one: str, other: str) -> str:
    return f"{one}.key = {other}.key and {one}.sentence = {other}.sentence"


def _tables(nodes: Mapping[str, str]) -> str:
    return ", ".join(f"words {alias}" for alias in nodes.values())


def _value(alias: str, name: str) -> str:
    """A column of a node, or a feature; ``Number__psor`` is ``Number[psor]``, as in Grew."""
    if name in _COLUMNS:
        return f"{alias}.{name}"
    layered = re.sub(r"__(\w+)$", r"\\[\1\\]", name)
    return f"nullif(regexp_extract({alias}.feats, '(?:^|\\|){layered}=([^|]*)', 1), '')"


def _shown(nodes: Iterable[str]) -> str:
    names = [_identifier(name) for name in nodes]
    words = ", ".join(
        f'm.{name}.id as {name}, m.{name}.form as "{name[1:-1]}_form"' for name in names
    )
    return (
        f"select key, sentence, text, {words} from matches m join sentences using (key, sentence) "
        f"order by key, sentence, {', '.join(f'm.{name}.id' for name in names)}"
    )


def _identifier(name: str) -> str:
    return f'"{name}"'
