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
    print_json,
    problem_of,
    problem_options,
)
from tuner.core.errors import UsageError

if TYPE_CHECKING:
    from tuner.core.kernel_program import KernelProgram
    from tuner.core.runs import StoredTrial
    from tuner.db.store import Store
    from tuner.scripts.header import ScriptProvenance
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
    "--stock",
    "is_stock",
    is_flag=True,
    help="The best script that stock mlir-opt runs, and how much slower it is by the stored times.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="script: the bound transform script (default); source: the payload before it; payload: after it; "
    "ptx, cubin: what a GPU target made of it; json: the trial (default with --json); "
    "t4: its result as autotuners share it.",
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
    is_stock: bool,
    form: str | None,
    output: Path | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Writes the best schedule of a shape, or any trial's, or what stands in for it in stock mlir-opt.

    A script written to FILE gets its payload beside it, FILE with .source before the suffix. With --json the
    format's text is a field of a document; with --json and FILE the document names the files written.

    Example: tuner export matmul 512x512x512 -o best.mlir
    """
    from tuner.tuning.best_known import best_answer, best_here
    from tuner.tuning.target_choice import AUTO

    composition = composition_of(context)
    with open_store(database) as store:
        if trial is not None:
            stored = store.trial(trial)
        elif operation is not None and shape is not None:
            problem = problem_of(operation, shape, dtype, layout, epilogue, output_dtype)
            if machine is None:
                stored = best_here(store, composition, problem, target or AUTO, threads).best
            else:
                stored = best_answer(store, problem, machine, target, threads).best
        else:
            raise UsageError("export: found neither a shape nor --trial ID, allowed one of both")
        form = form or ("json" if as_json else "script")
        if is_stock:
            _write_stock(composition, store, stored, form, output, as_json)
        else:
            _write(composition, store, stored, form, output, as_json)


def _write_stock(
    composition: "Composition",
    store: "Store",
    winner: "StoredTrial",
    form: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Writes what takes the winner's place in stock mlir-opt, and then says what that costs."""
    from tuner.cli.output.result import stock_words
    from tuner.tuning.best_stock import best_stock

    found = best_stock(store, winner)
    _write(composition, store, found.trial, form, output, as_json)
    print(f"tuner: {stock_words(found)}", file=sys.stderr)


def _write(
    composition: "Composition",
    store: "Store",
    trial: "StoredTrial",
    form: str,
    output: Path | None,
    as_json: bool,
) -> None:
    content = _content(composition, store, trial, form, output)
    if output is None:
        _print(content, trial.id, form, as_json)
        _tell_of_machine_code(trial, form)
        return
    files = [output]
    if form == "script" and (output.is_file() or not output.exists()):
        files.insert(0, _source_file(output))
        _put(files[0], _source(composition, trial).encode())
    _put(output, content)
    _tell_of_machine_code(trial, form)
    if as_json:
        print_json({"trial": trial.id, "format": form, "files": [str(path) for path in files]})


def _content(
    composition: "Composition", store: "Store", trial: "StoredTrial", form: str, output: Path | None
) -> bytes:
    from tuner.cli.output.json_documents import trial_document
    from tuner.core.runs import record_of

    if trial.record is None or not trial.script_text:
        raise UsageError(f"trial {trial.id}: has no script: it was never bound")
    if record_of(trial).target.is_replay and form not in DATA_FORMATS:
        raise UsageError(f"trial {trial.id}: is a replay and has no script, allowed --format json")
    match form:
        case "json":
            import json

            return (json.dumps(trial_document(trial), indent=2, allow_nan=False) + "\n").encode()
        case "t4":
            return _t4(store, trial, output)
        case "ptx":
            return _program(store, trial.id).ptx.encode()
        case "cubin":
            return _cubin(store, trial)
        case "source":
            return _source(composition, trial).encode()
        case "payload":
            return composition.apply(trial.script_text, _source(composition, trial)).encode()
        case _:
            return _script(_provenance(store, trial), trial.script_text, output).encode()


def _source(composition: "Composition", trial: "StoredTrial") -> str:
    from tuner.core.runs import record_of

    record = record_of(trial)
    return composition.kind(record.target).source(record.problem, trial.script_text)


def _source_file(script_file: Path) -> Path:
    return script_file.with_name(f"{script_file.stem}.source{script_file.suffix}")


def _script(provenance: "ScriptProvenance", script: str, output: Path | None) -> str:
    from tuner.scripts.header import script_with_header
    from tuner.scripts.portability import own_ops

    file = Path("best.mlir") if output is None else output
    ops = own_ops(script)
    return script_with_header(script, provenance, ops, file.name, _source_file(file).name)


def _provenance(store: "Store", trial: "StoredTrial") -> "ScriptProvenance":
    """Gathers where a trial comes from. Raises UsageError for one that is not known to be right."""
    from tuner.analysis.answer import timed
    from tuner.cli.output.json_documents import utc_text
    from tuner.core.runs import record_of
    from tuner.scripts.header import ScriptProvenance

    record, run = record_of(trial), store.run(trial.run)
    if record.status == "failed":
        raise UsageError(
            f"trial {trial.id}: failed, has no time; allowed a measured or verified one, or --format source"
        )
    time = None if trial.best_s is None else timed(trial)
    baseline = run.baseline
    return ScriptProvenance(
        tuner=run.tuner_version,
        problem=record.problem,
        target=record.target,
        threads=trial.threads,
        machine=trial.machine.name,
        strategy=record.candidate.strategy,
        knobs=record.candidate.choices,
        median_s=None if time is None else time.median_s,
        interval_s=None if time is None else time.interval_s,
        baseline=None if baseline is None else (baseline.name, baseline.measurement.median_s),
        trial=trial.id,
        run=trial.run,
        mlir=run.compiler.mlir,
        date=utc_text(trial.created),
        unreliable=trial.unreliable,
    )


def _program(store: "Store", trial: int) -> "KernelProgram":
    program = store.program(trial)
    if program is None:
        raise UsageError(f"trial {trial}: has no GPU program, allowed a compiled trial of cuda or simulator")
    return program


def _cubin(store: "Store", trial: "StoredTrial") -> bytes:
    cubin = _program(store, trial.id).cubin
    if not cubin:
        raise UsageError(f"trial {trial.id}: was compiled without ptxas, allowed --format ptx")
    return cubin


def _tell_of_machine_code(trial: "StoredTrial", form: str) -> None:
    """Says where only the PTX that machine code was made of is verified."""
    if form == "cubin" and trial.record is not None and trial.record.status == "verified":
        print(f"tuner: trial {trial.id}: its PTX is verified; this machine code never ran", file=sys.stderr)


def _t4(store: "Store", trial: "StoredTrial", output: Path | None) -> bytes:
    from tuner.recorded.t4_writing import Recording, t4_bytes

    recording = Recording((store.run(trial.run),), (trial,))
    return t4_bytes(recording, is_compressed=output is not None and output.suffix == ".gz")


def _print(content: bytes, trial: int, form: str, as_json: bool) -> None:
    if form == "cubin":
        if as_json:
            raise UsageError("cubin: found --json without -o FILE, allowed with it: it is machine code")
        if sys.stdout.isatty():
            raise UsageError("cubin: found a terminal, allowed -o FILE or a pipe: it is machine code")
        sys.stdout.buffer.write(content)
    elif as_json and form not in DATA_FORMATS:
        print_json({"trial": trial, "format": form, "text": content.decode()})
    else:
        print(content.decode(), end="")


def _put(output: Path, content: bytes) -> None:
    from tuner.cli.atomic_write import write_atomically

    write_atomically(output, content)
    print(f"wrote {output}", file=sys.stderr)
