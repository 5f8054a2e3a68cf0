"""The headline card of one problem: how fast, how sure, how it compares."""

from tuner.analysis.comparison import Comparable
from tuner.analysis.run_comparison import against_baseline
from tuner.core.pass_seconds import PassSeconds
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.runs import Run, StoredTrial, record_of
from tuner.output.formatting import count_text, interval_text, knobs_text, seconds_text, speed_text
from tuner.output.json_documents import gflop_per_s
from tuner.output.report.badge import badge, badge_of
from tuner.output.report.bars import Bar, bars
from tuner.output.report.content import BestKnown, ReportedRun
from tuner.output.report.element import Markup, element, joined
from tuner.output.report.table import Head, table

PASSES_SHOWN = 12


def speed_ratio_text(compared: Comparable) -> str:
    """Returns how many times as fast as the baseline, with the interval: '1.09x (1.05 .. 1.13)'."""
    low, high = compared.speed_interval
    return f"{compared.speed:.2f}x ({low:.2f} .. {high:.2f})"


def card(best: BestKnown, runs: frozenset[int]) -> Markup:
    """Draws the card of a problem that was timed; ``runs`` have a section on the page."""
    answer, run = best.answer, best.run
    record, ours = record_of(answer.best), answer.measurement
    trust = badge_of(run, answer.best)
    headline = element(
        "p",
        element("strong", speed_text(gflop_per_s(record.problem, ours.median_s))),
        " ",
        element("span", f"{seconds_text(ours.median_s)} ({interval_text(ours.interval_s)})", class_="faint"),
        class_="headline",
    )
    return element(
        "article",
        _head(record.problem, badge(trust)),
        headline,
        _comparison(run, answer.best),
        _speeds(run, record.problem, ours),
        element("p", trust.reason, class_="faint"),
        _where(run),
        element("p", record.candidate.strategy, " ", element("code", knobs_text(record.candidate.choices))),
        _compile_time(best.passes),
        _origin(best, runs),
        class_="card",
    )


def verified_card(reported: ReportedRun) -> Markup:
    """Draws the card of a run that proved candidates right, on a target without a clock."""
    run, counts = reported.run, reported.counts
    words = f"{counts.verified} of {count_text(counts.proposed, 'candidate')} verified"
    return element(
        "article",
        _head(run.settings.problem, element("span", "no times", class_="badge unknown")),
        element("p", element("strong", words), class_="headline"),
        element("p", f"Target {run.settings.target} has no clock: nothing is ranked.", class_="faint"),
        _where(run),
        element("p", element("a", f"run {run.id}", href=f"#run-{run.id}"), class_="faint"),
        class_="card",
    )


def _head(problem: Problem, mark: Markup) -> Markup:
    rest = problem.key.removeprefix(f"{problem.operation} {problem.shape} ")
    title = element("h3", f"{problem.operation} {problem.shape} ", element("small", rest))
    return element("header", title, mark)


def _comparison(run: Run, best: StoredTrial) -> Markup:
    compared = against_baseline(run, best)
    if compared is None:
        return element("p", "No baseline was measured beside it.", class_="faint")
    name = _baseline_name(run)
    if isinstance(compared, Comparable):
        text = speed_ratio_text(compared)
        return element("p", element("b", text), f" the speed of {name}", class_="ratio")
    words = f" next to {name}: {compared.reason}"
    return element("p", element("b", "unreliable"), words, class_="ratio")


def _baseline_name(run: Run) -> str:
    assert run.baseline is not None
    threads = f", {count_text(run.baseline.threads, 'thread')}" if run.baseline.threads else ""
    return f"{run.baseline.name}{threads}"


def _speeds(run: Run, problem: Problem, ours: Measurement) -> Markup:
    """Draws both speeds with their intervals to one scale."""
    rows = [("this schedule", ours, "ours")]
    if run.baseline is not None:
        rows.append(("baseline", run.baseline.measurement, "baseline"))
    least_s = min(measurement.interval_s[0] for _, measurement, _ in rows)
    return bars(tuple(_speed(name, problem, measurement, least_s, kind) for name, measurement, kind in rows))


def _speed(name: str, problem: Problem, measurement: Measurement, least_s: float, kind: str) -> Bar:
    low_s, high_s = measurement.interval_s
    figure = speed_text(gflop_per_s(problem, measurement.median_s))
    return Bar(name, least_s / measurement.median_s, figure, kind, (least_s / high_s, least_s / low_s))


def _where(run: Run) -> Markup:
    threads = "" if run.machine.chip else f", {count_text(run.settings.threads, 'thread')}"
    return element("p", f"{run.settings.target}{threads} on {run.machine.name}", class_="faint")


def _compile_time(passes: tuple[PassSeconds, ...]) -> Markup | None:
    """Draws the longest passes of compiling it again."""
    if not passes:
        return None
    total_s = sum(each.seconds for each in passes)
    rows = [(each.name, f"{each.seconds * 1e3:.1f}", str(each.runs)) for each in passes[:PASSES_SHOWN]]
    columns = (Head("pass"), Head("ms", is_number=True), Head("runs", is_number=True))
    summary = element("summary", f"compiled in {total_s * 1e3:.0f} ms of {len(passes)} passes")
    return element("details", summary, table(columns, rows))


def _origin(best: BestKnown, runs: frozenset[int]) -> Markup:
    """Tells of which trial it is, what is tied with it, and what to type for it."""
    trial, run, tied = best.answer.best, best.run, len(best.answer.ties) - 1
    more = f"; {tied} more that noise does not separate" if tied else ""
    command = (
        f"tuner show {trial.id}"
        if run.settings.target.is_replay
        else f"tuner export --trial {trial.id} -o best.mlir"
    )
    name = f"run {run.id}"
    link = element("a", name, href=f"#run-{run.id}") if run.id in runs else name
    words = element("span", f"trial {trial.id} of ", link, more, class_="faint")
    return element("footer", joined((words, element("code", command))))
