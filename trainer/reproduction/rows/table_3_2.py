"""The dissertation's Table 3.2 (Ahmad et al. 2019, Table 2), as printed.

Parsers of 31 languages that are trained on English; Chinese and Japanese are delexicalised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

PARSERS: Final = ("selfatt", "rnn", "selfatt-stack", "rnn-stack")
"""SelfAtt-Graph, RNN-Graph, SelfAtt-Stack and RNN-Stack: the order of the columns."""

SOURCE: Final = "en"


@dataclass(frozen=True, slots=True)
class Printed:
    """One line: distance of the word order from that of English, UAS and LAS in per cent."""

    distance: float
    scores: Mapping[str, tuple[float, float]]

    def mean(self, parser: str) -> float:
        """The paper's evaluation score: the mean of UAS and LAS."""
        return sum(self.scores[parser]) / 2


# Language, distance, then UAS and LAS of each parser.
_LINES: Final = """
en 0.00 90.35 88.40 90.44 88.31 90.18 88.06 91.82 89.89
no 0.06 80.80 72.81 80.67 72.83 80.25 72.07 81.75 73.30
sv 0.07 80.98 73.17 81.23 73.49 80.56 72.77 82.57 74.25
fr 0.09 77.87 72.78 78.35 73.46 76.79 71.77 75.46 70.49
pt 0.09 76.61 67.75 76.46 67.98 75.39 66.67 74.64 66.11
da 0.10 76.64 67.87 77.36 68.81 76.39 67.48 78.22 68.83
es 0.12 74.49 66.44 74.92 66.91 73.15 65.14 73.11 64.81
it 0.12 80.80 75.82 81.10 76.23 79.13 74.16 80.35 75.32
hr 0.13 61.91 52.86 60.09 50.67 60.58 51.07 60.80 51.12
ca 0.13 73.83 65.13 74.24 65.57 72.39 63.72 72.03 63.02
pl 0.13 74.56 62.23 71.89 58.59 73.46 60.49 72.09 59.75
uk 0.13 60.05 52.28 58.49 51.14 57.43 49.66 59.67 51.85
sl 0.13 68.21 56.54 66.27 54.57 66.55 54.58 67.76 55.68
nl 0.14 68.55 60.26 67.88 60.11 67.88 59.46 69.55 61.55
bg 0.14 79.40 68.21 78.05 66.68 78.16 66.95 78.83 67.57
ru 0.14 60.63 51.63 59.99 50.81 59.36 50.25 60.87 51.96
de 0.14 71.34 61.62 69.49 59.31 69.94 60.09 69.58 59.64
he 0.14 55.29 48.00 54.55 46.93 53.23 45.69 54.89 40.95
cs 0.14 63.10 53.80 61.88 52.80 61.26 51.86 62.26 52.32
ro 0.15 65.05 54.10 63.23 52.11 62.54 51.46 60.98 49.79
sk 0.17 66.65 58.15 65.41 56.98 65.34 56.68 66.56 57.48
id 0.17 49.20 43.52 47.05 42.09 47.32 41.70 46.77 41.28
lv 0.18 70.78 49.30 71.43 49.59 69.04 47.80 70.56 48.53
fi 0.20 66.27 48.69 66.36 48.74 64.82 47.50 66.25 48.28
et 0.20 65.72 44.87 65.25 44.40 64.12 43.26 64.30 43.50
zh 0.23 42.48 25.10 41.53 24.32 40.56 23.32 40.92 23.45
ar 0.26 38.12 28.04 32.97 25.48 32.56 23.70 32.85 24.99
la 0.28 47.96 35.21 45.96 33.91 45.49 33.19 43.85 31.25
ko 0.33 34.48 16.40 33.66 15.40 32.75 15.04 33.11 14.25
hi 0.40 35.50 26.52 29.32 21.41 31.38 23.09 25.91 18.07
ja 0.49 28.18 20.91 18.41 11.99 20.72 13.19 15.16 9.32
"""


def _line(fields: list[str]) -> Printed:
    distance, *numbers = map(float, fields)
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return Printed(distance, dict(zip(PARSERS, pairs, strict=True)))


TABLE_3_2: Final[Mapping[str, Printed]] = {
    lang: _line(numbers) for lang, *numbers in map(str.split, _LINES.strip().splitlines())
}
