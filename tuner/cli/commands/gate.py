"""``tuner gate`` and ``tuner audit``: whether kernels are still as fast, and still correct."""

import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.analysis.ratios import Comparable
from tuner.analysis.slowdown import SlowdownLimits
from tuner.cli.main import DONE, FAILED, screen_columns
from tuner.cli.options import (
    backends_of,
    database_option,
    json_option,
    open_known_store,
    parse_number,
    parse_share,
    print_found,
    seed_option,
)
from tuner.core.errors import TunerError, UsageError
from tuner.core.requests import tune_command
from tuner.core.runs import TaskQuery, TrialQuery
from tuner.core.serialization import seconds_text
from tuner.results.best_trials import best_trials_here
from tuner.results.output.files import write_atomically
from tuner.results.output.formatting import count_text, one_line, table_lines, wrapped
from tuner.results.past_runs import asked_query
from tuner.results.regression.audit import audit as audited_best_trials
from tuner.results.regression.gate import (
    GateFile,
    check_entry,
    gate_file_bytes,
    read_gate_file,
    recorded_entry,
)
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.core.runs import StoredTrial
    from tuner.db.store import Store
    from tuner.results.regression.audit import Audited
    from tuner.results.regression.gate import GateResult
    from tuner.targets.backends import Backends


@click.command()
@click.option("--op", metavar="OPERATION", help="Such as matmul.")
@click.option("--shape", metavar="[Bx]MxNxK")
@click.option("--dtype", metavar="DTYPE")
@click.option("--target", help="Such as cpu, cuda, cuda:sm_90.")
@click.option("--max-slowdown", default="5%", show_default=True, metavar="SHARE", help="Slower is flagged.")
@seed_option("Of the random inputs.")
@database_option
@json_option
@click.pass_context
def audit(
    context: click.Context,
    /,
    op: str | None,
    max_slowdown: str,
    seed: int,
    database: str | None,
    as_json: bool,
    **conditions: object,
) -> None:
    """Recompiles the best trials of this machine after an upgrade; verifies and times changed code again.

    A trial whose code is unchanged keeps its time. Changed code is verified and timed in a new run; the old
    time is marked stale and is no longer selected. Exits with 1 where a best trial is slower, fails or cannot
    be evaluated.

    Example: tuner audit --shape 512x512x512
    """
    limit = parse_share(max_slowdown)
    query = asked_query(operation=op, **conditions)
    results = []
    with open_known_store(database) as store:
        for audited in audited_best_trials(backends_of(context), store, query, limit, seed):
            results.append(audited)
            if not as_json:
                click.echo("\n".join(wrapped([_audit_line(audited)], screen_columns())))
    flagged = sum(not audited.status.holds for audited in results)
    document = {"audited": [_document(each) for each in results], "flagged": flagged}
    print_found(as_json, document, f"{count_text(len(results), 'best')} audited, {flagged} flagged")
    context.exit(FAILED if flagged else DONE)


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


BEST = "best"


@click.command()
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The kernels to watch, with their code, which is run: use no untrusted file.",
)
@click.option(
    "--record",
    "recorded",
    multiple=True,
    metavar="ID",
    help="Put this trial into the file as it is compiled today, or 'best': all best trials of this machine.",
)
@click.option(
    "--max-slowdown", default="2%", show_default=True, metavar="SHARE", help="A slowdown of so much passes."
)
@click.option(
    "--summary", type=click.Path(path_type=Path), metavar="FILE", help="Write the Markdown to this file too."
)
@seed_option("Of the random inputs.")
@database_option
@json_option
@click.pass_context
def gate(
    context: click.Context,
    baseline: Path,
    recorded: tuple[str, ...],
    max_slowdown: str,
    summary: Path | None,
    seed: int,
    database: str | None,
    as_json: bool,
) -> None:
    """Compiles recorded kernels again and times them interleaved with their recorded code, for CI.

    With --record it writes kernels into the file instead. Prints Markdown, on a terminal a table. Exits with
    1 where code is shown to be slower by more than --max-slowdown and the noise, is wrong, or cannot be
    compared; a kernel whose times are too noisy to decide passes, with a note.

    Example: tuner gate --baseline gate.json --record best, then in CI: tuner gate --baseline gate.json
    """
    backends = backends_of(context)
    if recorded:
        _record(backends, baseline, recorded, database, as_json)
        return
    limits = SlowdownLimits.above(parse_share(max_slowdown))
    results = []
    for entry in read_gate_file(baseline).entries:
        results.append(check_entry(backends, entry, limits, seed))
        print(gate_line(results[-1]), file=sys.stderr)
    checked = tuple(results)
    if summary is not None and summary != Path():  # empty where a variable of CI is not set
        write_atomically(summary, f"{gate_markdown(checked)}\n".encode())
    columns = screen_columns()
    lines = (gate_markdown(checked),) if columns is None else gate_table(checked, columns)
    print_found(as_json, gate_document(checked), *lines)
    context.exit(DONE if all(result.status.passes for result in checked) else FAILED)


def _record(
    backends: "Backends", file: Path, arguments: tuple[str, ...], database: str | None, as_json: bool
) -> None:
    entries = {}
    with open_known_store(database) as store:
        for trial in _trials(backends, store, arguments):
            try:
                entries[trial.id] = recorded_entry(backends, store, trial)
            except TunerError as error:
                if str(trial.id) in arguments:
                    raise
                print(f"note: skipped {error}", file=sys.stderr)  # a best trial that no longer compiles
    now = datetime.datetime.now(datetime.UTC)
    earlier = read_gate_file(file) if file.exists() else GateFile(now, __version__, ())
    content = earlier.with_entries(tuple(entries.values()))
    write_atomically(file, gate_file_bytes(content))
    for trial_id, entry in entries.items():
        print(f"recorded {entry.key}: trial {trial_id}", file=sys.stderr)
    print_found(
        as_json,
        {"file": str(file), "recorded": len(entries), "entries": len(content.entries)},
        f"recorded {count_text(len(entries), 'kernel')}; {file} has {len(content.entries)}",
    )


def _trials(backends: "Backends", store: "Store", arguments: tuple[str, ...]) -> "list[StoredTrial]":
    trials: dict[int, StoredTrial] = {}
    for text in arguments:
        if text != BEST:
            named = store.trial(parse_number(text))
            trials[named.id] = named
            continue
        best = best_trials_here(store, backends, TrialQuery())
        if not best:
            raise UsageError("record: nothing was timed on this machine", tune_command(TaskQuery()))
        trials |= {trial.id: trial for trial in best}
    return list(trials.values())


HEADER = ("problem", "result", "slowdown", "99 % interval", "noise", "then", "now", "reliable")
SPARED = ("noise", "99 % interval")  # columns that a narrow terminal loses first


def gate_markdown(results: "tuple[GateResult, ...]") -> str:
    """Returns the results as Markdown: headline, a table line per kernel, reasons of those not timed."""
    lines = [f"### tuner gate: {_head(results)}", "", _piped(HEADER), f"|{'---|' * len(HEADER)}"]
    for result in results:
        status = result.status.value if result.status.passes else f"**{result.status.value}**"
        lines.append(_piped((result.entry.key, status, *_times(result))))
    reasons = [
        f"- {result.entry.key}: {_escaped(result.reason)}" for result in results if result.slowdown is None
    ]
    return "\n".join([*lines, *([""] if reasons else []), *reasons])


def gate_table(results: "tuple[GateResult, ...]", columns: int) -> list[str]:
    """Returns the results as a table and a verdict line; reasons were printed while the gate ran."""
    rows = [(result.entry.key, result.status.value, *_times(result)) for result in results]
    return [*table_lines(HEADER, rows, columns, SPARED), f"gate: {_head(results)}"]


def gate_document(results: "tuple[GateResult, ...]") -> dict[str, Any]:
    """Returns the JSON document of ``tuner gate --json``: whether the gate passed, an entry per kernel."""
    passed = all(result.status.passes for result in results)
    return {"passed": passed, "entries": [_entry_document(result) for result in results]}


def gate_line(result: "GateResult") -> str:
    """Returns the result of a kernel as a progress line: status, slowdown or why none is printed, reason."""
    slowdown, compared = "", result.compared
    if isinstance(compared, Comparable):
        slowdown = f" {compared.longer_text},"
    elif result.slowdown is not None:
        slowdown = f" {result.reliability.text if result.reliability.unreliable else compared.reason},"
    return f"{result.entry.key}: {result.status.value},{slowdown} {result.reason}"


def _head(results: "tuple[GateResult, ...]") -> str:
    stopped = sum(not result.status.passes for result in results)
    return f"{stopped} of {count_text(len(results), 'kernel')} stopped the gate" if stopped else "passed"


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
    entry, slowdown, compared = result.entry, result.slowdown, result.compared
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
