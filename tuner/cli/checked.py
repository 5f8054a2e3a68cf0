"""The work of ``tuner check``: a script, the best trials, or recorded kernels are verified and timed.

``check_script``, ``check_best`` and ``check_baseline`` are its forms, ``record`` writes the file that the
last one reads; the other functions format their results.
"""

import datetime
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.analysis.ratios import Comparable
from tuner.analysis.slowdown import SlowdownLimits
from tuner.cli.main import DONE, FAILED, UNDECIDED, screen_columns
from tuner.cli.options import (
    note_unknown_problems,
    open_known_store,
    parse_number,
    print_found,
)
from tuner.core.errors import TunerError, UsageError, error_lines
from tuner.core.problem_text import tune_command
from tuner.core.queries import TaskQuery, TrialQuery
from tuner.core.round_quality import reliability_alone
from tuner.core.serialization import count_text, seconds_text
from tuner.results.best_trials import best_trials_here
from tuner.results.output.files import write_atomically
from tuner.results.output.formatting import one_line, table_lines, wrapped
from tuner.results.regression.audit import AuditStatus, audit
from tuner.results.regression.gate import (
    GateFile,
    check_entry,
    gate_file_bytes,
    read_gate_file,
    recorded_entry,
)
from tuner.results.regression.script_check import CheckFinding, checked
from tuner.runtime.workers.worker import call_in_child
from tuner.space.scripts.header import ScriptProvenance, without_header
from tuner.space.scripts.strategy import linked_text
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.core.reliability import Reliability
    from tuner.core.trials import StoredTrial
    from tuner.db.store import Store
    from tuner.results.regression.audit import Audited
    from tuner.results.regression.gate import GateResult
    from tuner.results.regression.script_check import ScriptCheck
    from tuner.targets.backends import Backends


BEST = "best"  # in place of a trial's number: all best trials of this machine
LINK_TIMEOUT_S = 60.0
HEADER = ("problem", "result", "slowdown", "99 % interval", "noise", "then", "now", "reliable")
SPARED = ("noise", "99 % interval")  # columns that a narrow terminal loses first


def check_script(
    backends: "Backends",
    text: str,
    provenance: ScriptProvenance,
    libraries_of: tuple[str, tuple[Path, ...]],
    limits: SlowdownLimits,
    seed: int,
    *,
    as_json: bool,
) -> int:
    """Verifies and times an exported script; prints the result, returns the exit code.

    ``libraries_of``: the script's file as it was typed, and the files of ``--library``.
    """
    name, libraries = libraries_of
    bound = without_header(text)
    if libraries:
        link = partial(linked_text, bound, name, libraries)
        bound = call_in_child("check", link, LINK_TIMEOUT_S, is_named=False)
    result = checked(backends, provenance, bound, limits, seed)
    lines = wrapped(check_lines(result, provenance.median_s), screen_columns())
    document = check_document(result, provenance.median_s, provenance.reliability)
    print_found(as_json, document, *lines)
    if result.hint:
        print(error_lines("", f"{result.hint} -o {shlex.quote(name)}"), file=sys.stderr)
    is_undecided = result.finding in (CheckFinding.CANNOT_TELL, CheckFinding.COMPILED)
    if result.finding.passes:
        return DONE
    if is_undecided:
        return UNDECIDED
    return FAILED


def check_lines(check: "ScriptCheck", recorded_s: float | None) -> list[str]:
    """Returns the result of ``tuner check SCRIPT`` as lines.

    ``recorded_s``: the script's recorded seconds per call; None: not recorded.
    """
    match check.finding:
        case CheckFinding.FAILED | CheckFinding.COMPILED:
            return [check.reason]
        case CheckFinding.VERIFIED:
            if check.median_s is None:
                return [f"correct; {check.reason}"]
            time = f"{seconds_text(check.median_s)} ({check.reliability.text})"
            return [f"correct; {time}, {check.reason}"]
        case CheckFinding.CANNOT_TELL:
            return [f"correct; cannot tell if slower: {check.reason}", *_time_lines(check, recorded_s)]
        case CheckFinding.NOT_SLOWER | CheckFinding.SLOWER:
            return [f"correct; {check.finding.value} {check.reason}", *_time_lines(check, recorded_s)]


def check_document(check: "ScriptCheck", recorded_s: float | None, recorded: "Reliability") -> dict[str, Any]:
    """Returns the JSON document of ``tuner check SCRIPT --json``.

    ``recorded_s``: the script's recorded seconds per call, None if not recorded; ``recorded``: how reliable
    the recorded seconds are.
    """
    compared = check.compared
    return {
        "correct": check.finding not in (CheckFinding.FAILED, CheckFinding.COMPILED),
        "median_s": check.median_s,
        "reliability": check.reliability.text,
        "recorded_s": recorded_s,
        "recorded_reliability": None if recorded_s is None else recorded.text,
        "ratio": compared.ratio if isinstance(compared, Comparable) else None,
        "ratio_unknown": None if isinstance(compared, Comparable) else compared.reason,
        "interval": None if compared.interval is None else list(compared.interval),
        "finding": check.finding.value,
        "reason": check.reason,
        "sessions": check.sessions,
        "passed": check.finding.passes,
    }


def _time_lines(check: "ScriptCheck", recorded_s: float | None) -> list[str]:
    assert check.median_s is not None
    assert recorded_s is not None
    lines = [
        f"time      {seconds_text(check.median_s)}, recorded {seconds_text(recorded_s)}",
        f"reliable  {check.reliability.answer}",
    ]
    compared = check.compared
    if isinstance(compared, Comparable):
        lines.append(f"ratio     {compared.ratio_text}, {check.sessions} sessions")
    elif compared.is_equal:
        lines.append(f"ratio     {compared.reason}, {check.sessions} sessions")
    return lines


def check_best(
    backends: "Backends",
    query: TrialQuery,
    limits: SlowdownLimits,
    seed: int,
    database: str | None,
    *,
    as_json: bool,
) -> int:
    """Audits the best trials of this machine; prints the result, returns the exit code.

    ``database``: path or URL, None: the default.
    """
    results = []
    with open_known_store(database) as store:
        note_unknown_problems(store)
        for audited in audit(backends, store, query, limits, seed):
            results.append(audited)
            if not as_json:
                click.echo("\n".join(wrapped([_audit_line(audited)], screen_columns())))
    flagged = sum(not audited.status.holds for audited in results)
    undecided = sum(audited.status is AuditStatus.NOT_EVALUATED for audited in results)
    document = {"audited": list(map(_document, results)), "flagged": flagged}
    print_found(as_json, document, f"{count_text(len(results), 'best')} audited, {flagged} flagged")
    if flagged > undecided:
        return FAILED
    if undecided:
        return UNDECIDED
    return DONE


def _audit_line(audited: "Audited") -> str:
    record = audited.trial.record
    what = f"trial {audited.trial.id}  {record.problem.key} {record.target}"
    now = "" if audited.now_s is None else f" {seconds_text(audited.now_s)},"
    stored = "" if audited.run is None else f" (run {audited.run})"
    return f"{what}  {audited.status.value}:{now} {one_line(audited.reason)}{stored}"


def _document(audited: "Audited") -> dict[str, Any]:
    record = audited.trial.record
    return {
        "trial": audited.trial.id,
        "problem": record.problem.key,
        "target": record.target.text,
        "threads": audited.trial.threads,
        "candidate": record.candidate.text,
        "status": audited.status.value,
        "holds": audited.status.holds,
        "reason": audited.reason,
        "reliability": audited.trial.reliability.text,  # of the recorded time
        "recorded_s": audited.trial.best_s,
        "now_s": audited.now_s,
        "run": audited.run,
    }


def check_baseline(
    backends: "Backends",
    file: Path,
    limits: SlowdownLimits,
    summary: Path | None,
    seed: int,
    *,
    as_json: bool,
) -> int:
    """Compiles recorded kernels again, and times changed code; prints the result, returns the exit code.

    ``summary``: file to which the result is written as Markdown; None: no file.
    """
    results = []
    for entry in read_gate_file(file).entries:
        results.append(check_entry(backends, entry, limits, seed))
        print(gate_line(results[-1]), file=sys.stderr)
    gate_results = tuple(results)
    if summary is not None and summary != Path():  # empty where a variable of CI is not set
        write_atomically(summary, f"{gate_markdown(gate_results)}\n".encode())
    columns = screen_columns()
    lines = (gate_markdown(gate_results),) if columns is None else gate_table(gate_results, columns)
    print_found(as_json, gate_document(gate_results), *lines)
    if all(result.status.passes for result in gate_results):
        return DONE
    return FAILED


def record(
    backends: "Backends", file: Path, arguments: tuple[str, ...], database: str | None, *, as_json: bool
) -> int:
    """Writes trials into a file of recorded kernels; prints the result, returns the exit code.

    ``arguments``: ids of trials, or "best". ``database``: path or URL, None: the default. ``as_json``: print
    JSON.
    """
    entries = {}
    doubts = {}
    with open_known_store(database) as store:
        for trial in _trials(backends, store, arguments):
            try:
                entry = entries[trial.id] = recorded_entry(backends, store, trial)
                spare_cores = trial.machine.physical_cores - trial.threads
                host = entry.measurement.host
                alone = reliability_alone(host, quietest_reference_s=None, spare_cores=spare_cores)
                doubts[trial.id] = trial.reliability.unreliable or alone.unreliable
            except TunerError as error:
                if str(trial.id) in arguments:
                    raise
                print(f"note: skipped {error}", file=sys.stderr)  # a best trial that no longer compiles
    now = datetime.datetime.now(datetime.UTC)
    earlier = read_gate_file(file) if file.exists() else GateFile(now, __version__, ())
    content = earlier.with_entries(tuple(entries.values()))
    write_atomically(file, gate_file_bytes(content))
    for trial_id, entry in entries.items():
        doubt = f"; its time is unreliable: {doubts[trial_id]}" if doubts[trial_id] else ""
        print(f"recorded {entry.key}: trial {trial_id}{doubt}", file=sys.stderr)
    if any(doubts.values()):
        print("note: a check times the recorded code again, next to today's", file=sys.stderr)
    print_found(
        as_json,
        {"file": str(file), "recorded": len(entries), "entries": len(content.entries)},
        f"recorded {count_text(len(entries), 'kernel')}; {file} has {len(content.entries)}",
    )
    return DONE


def _trials(backends: "Backends", store: "Store", arguments: tuple[str, ...]) -> "list[StoredTrial]":
    trials: dict[int, StoredTrial] = {}
    for text in arguments:
        if text != BEST:
            named = store.trial(parse_number(text))
            trials[named.id] = named
            continue
        note_unknown_problems(store)
        best = best_trials_here(store, backends, TrialQuery())
        if not best:
            raise UsageError("record: nothing was timed on this machine", tune_command(TaskQuery()))
        trials |= {trial.id: trial for trial in best}
    return list(trials.values())


def gate_markdown(results: "tuple[GateResult, ...]") -> str:
    """Returns the results as Markdown: headline, a table row per kernel, reasons for untimed kernels."""
    lines = [f"### tuner check: {_head(results)}", "", _piped(HEADER), f"|{'---|' * len(HEADER)}"]
    for result in results:
        status = result.status.value if result.status.passes else f"**{result.status.value}**"
        lines.append(_piped((result.entry.key, status, *_times(result))))
    reasons = [
        f"- {result.entry.key}: {_escaped(result.reason)}" for result in results if result.slowdown is None
    ]
    if reasons:
        lines += ["", *reasons]
    return "\n".join(lines)


def gate_table(results: "tuple[GateResult, ...]", columns: int) -> list[str]:
    """Returns the results as a table and a line with the verdict.

    The reasons were printed while the gate ran.
    """
    rows = [(result.entry.key, result.status.value, *_times(result)) for result in results]
    return [*table_lines(HEADER, rows, columns, SPARED), f"check: {_head(results)}"]


def gate_document(results: "tuple[GateResult, ...]") -> dict[str, Any]:
    """Returns the JSON document of ``tuner check --baseline``: whether all passed, an entry per kernel."""
    passed = all(result.status.passes for result in results)
    return {"passed": passed, "entries": list(map(_entry_document, results))}


def gate_line(result: "GateResult") -> str:
    """Returns the result of a kernel as a progress line: status, slowdown (or why there is none), reason."""
    slowdown = ""
    compared = result.compared
    if isinstance(compared, Comparable):
        slowdown = f" {compared.longer_text},"
    elif result.slowdown is not None:
        slowdown = f" {result.reliability.text if result.reliability.unreliable else compared.reason},"
    return f"{result.entry.key}: {result.status.value},{slowdown} {result.reason}"


def _head(results: "tuple[GateResult, ...]") -> str:
    stopped = sum(not result.status.passes for result in results)
    if stopped:
        return f"{stopped} of {count_text(len(results), 'kernel')} slower or failed"
    return "passed"


def _piped(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _times(result: "GateResult") -> tuple[str, ...]:
    slowdown = result.slowdown
    if slowdown is None or result.then_s is None or result.now_s is None:
        return ("-",) * 6
    low, high = slowdown.interval
    compared = result.compared
    longer = compared.longer_percent_text if isinstance(compared, Comparable) else "-"
    noise = (longer, f"{low:+.1%} .. {high:+.1%}", f"{slowdown.noise:.1%}")
    return (*noise, seconds_text(result.then_s), seconds_text(result.now_s), result.reliability.word)


def _escaped(text: str) -> str:
    # a reason may quote untrusted text: Markdown's special characters are escaped
    return "".join(f"\\{sign}" if sign in "\\`*_|<>[]#" else sign for sign in one_line(text))


def _entry_document(result: "GateResult") -> dict[str, Any]:
    entry = result.entry
    slowdown = result.slowdown
    compared = result.compared
    return {
        "problem": entry.problem.key,
        "target": entry.target.text,
        "threads": entry.threads,
        "candidate": entry.candidate.text,
        "status": result.status.value,
        "passed": result.status.passes,
        "reason": result.reason,
        "slowdown": compared.longer if isinstance(compared, Comparable) else None,
        "slowdown_unknown": None if isinstance(compared, Comparable) else compared.reason,
        "interval": None if slowdown is None else list(slowdown.interval),
        "noise": None if slowdown is None else slowdown.noise,
        "sessions": result.sessions,
        "then_s": result.then_s,
        "now_s": result.now_s,
        "reliability": result.reliability.text,
        "recorded_s": entry.measurement.median_s,  # alone, when the file was written
        "recorded_machine": entry.machine,
        "recorded_compiler": entry.compiler,
    }
