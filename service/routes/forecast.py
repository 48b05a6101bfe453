"""The answer to a backfill that is only asked about."""

from __future__ import annotations

from dataclasses import asdict
from typing import Self

from pydantic import BaseModel, Field

from service.jobs.forecast import Forecast


class TextCounts(BaseModel):
    """Texts of the examples that would be stored: `distinct - already_parsed = new`."""

    total: int
    distinct: int
    already_parsed: int = Field(description="Distinct texts whose parse the store holds.")
    new: int = Field(description="Distinct texts that would be parsed.")


class SampleAnswer(BaseModel):
    """What was measured, by one process."""

    examples: int = Field(
        description="Examples that were tried, drawn at random with a fixed seed."
    )
    parses: int
    dropped: dict[str, int] = Field(
        description="Examples among them on which the parser failed, by reason."
    )
    seconds_per_parse: float
    seconds_per_row: float = Field(description="Alignment, matrices and storage of an example.")
    bytes_per_parse: float
    bytes_per_row: float


class Estimate(BaseModel):
    """What the sample lets expect of the whole."""

    workers: int = Field(description="Processes that the times are meant for: `job_workers`.")
    parse_seconds: float
    store_seconds: float = Field(description="Alignment, matrices and storage.")
    parse_bytes: int = Field(description="Disk for the new parses.")
    store_bytes: int = Field(description="Disk for the rows.")


class ForecastAnswer(BaseModel):
    """What a backfill would do: `to_store + already_stored + sum(dropped) = examples`."""

    dataset: str
    split: str
    lang: str
    parser: str
    tokenizer: str
    examples: int = Field(description="Examples and reader's rejections that came.")
    to_store: int = Field(description="Examples that would be stored, if the parser can read them.")
    already_stored: int = Field(description="Examples that the dataset holds, and repeated ones.")
    dropped: dict[str, int] = Field(
        description="Examples that cannot be used, by reason, as far as is known without parsing."
    )
    texts: TextCounts
    sample: SampleAnswer | None = Field(description="`null` when nothing would be stored.")
    estimate: Estimate
    warnings: list[str] = Field(
        description="What to think of before: another parser than the one that the dataset's "
        "examples in this language have, or ids that it has with other content."
    )

    @classmethod
    def of(cls, forecast: Forecast) -> Self:
        """The answer's form of a forecast."""
        request, sample = forecast.request, forecast.sample
        return cls(
            dataset=request.dataset.name,
            split=request.dataset.split,
            lang=request.dataset.lang,
            parser=request.parser,
            tokenizer=request.tokenizer,
            examples=forecast.examples,
            to_store=forecast.to_store,
            already_stored=forecast.already_stored,
            dropped=dict(forecast.dropped),
            texts=TextCounts(
                total=forecast.texts,
                distinct=forecast.distinct_texts,
                already_parsed=forecast.already_parsed,
                new=forecast.new_parses,
            ),
            sample=None if sample is None else SampleAnswer(**asdict(sample)),
            estimate=Estimate(
                workers=forecast.workers,
                parse_seconds=forecast.parse_seconds,
                store_seconds=forecast.store_seconds,
                parse_bytes=forecast.parse_bytes,
                store_bytes=forecast.store_bytes,
            ),
            warnings=list(request.warnings),
        )
