"""Compile time of a stored trial by pass: the trial is compiled again once, and each pass is timed."""

import contextlib

from tuner.core.errors import CandidateError, UsageError
from tuner.core.pass_seconds import CompileSeconds, PassSeconds
from tuner.core.runs import StoredTrial
from tuner.core.target import Script
from tuner.db.store import Store
from tuner.tuning.composition import Composition


def pass_seconds(composition: Composition, store: Store, trial: StoredTrial) -> tuple[PassSeconds, ...]:
    """Returns how many seconds each compiler pass takes to compile a trial's script, the slowest pass first.

    Stored seconds are returned if they are of the installed compiler on this machine; otherwise the script is
    compiled again and the seconds are stored. Raises UsageError for a trial that failed at any stage or has
    no script, and for a script that the installed compiler rejects.
    """
    record = trial.record
    if not trial.script or record.status == "failed":
        raise UsageError(f"trial {trial.id}: does not compile")
    compiler = composition.outcomes(record.target).compiler(record.target).fingerprint
    machine = composition.machine().name
    stored = trial.compile_seconds
    if stored is not None and (stored.compiler, stored.machine) == (compiler, machine):
        return stored.passes
    passes = _timed(composition, trial)
    with contextlib.suppress(UsageError):  # a read-only database: the seconds are returned all the same
        store.set_compile_seconds(trial.id, CompileSeconds(compiler, machine, passes))
    return passes


def _timed(composition: Composition, trial: StoredTrial) -> tuple[PassSeconds, ...]:
    from tuner.mlir.pass_timing import timed_passes

    record = trial.record
    script = Script(trial.script_text, record.script_sha256)
    with timed_passes() as times:
        try:
            composition.kind(record.target).code(record.target, record.problem, script)
        except CandidateError as error:
            raise UsageError(f"trial {trial.id}: does not compile any more: {error}") from error
    return times.passes
