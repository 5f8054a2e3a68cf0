"""``tuner tune --on A,B``: every machine class measures the candidates of the first class's run."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tuner.analysis.comparison import Comparable, NotComparable
from tuner.cli.commands.tune_shapes import GroupNumber
from tuner.cli.options import open_known_store
from tuner.cli.run_session import run_session
from tuner.core.target_name import TargetName

if TYPE_CHECKING:
    from tuner.analysis.compromise import Compromise
    from tuner.db.store import Store
    from tuner.fleet.driver import FleetRequest
    from tuner.tuning.composition import Composition
    from tuner.tuning.tuned_run import TunedRun


def fleet_of_run(fleet: "FleetRequest", resumed: int | None, database: str | None) -> "FleetRequest":
    """Returns ``fleet``; for a resumed run without --machine or --on, with that run's machine class.

    ``resumed`` is the number of the resumed run or of the resumed group of runs, which have one machine
    class; None for a new run.
    """
    if resumed is None or fleet.machine:
        return fleet
    with open_known_store(database) as store:
        is_group = isinstance(resumed, GroupNumber)
        run = store.group(resumed).runs[0] if is_group else store.run(resumed)
        return replace(fleet, machine=run.machine.name)


def target_text(fleet: "FleetRequest", target: str) -> str:
    """Returns the target of the first machine class in --on, as text; for a recording ``target`` itself.

    Raises UsageError if any of the machine classes is unknown.
    """
    from tuner.fleet.kind import target_on

    asked = TargetName.parse(target)
    first, *_ = [target_on(fleet, given, asked.kind).text for given in fleet.on]
    return first if asked.has_machine else target


def followers(
    composition: "Composition", fleet: "FleetRequest", leader: "TunedRun", store: "Store"
) -> "Iterator[TunedRun]":
    """Tunes on each further machine class of --on, one after another, and yields its run.

    Each run measures the candidates of the first class's run, ``leader``. Stops after a run that was
    interrupted or has no successful trial.
    """
    from tuner.fleet.kind import fleet_composition, target_on
    from tuner.tuning.following import following

    tuned = leader
    for given in fleet.on[1:]:
        if tuned.is_interrupted or not tuned.has_worked:
            return
        target = target_on(fleet, given, leader.run.settings.target.kind)
        there = fleet_composition(composition, replace(fleet, machine=given, on=()))
        settings, begun = following(leader.run, target, there, store)
        tuned = run_session(there, store, settings, begun)
        yield tuned


def compromise_lines(all_tuned: "tuple[TunedRun, ...]", store: "Store") -> list[str]:
    """Returns lines on the candidate with the least worst-case slowdown over the machines of --on.

    Has the candidate's knobs, and per machine its time and slowdown; one line if there is no such candidate.
    """
    from tuner.core.time_text import seconds_text
    from tuner.output.formatting import knobs_line

    found = _compromise(all_tuned, store)
    if found is None:
        return ["compromise: no candidate has a time on each machine"]
    first = found.trials[0].record.candidate
    compared = _compared(all_tuned, found)
    worst = max((each.longer for each in compared if isinstance(each, Comparable)), default=0.0)
    is_known = all(isinstance(each, Comparable) or each.is_equal for each in compared)
    slower = f"at most {worst:.1%} slower than" if worst > 0 else "not distinguishable from"
    most = f", {slower} the best" if is_known else ""
    lines = [f"compromise {first.strategy}{most}", knobs_line(first.choices)]
    for tuned, trial, one in zip(all_tuned, found.trials, compared, strict=True):
        time = f"{seconds_text(trial.best_s or 0.0)} on {tuned.run.machine.name}"
        phrase = one.longer_text if isinstance(one, Comparable) else f"no ratio to the best: {one.reason}"
        lines.append(f"          {time}: {phrase}, trial {trial.id}")
    return lines


def several_document(all_tuned: "tuple[TunedRun, ...]", store: "Store") -> dict[str, Any]:
    """Returns the JSON document of ``tuner tune --on A,B --json``: the runs and the compromise."""
    from tuner.core.documents import candidate_document
    from tuner.output.json_documents import tune_document

    found = _compromise(all_tuned, store)
    runs = [tune_document(each.run, each.counts, each.selected, each.seconds) for each in all_tuned]
    if found is None:
        return {"runs": runs, "compromise": None}
    candidate = found.trials[0].record.candidate
    compared = _compared(all_tuned, found)
    return {
        "runs": runs,
        "compromise": {
            **candidate_document(candidate),
            "trials": [trial.id for trial in found.trials],
            "slowdowns": [
                max(0.0, each.longer) if isinstance(each, Comparable) else None for each in compared
            ],
            "slowdowns_unknown": [
                each.reason if isinstance(each, NotComparable) else None for each in compared
            ],
        },
    }


def _compared(
    all_tuned: "tuple[TunedRun, ...]", found: "Compromise"
) -> "tuple[Comparable | NotComparable, ...]":
    """Returns the comparison of the compromise with the fastest trial, per machine."""
    from tuner.analysis.run_comparison import between_trials

    trios = zip(all_tuned, found.trials, found.fastest, strict=True)
    return tuple(between_trials(tuned.run, trial, fastest) for tuned, trial, fastest in trios)


def _compromise(all_tuned: "tuple[TunedRun, ...]", store: "Store") -> "Compromise | None":
    from tuner.analysis.compromise import best_compromise
    from tuner.core.runs import TrialQuery

    return best_compromise(tuple(store.trials(TrialQuery(run=each.run.id)) for each in all_tuned))
