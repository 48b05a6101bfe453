"""Words and patterns of the sample's sentences, all written for this project.

Hypotheses use the premise's own words, so that only who does what to whom tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PEOPLE: Final = (
    *("the nurse", "the driver", "the baker", "the teacher", "the judge", "the painter"),
    *("the pilot", "the farmer", "the librarian", "the singer", "the plumber", "the guard"),
    *("the tailor", "the waiter", "the old sailor", "the young lawyer", "the new intern"),
    *("the tall cook", "the night porter", "the village doctor"),
)
NAMES: Final = ("Maria", "Ahmed", "Lena", "Tom", "Priya", "Mr Okafor", "Mrs Lindqvist", "Yuki")
PLACES: Final = (
    *("the bakery", "the school", "the post office", "the old mill", "the church"),
    *("the harbour", "the library", "the market", "the railway station", "the town hall"),
)
THINGS: Final = (
    *("a bicycle", "an old map", "a bunch of keys", "a basket of apples", "a letter"),
    *("a box of tools", "a theatre ticket", "a loaf of bread"),
)
TIMES: Final = (
    *("yesterday", "on Monday", "last night", "after lunch", "at the airport"),
    *("in the rain", "two weeks ago", "during the concert"),
)
VERBS: Final = (
    *(("thank", "thanked", "thanked"), ("follow", "followed", "followed")),
    *(("call", "called", "called"), ("praise", "praised", "praised")),
    *(("warn", "warned", "warned"), ("interview", "interviewed", "interviewed")),
    *(("invite", "invited", "invited"), ("blame", "blamed", "blamed")),
    *(("visit", "visited", "visited"), ("photograph", "photographed", "photographed")),
    *(("forgive", "forgave", "forgiven"), ("overtake", "overtook", "overtaken")),
    *(("draw", "drew", "drawn"), ("recognise", "recognised", "recognised")),
)
GIVING: Final = (
    *(("lend", "lent", "lent"), ("send", "sent", "sent")),
    *(("hand", "handed", "handed"), ("sell", "sold", "sold")),
)
DEEDS: Final = (
    *(("miss the train", "missed the train"), ("leave before noon", "left before noon")),
    *(("fall asleep", "fell asleep"), ("laugh out loud", "laughed out loud")),
    *(("lose a glove", "lost a glove"), ("order some soup", "ordered some soup")),
    *(("win a prize", "won a prize"), ("forget the umbrella", "forgot the umbrella")),
    *(("go home", "went home"), ("open the window", "opened the window")),
)
COMPARISONS: Final = (
    *(("taller", "shorter"), ("older", "younger"), ("faster", "slower")),
    *(("richer", "poorer"), ("stronger", "weaker"), ("louder", "quieter")),
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A premise and its hypotheses; ``{a}`` names a person, ``{A}`` the same with a capital."""

    premise: str
    entailment: tuple[str, ...]
    neutral: tuple[str, ...]
    contradiction: tuple[str, ...]


PATTERNS: Final = (
    Pattern(
        "{A} {past} {b} {when}.",
        ("{B} was {done} by {a}.", "It was {b} that {a} {past}."),
        ("{A} was {done} by {b}.", "{B} {past} {a} as well."),
        ("{A} didn't {do} {b} {when}.", "{B} wasn't {done} by anyone {when}."),
    ),
    Pattern(
        "{B} was {done} by {a} {when}.",
        ("{A} {past} {b} {when}.", "It was {a} who {past} {b}."),
        ("{B} {past} {a} {when}.", "{A} was {done} by {b}."),
        ("{A} didn't {do} anyone {when}.", "{B} wasn't {done} by anybody {when}."),
    ),
    Pattern(
        "{A} didn't {do} {b} {when}, although {n} had expected it.",
        ("{B} wasn't {done} by {a} {when}.", "{N} had expected {a} to {do} {b}."),
        ("{B} didn't {do} {a} {when}.", "{A} wasn't {done} by {b}."),
        ("{A} {past} {b} {when}.", "{B} was {done} by {a} {when}."),
    ),
    Pattern(
        "{A} who {past} {b} {did}.",
        ("{A} {did}.", "{B} was {done} by {a}."),
        ("{B} {did}.", "{B} {past} {a}."),
        ("{A} didn't {act}.", "Nobody {past} {b}."),
    ),
    Pattern(
        "{A} that {b} {past} {did}.",
        ("{B} {past} {a}.", "{A} was {done} by {b}.", "{A} {did}."),
        ("{A} {past} {b}.", "{B} {did}."),
        ("{B} didn't {do} {a}.", "{A} wasn't {done} by anybody."),
    ),
    Pattern(
        "{A} who was {done} by {b} {did}.",
        ("{B} {past} {a}.", "{A} {did}."),
        ("{A} {past} {b}.", "{B} {did}."),
        ("{B} didn't {do} {a}.", "{A} didn't {act}."),
    ),
    Pattern(
        "{A} and {b} {past} {c}.",
        ("{B} {past} {c}.", "{C} was {done} by {b} and {a}."),
        ("{A} {past} {b}.", "{C} was {done} by {b} before {a}."),
        ("{B} didn't {do} {c}.", "Of the two, only {a} {past} {c}."),
    ),
    Pattern(
        "{A} {past} {b} and {did}.",
        ("{A} {did}.", "{B} was {done} by {a}."),
        ("{B} {did}.", "{B} {past} {a} and {did}."),
        ("{A} didn't {act}.", "{A} {did}, but never {past} {b}."),
    ),
    Pattern(
        "{A} {past} {b}, but not {c}.",
        ("{C} wasn't {done} by {a}.", "{B} was {done} by {a}."),
        ("{C} {past} {a}.", "{B} was {done} by {a}, but not by {c}."),
        ("{A} {past} {c}.", "{B} wasn't {done} by {a}."),
    ),
    Pattern(
        "After {a} had {done} {b}, {c} {did}.",
        ("{A} {past} {b} before {c} {did}.", "{C} {did}."),
        ("{B} {did} too.", "{C} {past} {b}."),
        ("{C} {did} before {a} {past} {b}.", "{C} didn't {act}."),
    ),
    Pattern(
        "{C} {did} long before {a} {past} {b}.",
        ("{B} was {done} by {a} after {c} {did}.", "{A} {past} {b}."),
        ("{A} {did}.", "{C} {did} long before {b} {past} {a}."),
        ("{C} {did} only after {a} had {done} {b}.", "{B} wasn't {done} by {a}."),
    ),
    Pattern(
        "{A} {did} because {b} had {done} {c}.",
        ("{C} had been {done} by {b}.", "{A} {did}."),
        ("{B} {did}.", "{C} had {done} {b}."),
        ("{B} hadn't {done} {c}.", "{A} didn't {act}."),
    ),
    Pattern(
        "{A} {gave} {b} {thing} {when}.",
        ("{B} got {thing} from {a}.", "{Thing} was {given} to {b} by {a}."),
        ("{B} {gave} {a} {thing}.", "{A} {gave} {thing} to {c}."),
        ("{A} didn't {give} {b} anything {when}.", "{B} got nothing from {a} {when}."),
    ),
    Pattern(
        "{B} was {given} {thing} by {a}.",
        ("{A} {gave} {thing} to {b}.", "{B} got {thing} from {a}."),
        ("{A} was {given} {thing} by {b}.", "{C} was {given} {thing} by {b}."),
        ("{A} {gave} nothing to {b}.", "{A} never {gave} {b} anything."),
    ),
    Pattern(
        "{A} is {more} than {b}.",
        ("{B} is {less} than {a}.", "{B} isn't {more} than {a}."),
        ("{A} is {more} than {c}.", "{C} is {less} than {b}."),
        ("{B} is {more} than {a}.", "{A} is {less} than {b}."),
    ),
    Pattern(
        "{A} arrived before {b} but after {c}.",
        ("{C} arrived before {b}.", "{B} arrived after {c}."),
        ("{A} left before {b}.", "{C} {past} {b}."),
        ("{B} arrived before {c}.", "{C} arrived after {a}."),
    ),
    Pattern(
        "{P} lies north of {q}.",
        ("{Q} lies south of {p}.", "{Q} doesn't lie north of {p}."),
        ("{P} is bigger than {q}.", "{Q} is older than {p}."),
        ("{Q} lies north of {p}.", "{P} lies south of {q}."),
    ),
    Pattern(
        "{A} thinks that {b} {past} {c}.",
        ("In the opinion of {a}, {c} was {done} by {b}.", "{A} believes that {b} {past} {c}."),
        ("{B} {past} {c}.", "{A} {past} {c}."),
        ("{A} doesn't think that {b} {past} {c}.", "{A} is sure that {b} didn't {do} {c}."),
    ),
    Pattern(
        "{A} knows that {b} {past} {c}.",
        ("{B} {past} {c}.", "{C} was {done} by {b}."),
        ("{A} {past} {c}.", "{C} knows that {b} {past} {a}."),
        ("{B} didn't {do} {c}.", "{A} doesn't know that {b} {past} {c}."),
    ),
    Pattern(
        "{A} asked {b} to {do} {c}.",
        ("{B} was asked to {do} {c}.", "{A} wanted {b} to {do} {c}."),
        ("{B} {past} {c}.", "{A} was asked to {do} {c}."),
        ("{A} asked nobody to {do} {c}.", "Nobody asked {b} to {do} {c}."),
    ),
    Pattern(
        "{A} managed to {do} {b} {when}.",
        ("{A} {past} {b} {when}.", "{B} was {done} by {a}."),
        ("{B} managed to {do} {a} {when}.", "{A} managed to {do} {c}."),
        ("{A} failed to {do} {b} {when}.", "{A} didn't {do} {b} {when}."),
    ),
    Pattern(
        "{A} failed to {do} {b} {when}.",
        ("{A} didn't {do} {b} {when}.", "{B} wasn't {done} by {a} {when}."),
        ("{B} failed to {do} {a} {when}.", "{A} wasn't {done} by {b}."),
        ("{A} managed to {do} {b} {when}.", "{B} was {done} by {a} {when}."),
    ),
    Pattern(
        "It was {a}, not {b}, who {past} {c}.",
        ("{C} was {done} by {a}.", "{B} didn't {do} {c}."),
        ("{C} {past} {a}.", "{A} didn't {do} {b}."),
        ("{B} {past} {c}.", "{A} didn't {do} {c}."),
    ),
    Pattern(
        "{A} {past} {b}. Then {c} {did}.",
        ("{C} {did} after {a} had {done} {b}.", "{B} was {done} by {a}."),
        ("{B} {did}.", "{C} {past} {b}."),
        ("{C} {did} before {a} {past} {b}.", "{A} didn't {do} {b}."),
    ),
    Pattern(
        "{N} waited for {a}. {B} didn't.",
        ("{B} didn't wait for {a}.", "It was {n} who waited for {a}."),
        ("{A} waited for {n}.", "{B} didn't wait for {n}."),
        ("{B} waited for {a} with {n}.", "{A}? Nobody waited for {a}."),
    ),
    Pattern(
        "If {a} had {done} {b}, {c} would've been happy.",
        ("{A} didn't {do} {b}.", "{B} wasn't {done} by {a}."),
        ("{B} didn't {do} {a}.", "{A} would've been happy."),
        ("{A} {past} {b}.", "{B} was {done} by {a}."),
    ),
    Pattern(
        "{A}'s brother {past} {b}.",
        ("{B} was {done} by {a}'s brother.", "The brother of {a} {past} somebody."),
        ("{A} {past} {b}.", "{B} {past} {a}'s brother."),
        ("{A}'s brother didn't {do} {b}.", "No relative of {a} ever {past} {b}."),
    ),
    Pattern(
        "Neither {a} nor {b} {past} {c}.",
        ("{A} didn't {do} {c}.", "{C} wasn't {done} by {b}."),
        ("{A} didn't {do} {b}.", "{C} didn't {do} {b}."),
        ("{B} {past} {c}.", "{C} was {done} by {a}."),
    ),
    Pattern(
        "{A} {did} without having {done} {b}.",
        ("{A} {did}.", "When {a} {did}, {b} hadn't been {done} by {a}."),
        ("{B} didn't {act}.", "{B} hadn't {done} {a}."),
        ("{A} had {done} {b} before that.", "{A} didn't {act}."),
    ),
    Pattern(
        "{N} wondered whether {a} had {done} {b}.",
        ("{N} wasn't sure whether {b} had been {done} by {a}.", "{N} wondered about {a}."),
        ("{A} {past} {b}.", "{A} wondered whether {n} had {done} {b}."),
        ("{N} was certain that {a} had {done} {b}.", "{N} never wondered about {a}."),
    ),
    Pattern(
        "Nobody but {a} {past} {b}.",
        ("{A} {past} {b}.", "{C} didn't {do} {b}."),
        ("{B} {past} {a}.", "Nobody but {b} {past} {a}."),
        ("{C} {past} {b}.", "{B} wasn't {done} by {a}."),
    ),
)
