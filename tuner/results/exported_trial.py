"""A trial exported: its script with knobs, provenance, payload or GPU code.

``exported`` makes the content in one format, ``exported_files`` a script with its payload and its provenance
file. ``with_knob_options`` lists, in a script, the values that its knobs may have.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.analysis.ratios import Comparable, NotComparable, against_baseline, sensitivity_text
from tuner.analysis.selected_result import timed
from tuner.analysis.slowdown import lower_quartile
from tuner.core.candidate import Candidate, RecordedRound
from tuner.core.errors import CandidateError, UsageError
from tuner.core.machine import variables_of
from tuner.core.records import Verdict
from tuner.core.runs import Run
from tuner.core.serialization import utc_text
from tuner.core.trials import StoredTrial
from tuner.mlir.cpu.needed_instructions import script_instructions
from tuner.space.file.reading import parse_space, spaces_for
from tuner.space.scripts.header import (
    BaselineMedian,
    ScriptProvenance,
    code_lines,
    custom_ops,
    provenance_file,
    provenance_text,
    script_with_header,
    source_file,
)
from tuner.space.scripts.script_text import with_constants
from tuner.space.scripts.strategy import Binder, load_strategy
from tuner.space.search_space import SearchSpace
from tuner.targets.backends import Backends

if TYPE_CHECKING:
    from tuner.db.store import Store


FORMS = ("script", "provenance", "source", "payload", "ptx", "cubin")
KNOB_LINE = re.compile(
    r"^(?P<begin>(?P<handle> *%\w+) = "
    r'transform\.tune\.knob<"(?P<name>\w+)"> = (?P<value>\d+) from options = )\[[\d, ]+\]',
    re.MULTILINE,
)


def exported(
    backends: Backends,
    store: "Store",
    trial: StoredTrial,
    form: str,
    output: Path | None,
    *,
    constants: bool = False,
) -> bytes:
    """Returns the content of an exported file: a trial's script, provenance, payload or GPU code.

    Args:
        backends: the parts that generate and transform payloads.
        store: the results database.
        trial: the trial to export.
        form: "script" (with a header of its times), "provenance" (what the header says, as JSON), "source"
            (the payload before the script), "payload" (the payload after the script), "ptx" or "cubin".
        output: the file that the caller will write, None to print; this function writes no file. The script's
            header names the file.
        constants: whether a script has plain constants in place of knobs.

    Raises UsageError for a trial without a script, for "script" and "provenance" of a failed trial, for "ptx"
    or "cubin" where none is stored, and for a replay. Raises TunerError where the payload cannot be
    transformed.
    """
    require_bound(trial)
    if not trial.script:
        raise UsageError(f"trial {trial.id}: is a replay and has no script", "--format json")
    match form:
        case "provenance":
            return provenance_text(provenance_of(store, trial)).encode()
        case "ptx" | "cubin":
            return _gpu_code(store, trial.id, form)
        case "source":
            return source_of(backends, trial).encode()
        case "payload":
            return backends.apply(trial.script_text, source_of(backends, trial)).encode()
        case _:
            provenance = provenance_of(store, trial)
            script = trial.script_text
            ops = custom_ops(script)
            file = Path("best.mlir") if output is None else output
            if constants:
                script = with_constants(script)
            else:
                script = _with_knob_options(store.run(trial.run), trial)
            header = (provenance, ops, file.name, source_file(file).name)
            return script_with_header(script, *header).encode()


def exported_files(
    backends: Backends, store: "Store", trial: StoredTrial, script_file: Path, *, constants: bool = False
) -> dict[Path, bytes]:
    """Returns path -> content for an exported script: its payload, its provenance and, last, the script.

    ``constants``: whether the script has plain constants in place of knobs.
    """
    return {
        source_file(script_file): source_of(backends, trial).encode(),
        provenance_file(script_file): exported(backends, store, trial, "provenance", script_file),
        script_file: exported(backends, store, trial, "script", script_file, constants=constants),
    }


def require_bound(trial: StoredTrial) -> None:
    """Raises UsageError for a trial with an empty script: its knob values were never bound into a script."""
    if not trial.script_text:
        raise UsageError(f"trial {trial.id}: has no script: it was never bound")


def source_of(backends: Backends, trial: StoredTrial) -> str:
    """Returns the payload of a trial as MLIR text, before the trial's transform script is applied."""
    record = trial.record
    return backends.target(record.target).source(record.problem, trial.script_text)


def stock_file(script_file: Path) -> Path:
    """Returns the path of the script that stock mlir-opt runs, next to one that calls ops of tuner."""
    return script_file.with_name(f"{script_file.stem}.stock{script_file.suffix}")


def _with_knob_options(run: Run, trial: StoredTrial) -> str:
    """Returns a trial's script in which each knob also lists other allowed values (``with_knob_options``).

    The script is returned as stored for a user's strategy, and where the search space is of another version.
    """
    script = trial.script_text
    record = trial.record
    settings = run.settings
    chosen = [strategy for strategy in settings.strategies if strategy.name == record.candidate.strategy]
    if not KNOB_LINE.search(script) or not chosen or chosen[0].path is not None:
        return script
    variables = variables_of(record.problem, trial.machine, trial.threads)
    try:
        space_file = parse_space(settings.space_yaml, settings.space_name)
        (space,) = spaces_for(space_file, record.problem, trial.machine.isa, variables, (chosen[0].name,))
    except UsageError:  # the space of another version
        return script
    binder = Binder((load_strategy(chosen[0].name),), record.problem, variables, trial.threads)
    return with_knob_options(script, record.candidate, binder, space)


def provenance_of(store: "Store", trial: StoredTrial) -> ScriptProvenance:
    """Returns the provenance of a trial's script: what it is for, its recorded time and the round of it.

    Raises UsageError for a trial that failed.
    """
    record = trial.record
    run = store.run(trial.run)
    if record.status == "failed":
        hint = f"the script itself: tuner show {trial.id} --json"
        raise UsageError(f"trial {trial.id}: failed, and has no time", hint)
    time = None if trial.best_s is None or trial.early_stopped is not None else timed(trial)
    baseline = run.baseline
    compared = None if time is None else against_baseline(run, trial)
    unverified = ""
    if record.is_compiled_only and isinstance(record.outcome, Verdict):
        unverified = "; ".join(record.outcome.notes) or "nothing was verified"
    return ScriptProvenance(
        tuner=run.tuner_version,
        problem=record.problem,
        target=record.target,
        threads=trial.threads,
        machine=trial.machine.name,
        needs=script_instructions(trial.script_text, record.problem.multiplied_dtype),
        strategy=record.candidate.strategy,
        knobs=record.candidate.choices,
        median_s=None if time is None else time.median_s,
        interval_s=None if time is None else time.interval_s,
        baseline=None if baseline is None else BaselineMedian(baseline.name, baseline.measurement.median_s),
        trial=trial.id,
        run=trial.run,
        mlir=run.compiler.mlir,
        date=utc_text(trial.created),
        reliability=trial.reliability,
        ratio=compared.speed if isinstance(compared, Comparable) else None,
        ratio_interval=None if compared is None else compared.speed_interval,
        round=_recorded_round(run, trial),
        no_ratio=compared.reason if isinstance(compared, NotComparable) else "",
        sensitive=sensitivity_text(time, record.problem, run.noise, trial.reliability),
        unverified=unverified,
    )


def _recorded_round(run: Run, trial: StoredTrial) -> RecordedRound | None:
    if trial.final is None or run.noise is None:
        return None
    baseline = run.baseline
    host = trial.final.host
    library_s = baseline.measurement.samples_s if baseline and baseline.is_interleaved else None
    return RecordedRound(
        kernel_s=lower_quartile(trial.final.samples_s),
        noise=run.noise,
        library_s=None if library_s is None else lower_quartile(library_s),
        panel_product_s=None if host is None else host.panel_product_s,
    )


def _gpu_code(store: "Store", trial: int, form: str) -> bytes:
    program = store.code(trial)
    if program is None:
        raise UsageError(f"trial {trial}: has no GPU program: it was not compiled for cuda or simulator")
    if form == "ptx":
        return program.text.encode()
    if not program.binary:
        raise UsageError(f"trial {trial}: was compiled without ptxas", "--format ptx")
    return program.binary


# The knobs of an exported script: constants, or options, values that change nothing else in the script.
#
# Some values also decide other steps: which loops are peeled, how often a loop is unrolled. So a value is an
# option only where the strategy, bound with that value, gives the same text except for the knob's line.


def with_knob_options(script: str, candidate: Candidate, binder: Binder, space: SearchSpace) -> str:
    """Returns a candidate's bound script in which each knob also lists its other allowed values.

    ``binder`` and ``space`` are those of the candidate's strategy. A value is listed if only the knob's line
    changes with it and no constraint or preference of the space forbids it. A script that the binder does not
    write today is returned as it is.
    """
    if _bound(candidate, candidate, binder, space) != script:
        return script
    choices = {knob.name: knob.choices for knob in space.knobs}
    chosen = dict(candidate.choices)

    def listed(knob: re.Match[str]) -> str:
        name = knob["name"]
        kept = []
        # a line whose value the strategy computed, such as the step of wgmma's remainder loop along K, stays
        for value in choices.get(name, ()) if str(chosen.get(name)) == knob["value"] else ():
            changed = Candidate.of(candidate.strategy, {**chosen, name: value})
            if _rest(_bound(changed, candidate, binder, space), name) == _rest(script, name):
                kept.append(str(value))
        if kept:
            return f"{knob['begin']}[{', '.join(kept)}]"
        return knob[0]

    return KNOB_LINE.sub(listed, script)


def _bound(changed: Candidate, candidate: Candidate, binder: Binder, space: SearchSpace) -> str:
    if changed != candidate and (space.violated(changed) or space.demoted_by(changed)):
        return ""
    try:
        return binder.bind(changed).text
    except CandidateError:
        return ""


def _rest(script: str, knob: str) -> list[str]:
    return [line.strip() for line in code_lines(script) if f'knob<"{knob}">' not in line]
