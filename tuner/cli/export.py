"""``tuner export``: the best of what was found, as files that stand alone."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.options import (
    composition_of,
    database_option,
    debug_option,
    json_option,
    open_store,
    problem_of,
    problem_options,
)
from tuner.errors import UsageError
from tuner.target_name import TargetName

if TYPE_CHECKING:
    from tuner.db.store import Store
    from tuner.export import Provenance
    from tuner.kernel import KernelProgram
    from tuner.runs import StoredTrial
    from tuner.tuning.composition import Composition

FORMATS = ("script", "source", "payload", "ptx", "cubin", "json", "t4")
DATA_FORMATS = ("json", "t4")  # that tell of a trial; the others are made of its script


@click.command()
@click.argument("operation", required=False)
@click.argument("shape", required=False, metavar="MxNxK")
@problem_options
@click.option("--trial", type=int, help="Export this trial instead of the best for a shape.")
@click.option("--target", help="Only results of this target.")
@click.option("--machine", help="Only results of this class of machine. Default: this one.")
@click.option("--threads", type=int, help="Only results with so many threads.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="script",
    show_default=True,
    help="script: the bound transform script; source: the payload before it; payload: after it; "
    "ptx, cubin: what a GPU target made of it; t4: its result as autotuners share it.",
)
@click.option("-o", "--file", "output", type=click.Path(path_type=Path), help="Write to this file.")
@database_option
@json_option
@debug_option
@click.pass_context
def export(
    context: click.Context,
    operation: str | None,
    shape: str | None,
    dtype: str,
    layout: str,
    epilogue: str,
    output_dtype: str,
    trial: int | None,
    target: str | None,
    machine: str | None,
    threads: int | None,
    form: str,
    output: Path | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Writes the best schedule of a shape, or any trial's.

    A script written to FILE gets its payload beside it, FILE with .source before the suffix.

    Example: tuner export matmul 512x512x512 -o best.mlir
    """
    from tuner.tuning.best import best_answer

    composition = composition_of(context)
    with open_store(database) as store:
        if trial is not None:
            stored = store.trial(trial)
        elif operation is not None and shape is not None:
            problem = problem_of(operation, shape, dtype, layout, epilogue, output_dtype)
            name = _machine_of(composition, target) if machine is None else machine
            stored = best_answer(store, problem, name, target, threads).best
        else:
            raise UsageError("export: found neither a shape nor --trial ID, allowed one of both")
        # T4 is one JSON document, too
        _write(composition, store, stored, "json" if as_json and form != "t4" else form, output)


def _write(
    composition: "Composition", store: "Store", trial: "StoredTrial", form: str, output: Path | None
) -> None:
    from tuner.report import record_of, trial_document

    if trial.record is None or not trial.script_text:
        raise UsageError(f"trial {trial.id}: has no script: it was never bound")
    script, problem, target = trial.script_text, record_of(trial).problem, record_of(trial).target
    if TargetName.parse(target).is_replay and form not in DATA_FORMATS:
        raise UsageError(f"trial {trial.id}: is a replay and has no script, allowed --format json")
    match form:
        case "json":
            import json

            _put(output, json.dumps(trial_document(trial), indent=2, allow_nan=False) + "\n")
        case "t4":
            _put_t4(output, store, trial)
        case "ptx":
            _put(output, _program(store, trial.id).ptx)
        case "cubin":
            _put_cubin(output, _program(store, trial.id).cubin, trial.id)
        case "source":
            _put(output, composition.source(target, problem, script))
        case "payload":
            _put(output, composition.apply(script, composition.source(target, problem, script)))
        case _:
            _write_script(composition, _provenance(store, trial), script, output)


def _write_script(
    composition: "Composition", provenance: "Provenance", script: str, output: Path | None
) -> None:
    from tuner.export import own_ops, script_with_header
    from tuner.strategy import OWN_DIALECT

    script_file = Path("best.mlir") if output is None else output
    source_file = script_file.with_name(f"{script_file.stem}.source{script_file.suffix}")
    ops = own_ops(script, OWN_DIALECT)
    text = script_with_header(script, provenance, ops, script_file.name, source_file.name)
    if output is not None and (output.is_file() or not output.exists()):
        _put(source_file, composition.source(provenance.target, provenance.problem, script))
    _put(output, text)


def _provenance(store: "Store", trial: "StoredTrial") -> "Provenance":
    """Gathers where a trial comes from. Raises UsageError for one that is not known to be right."""
    from tuner.answer import timed
    from tuner.export import Provenance
    from tuner.report import record_of, utc_text

    record, run = record_of(trial), store.run(trial.run)
    if record.status == "failed":
        raise UsageError(
            f"trial {trial.id}: failed, has no time; allowed a measured or verified one, or --format source"
        )
    time = None if trial.best_s is None else timed(trial)
    vendor = run.vendor
    return Provenance(
        tuner=run.tuner_version,
        problem=record.problem,
        target=record.target,
        threads=trial.threads,
        machine=trial.machine.name,
        strategy=record.candidate.strategy,
        knobs=record.candidate.choices,
        median_s=None if time is None else time.median_s,
        interval_s=None if time is None else time.interval_s,
        vendor=None if vendor is None else (vendor.name, vendor.measurement.median_s),
        trial=trial.id,
        run=trial.run,
        mlir=run.compiler.mlir,
        date=utc_text(trial.created),
    )


def _machine_of(composition: "Composition", target: str | None) -> str:
    """Returns the name of the machine that a target's results are for; without one, as ``auto`` chooses."""
    gpu = next((f"{status.name}:{status.chip}" for status in composition.targets() if status.chip), None)
    word = target or gpu
    return composition.machine().name if word is None else composition.target_machine(word).name


def _program(store: "Store", trial: int) -> "KernelProgram":
    program = store.program(trial)
    if program is None:
        raise UsageError(f"trial {trial}: has no GPU program, allowed a compiled trial of cuda or simulator")
    return program


def _put_cubin(output: Path | None, cubin: bytes, trial: int) -> None:
    from tuner.export import write_atomically

    if not cubin:
        raise UsageError(f"trial {trial}: was compiled without ptxas, allowed --format ptx")
    if output is None and sys.stdout.isatty():
        raise UsageError("cubin: found a terminal, allowed -o FILE or a pipe: it is machine code")
    if output is None:
        sys.stdout.buffer.write(cubin)
        return
    write_atomically(output, cubin)
    print(f"wrote {output}", file=sys.stderr)


def _put_t4(output: Path | None, store: "Store", trial: "StoredTrial") -> None:
    from tuner.export import write_atomically
    from tuner.recorded.t4_writing import Recording, t4_bytes

    recording = Recording((store.run(trial.run),), (trial,))
    if output is None:
        print(t4_bytes(recording).decode(), end="")
        return
    write_atomically(output, t4_bytes(recording, is_compressed=output.suffix == ".gz"))
    print(f"wrote {output}", file=sys.stderr)


def _put(output: Path | None, text: str) -> None:
    from tuner.export import write_atomically

    if output is None:
        print(text, end="")
        return
    write_atomically(output, text.encode())
    print(f"wrote {output}", file=sys.stderr)
