"""The section of one run, and its line in the index."""

from tuner.analysis.ablation import Ablation, TooFew, ablate
from tuner.analysis.answer import answer_of
from tuner.analysis.run_comparison import distrust
from tuner.core.runs import StoredTrial, record_of
from tuner.output.formatting import seconds_text
from tuner.output.report.badge import badge, badge_of
from tuner.output.report.content import ReportedRun, varying_knobs
from tuner.output.report.convergence import convergence, convergence_of
from tuner.output.report.element import Markup, element, joined
from tuner.output.report.facts import facts
from tuner.output.report.failures import KINDS_SHOWN, failure_kinds, failures, kind_place
from tuner.output.report.heat_map import chosen_levels, heat_map, pairs_of
from tuner.output.report.importance import importance
from tuner.output.report.parallel import parallel
from tuner.output.report.roofline import roofline
from tuner.output.report.trials import trial_list

NO_TIMES = "Nothing was timed."
NO_ROOFLINE = "Not measured: a run that ends with an answer on a processor or a GPU measures it."
BRUSH = "Draw along an axis to keep the lines that cross there; click an axis to let it go."
MAP = "The best speed that was timed with both values, of the best of all: "
MAP_SHADES = "full colour from 99 %, then 95, 90, 75, 50 %; empty: never timed together."


def index_line(reported: ReportedRun) -> Markup:
    """Draws the entry of a run in the index."""
    run = reported.run
    answer = answer_of(reported.trials, run.noise)
    result = "no time" if answer is None else seconds_text(answer.measurement.median_s)
    return element(
        "a",
        element("b", f"run {run.id}"),
        element("span", f"{run.settings.problem.operation} {run.settings.problem.shape}"),
        element("small", f"{run.settings.target}, {result}"),
        href=f"#run-{run.id}",
    )


def section(reported: ReportedRun, shown: tuple[StoredTrial, ...]) -> Markup:
    """Draws a run; ``shown`` of its trials are listed."""
    run = reported.run
    ablation = ablate(reported.trials)
    title = element(
        "h2",
        f"Run {run.id}: {run.settings.problem.key} ",
        badge(badge_of(run, _best(reported))),
        id=f"run-{run.id}",
    )
    return element(
        "section",
        title,
        facts(reported),
        _part("Convergence", _convergence(reported)),
        _part("Knobs", _knobs(reported, ablation)),
        _part("All choices", _parallel(shown)),
        _part("Failures and trials", _outcomes(reported, shown)),
        _part("Roofline", _roofline(reported)),
        aria_labelledby=f"run-{run.id}",
        class_="run",
    )


def _best(reported: ReportedRun) -> StoredTrial | None:
    answer = answer_of(reported.trials, reported.run.noise)
    return None if answer is None else answer.best


def _is_trusted(reported: ReportedRun) -> bool:
    """Returns False where no ratio of the run's times may be printed."""
    best = _best(reported)
    return best is not None and not distrust(reported.run, best)


def _part(title: str, content: Markup) -> Markup:
    return element("div", element("h3", title), content, class_="part")


def _convergence(reported: ReportedRun) -> Markup:
    drawn = convergence_of(reported.run, reported.trials)
    return element("p", NO_TIMES) if drawn is None else convergence(drawn, reported.run)


def _knobs(reported: ReportedRun, ablation: Ablation | TooFew) -> Markup:
    if isinstance(ablation, TooFew):
        return element("p", f"{ablation.reason}.")
    own = tuple(
        trial
        for trial in reported.trials
        if trial.best_s is not None and record_of(trial).candidate.strategy == ablation.strategy
    )
    shares = {each.knob: each.importance for each in ablation.knobs}
    levels = chosen_levels(varying_knobs(own), shares)
    if len({knob for knob, _ in levels}) < 2:
        return importance(ablation, _is_trusted(reported))
    is_trusted = _is_trusted(reported)
    drawing = element("div", heat_map(levels, pairs_of(own, levels), is_trusted), class_="wide")
    words = element("p", MAP + MAP_SHADES, class_="faint")
    return joined((importance(ablation, is_trusted), element("h4", "Pairs of values"), drawing, words))


def _parallel(shown: tuple[StoredTrial, ...]) -> Markup:
    drawing = parallel(shown)
    if drawing is None:
        return element("p", "No two trials differ.")
    readout = element("output", f"{len(shown)} trials.", class_="readout")
    return element("div", element("p", BRUSH, class_="faint"), drawing, readout, class_="brushed")


def _outcomes(reported: ReportedRun, shown: tuple[StoredTrial, ...]) -> Markup:
    kinds = failure_kinds(reported.trials)
    run = reported.run.id
    places = {
        trial: kind_place(run, index)
        for index, kind in enumerate(kinds[:KINDS_SHOWN])
        for trial in kind.trials
    }
    finished = sum(trial.record is not None for trial in reported.trials)
    listed = frozenset(trial.id for trial in shown)
    return joined((failures(run, kinds, listed), trial_list(shown, finished, places)))


def _roofline(reported: ReportedRun) -> Markup:
    run = reported.run
    answer = answer_of(reported.trials, run.noise)
    if run.roofline is None or answer is None:
        return element("p", NO_ROOFLINE)
    return roofline(run, run.roofline, answer.best)
