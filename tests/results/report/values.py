"""Reports as values."""

import datetime
import html.parser
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.trials import measurement, run, trial
from tuner.analysis.selected_result import SelectedResult, select_result
from tuner.core.candidate import Candidate, Value
from tuner.core.queries import Counts
from tuner.core.records import Verdict
from tuner.core.runs import Run
from tuner.core.trials import StoredTrial
from tuner.results.report.content import BestKnown, Report, ReportedRun
from tuner.results.report.page import page_html

MOMENT = datetime.datetime(2026, 2, 1, tzinfo=datetime.UTC)


def many(count: int = 30) -> tuple[StoredTrial, ...]:
    """Returns timed trials of a knob that decides the time and of one that does not."""
    timed = (trial(n, measurement(1e-3 * (1 + n % 7), 0.01)) for n in range(count))
    return tuple(
        with_candidate(each, "fake", {"decides": n % 7, "idle": n % 3}) for n, each in enumerate(timed)
    )


def with_candidate(made: StoredTrial, strategy: str, knobs: Mapping[str, Value]) -> StoredTrial:
    return replace(made, record=replace(made.record, candidate=Candidate.of(strategy, dict(knobs))))


def reported(trials: tuple[StoredTrial, ...], of: Run | None = None) -> ReportedRun:
    records = [each.record for each in trials]
    statuses = [record.status for record in records]
    verified = sum(isinstance(record.outcome, Verdict) for record in records)
    counts = Counts(len(trials), statuses.count("measured"), verified, statuses.count("failed"), 0)
    return ReportedRun(of or run(), counts, trials)


def best_of(of: Run, *trials: StoredTrial) -> BestKnown:
    selected = select_result(trials, of.noise)
    assert isinstance(selected, SelectedResult)
    return BestKnown(selected, of)


def report(*runs: ReportedRun, best: tuple[BestKnown, ...] = (), left_out: int = 0) -> Report:
    return Report(best, runs, left_out, "0.1.0", MOMENT)


# HTML read back: what is to be seen, and which elements with which attributes.

VOID = {"meta", "br"}
NEVER_SEEN = {"style", "script"}


@dataclass
class Parsed:
    text: str = ""  # as a browser shows it: one blank between words
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def of(self, tag: str, class_: str = "") -> list[dict[str, str]]:
        return [
            attributes
            for name, attributes in self.elements
            if name == tag and class_ in ("", *attributes.get("class", "").split())
        ]

    def names(self) -> set[str]:
        return {attributes["id"] for _, attributes in self.elements if "id" in attributes}


class _Reader(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parsed = Parsed()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parsed.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in NEVER_SEEN:
            self.parsed.text += data


def parsed(text: str) -> Parsed:
    """Reads a text; an element that is never closed is an error."""
    reader = _Reader()
    reader.feed(text)
    assert reader.open == []
    reader.parsed.text = " ".join(reader.parsed.text.split())
    return reader.parsed


def page(of: Report) -> Parsed:
    return parsed(page_html(of))
