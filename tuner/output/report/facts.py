"""The circumstances of a run: machine, noise, search, compiler."""

from tuner.core.moments import utc_text
from tuner.core.runs import Run
from tuner.output.formatting import first_words, interval_text, seconds_text
from tuner.output.report.badge import badge_of
from tuner.output.report.content import ReportedRun
from tuner.output.report.element import Markup, element
from tuner.output.result import counts_words, idle_words


def facts(reported: ReportedRun) -> Markup:
    """Lists them."""
    run = reported.run
    settings = run.settings
    told = {
        "status": f"{run.status}, begun {utc_text(run.created)}{_seconds(run)}",
        "trials": f"{counts_words(reported.counts)}{idle_words(run)}",
        "search": f"{settings.sampler}, seed {settings.seed}, {settings.workers} at work",
        "begins with": first_words(settings.first or ()),
        "target": f"{settings.target}, threads: {settings.threads}",
        "machine": f"{run.machine.name} ({run.machine.processor}){_load(run)}",
        "noise": badge_of(run).reason,
        "baseline": _baseline(run),
        "compiler": f"{run.compiler.fingerprint}; tuner {run.tuner_version}",
    }
    pairs = [(element("dt", name), element("dd", words)) for name, words in told.items() if words]
    return element("dl", *(part for pair in pairs for part in pair))


def _seconds(run: Run) -> str:
    return "" if run.seconds is None else f", {run.seconds:.0f} s"


def _load(run: Run) -> str:
    return "" if run.load_average is None else f", load {run.load_average:.2f} at the start"


def _baseline(run: Run) -> str:
    if run.baseline is None:
        return "not measured"
    timed = run.baseline.measurement
    words = f"{seconds_text(timed.median_s)} ({interval_text(timed.interval_s)})"
    return f"{run.baseline.name}: {words}, threads: {run.baseline.threads}"
