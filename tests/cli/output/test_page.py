import datetime
import html.parser
import re
from dataclasses import replace

from tests.trials import measurement, run, trial
from tests.tuning.fakes import MACHINE
from tuner.analysis.answer import Answer, Tied
from tuner.analysis.slowdown import Slowdown
from tuner.cli.output.page import BestKnown, ReportedRun, failure_kinds, page_html
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage
from tuner.core.record import Record
from tuner.core.runs import Baseline, Counts, Run, StoredTrial

MOMENT = datetime.datetime(2026, 2, 1, tzinfo=datetime.UTC)
EQUAL = Slowdown(0.0, (0.0, 0.0))
EVIL = "<script>alert('x')</script>&\"'{{ 7 * 7 }}"
VOID = {"meta", "br", "line", "circle", "polyline"}


def page(*reported: ReportedRun, best: tuple[BestKnown, ...] = (), left_out: int = 0) -> str:
    return page_html(best, reported, left_out, "0.1.0", MOMENT)


def reported(trials: tuple[StoredTrial, ...], of: Run | None = None) -> ReportedRun:
    failed = sum(each.record is not None and each.record.status == "failed" for each in trials)
    return ReportedRun(of or run(), Counts(len(trials), len(trials) - failed, 0, failed, 0), trials)


def many(count: int = 30) -> tuple[StoredTrial, ...]:
    return tuple(trial(n, measurement(1e-3 * (1 + n % 7), 0.01)) for n in range(count))


class Checker(html.parser.HTMLParser):
    """Collects the visible text, and what is opened and never closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def checked(text: str) -> Checker:
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    return checker


def test_the_page_tells_results_machine_compiler_and_noise() -> None:
    best = trial(4, measurement(1e-3, 0.1))
    known = BestKnown(Answer(best, (Tied(best, EQUAL), Tied(trial(5, measurement(1e-3)), EQUAL))), run(2e-3))
    text = checked(page(reported(many()), best=(known,))).text
    for wanted in (
        "matmul 8x8x8 f32 nn none",
        "950 us .. 1.05 ms",
        "0.001024 GFLOP/s",
        "200.0% of FakeBLAS 1.0",
        "trial 104 of run 3; 1 more that noise does not separate",
        "fake 1.0",
        "1.00 %: smaller differences mean nothing",
        "30 trials: 30 measured, 0 failed",
        "30 measured trials of fake",
        "load 0.50 at the start",
        "2026-02-01T00:00:00Z",
    ):
        assert wanted in text


def test_the_page_needs_nothing_from_elsewhere() -> None:
    text = page(reported(many()))
    seen = checked(text).seen
    assert not {tag for tag, _ in seen} & {"script", "link", "img", "iframe", "object", "form"}
    assert not [
        value for _, attributes in seen for name, value in attributes.items() if name in ("src", "href")
    ]
    assert not re.search(r"url\(|@import|https?:", text)
    assert "default-src 'none'" in text
    assert len(text) < 40_000


def test_drawings_and_tables_are_named_for_readers_that_see_none() -> None:
    seen = checked(page(reported(many()))).seen
    assert dict(seen[0][1]) == {"lang": "en"}
    names = {value for tag, attributes in seen for name, value in attributes.items() if name == "id"}
    drawings = [attributes for tag, attributes in seen if tag == "svg"]
    assert len(drawings) == 1
    assert drawings[0]["role"] == "img"
    assert set(str(drawings[0]["aria-labelledby"]).split()) <= names
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in seen if tag == "th")


def test_whatever_a_database_holds_is_escaped() -> None:
    evil = trial(0, Failure(Stage.RUN, EVIL), script=EVIL)
    assert isinstance(evil.record, Record)
    timed = tuple(
        replace(
            each,
            record=replace(each.record, candidate=Candidate.of(EVIL, {EVIL: EVIL, "x": str(each.number)})),
        )
        for each in many()
        if isinstance(each.record, Record)
    )
    machine = replace(MACHINE, name=EVIL, processor=EVIL)
    of = run(machine=machine, baseline=Baseline(EVIL, 1, measurement(1e-3)), tuner_version=EVIL, status=EVIL)
    best = BestKnown(Answer(replace(timed[0], machine=machine), (Tied(timed[0], EQUAL),)), of)
    text = page(reported((evil, *timed[1:]), of), best=(best,))
    checker = checked(text)
    assert "<script" not in text
    assert checker.text.count(EVIL) >= 8
    assert not {tag for tag, _ in checker.seen} & {"script"}


def test_failures_are_counted_by_stage_and_reason_without_numbers() -> None:
    trials = (
        trial(0, Failure(Stage.COMPILE, "spills 12 bytes")),
        trial(1, Failure(Stage.COMPILE, "spills 7 bytes")),
        trial(2, Failure(Stage.RUN, "spills 7 bytes")),
        trial(3, measurement(1.0)),
        trial(4, None),
    )
    assert [(each.stage, each.reason, each.count) for each in failure_kinds(trials)] == [
        ("compile", "spills 12 bytes", 2),
        ("run", "spills 7 bytes", 1),
    ]


def test_rare_kinds_of_failure_are_left_out_and_that_is_told() -> None:
    trials = tuple(trial(n, Failure(Stage.COMPILE, "x" * n)) for n in range(1, 20))
    text = checked(page(reported(trials))).text
    assert "7 rarer kinds are left out" in text
    assert "Nothing was timed." in text
    assert "ablation: found 0 measured trials, allowed 20 or more." in text


def test_runs_left_out_are_told() -> None:
    assert "3 earlier runs are left out" in page(reported(many()), left_out=3)
    assert "left out" not in checked(page(reported(many()))).text


def test_a_run_without_baseline_noise_and_end_is_told_as_such() -> None:
    bare = run(None, noise=None, seconds=None, load_average=None)
    text = checked(page(reported(many()[:3], bare))).text
    assert text.count("not measured") == 2
    assert "Dashed" not in text
