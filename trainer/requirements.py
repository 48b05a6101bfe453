"""The data that a trained model needs, so that it never reads other data unnoticed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from syntax.batches import SpecialTokens
from syntax.errors import SpecError
from syntax.examples import LabelSpec, Mode

TREES: Final = ("policy", "joint_root", "separator_edge")
"""Features that shape trees of pieces: where words, sentences and special tokens stand in them."""


@dataclass(frozen=True, slots=True)
class Requirements:
    """Kept in a model's configuration (``requires``) and checked before it sees data.

    Attributes:
        tokenizer: Its fingerprint.
        parsers: Fingerprints by language trained on; other languages need other parsers.
        classes: Names of the classes of each label column that has some, in id order.
    """

    tokenizer: str
    tokenizer_name: str
    parsers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parser_names: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    labels: tuple[LabelSpec, ...] = ()
    mode: Mode = "raw"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Requirements:
        if "tokenizer" not in content:
            raise SpecError("the model does not say which tokenizer it needs; train it again")
        parsers = {lang: tuple(names) for lang, names in content["parsers"].items()}
        classes = {label: tuple(names) for label, names in content["classes"].items()}
        labels = [
            LabelSpec(**{**label, "names": tuple(label["names"])})
            for label in content.get("labels", ())
        ]
        further = {"fields": tuple(content.get("fields", ())), "labels": tuple(labels)}
        return cls(**{**content, "parsers": parsers, "classes": classes, **further})

    def check_tokenizer(self, fingerprint: str, name: str) -> None:
        if fingerprint != self.tokenizer:
            raise SpecError(
                f"the model needs features of the tokenizer {self.tokenizer_name} "
                f"({self.tokenizer[:12]}), and these are of {name} ({fingerprint[:12]}); backfill "
                "the dataset with the model's tokenizer",
                expected=self.tokenizer,
                found=fingerprint,
            )

    def check_parsers(self, lang: str, found: Mapping[str, str]) -> None:
        known = self.parsers.get(lang)
        for fingerprint, name in found.items():
            if known is not None and fingerprint not in known:
                needed = ", ".join(
                    f"{self.parser_names.get(one, '?')} ({one[:12]})" for one in known
                )
                raise SpecError(
                    f"the model learned {lang} from trees of {needed}, and these are of {name} "
                    f"({fingerprint[:12]}); choose the parser, or say that another will do: "
                    "`any_parser=True`",
                    expected=list(known),
                    found=fingerprint,
                )

    def check_states(self, found: str | None) -> None:
        known = self.features.get("states")
        if found != known:
            raise SpecError(
                f"the model learned from states {str(known)[:12]} of a frozen encoder, and these "
                f"are {str(found)[:12]}: model.encoder, a folder or a name, now stands for other "
                "weights; give it those of the training",
                expected=known,
                found=found,
            )

    def check_classes(self, found: Mapping[str, tuple[str, ...]]) -> None:
        for label, known in self.classes.items():
            names = found.get(label, ())
            if names != known:
                raise SpecError(
                    f"the model predicts {', '.join(known)}, and the label {label!r} is one of "
                    f"{', '.join(names)}, in this order; class ids would be mixed up"
                )


@dataclass(frozen=True, slots=True)
class DataProfile:
    """The data's demands on a new model; ``streams`` has the classes of each further stream."""

    classes: Mapping[str, tuple[str, ...]]
    special_tokens: SpecialTokens
    requirements: Requirements
    streams: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
