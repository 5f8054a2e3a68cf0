"""Whether a stored run may be resumed: the same machine and tools, and scripts that give the same code.

If tuner's sources or scripts have changed, each script is compiled again. The run goes on if each gives the
code that was stored with its outcome, since that is what was verified and timed.
"""

from collections.abc import Iterator
from dataclasses import replace

from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, UsageError
from tuner.core.interfaces import FINAL_EFFORT, AbstractRunner
from tuner.core.machine import Machine
from tuner.core.records import Record
from tuner.core.runs import Compiler, Run
from tuner.runtime.workers.runner import RunnerOrder
from tuner.targets.target import Bind, RunnerSettings, Target
from tuner.tuning.events import CompilesAgain
from tuner.tuning.run_steps import Session

HINT = "start a new run, or time its best trial with this version: tuner check --best"


def require_same_tools(run: Run, machine: Machine, compiler: Compiler) -> None:
    """Raises UsageError unless machine, package versions and verifier are those of the run."""
    if machine.name != run.machine.name:
        raise UsageError(f"run {run.id}: was made on {run.machine.name!r}, this machine is {machine.name!r}")
    if compiler.tools != run.compiler.tools:
        changes = ", ".join(run.compiler.changes_to(compiler))
        raise UsageError(
            f"run {run.id}: was made by another version of the compiler; changed: {changes}", HINT
        )


def require_same_code(session: Session) -> None:
    """Raises UsageError unless the scripts of the stored trials still give the code that was verified.

    Compiles nothing if sources and scripts are unchanged.
    """
    run = session.run
    bind = session.bind
    records = [proposal.trial.record for proposal in session.stored if proposal.trial is not None]
    compiler = session.target.compiler(run.settings.target)
    has_same_sources = compiler.fingerprint == run.compiler.fingerprint
    other_script = _first_with_other_script(bind, records)
    if has_same_sources and other_script is None:
        return
    # each script once: scripts that gave equal code may give different code now
    compiled = {record.script_sha256: record for record in records if record.artifact_sha256}
    if other_script is not None and not compiled:
        raise UsageError(f"run {run.id}: {_change(bind, other_script)}", HINT)
    if not compiled:
        return
    session.observe(CompilesAgain(run.id, len(compiled)))
    for record, now in _compiled_again(run, session.target, bind, tuple(compiled.values())):
        if now.artifact_sha256 != record.artifact_sha256:
            changed = _change(bind, record)
            raise UsageError(f"run {run.id}: {changed}, and {record.candidate.text} has other code", HINT)


def _first_with_other_script(bind: Bind, records: list[Record]) -> Record | None:
    """Returns the first trial whose strategy now binds its candidate to another script; None if all agree.

    Only the first trial of each strategy is bound.
    """
    with_script = [record for record in records if record.script_sha256]
    first = {record.candidate.strategy: record for record in reversed(with_script)}
    others = (
        record for record in first.values() if _script_sha256(bind, record.candidate) != record.script_sha256
    )
    return next(others, None)


def _script_sha256(bind: Bind, candidate: Candidate) -> str:
    try:
        return bind(candidate).sha256
    except CandidateError:
        return ""


def _change(bind: Bind, record: Record) -> str:
    if _script_sha256(bind, record.candidate) != record.script_sha256:
        return f"strategy {record.candidate.strategy!r} was changed since"
    return "tuner's passes were changed since"


def _compiled_again(
    run: Run, target: Target, bind: Bind, records: tuple[Record, ...]
) -> Iterator[tuple[Record, Record]]:
    """Yields (record, the record with the hash of the code that today's compiler makes of its candidate).

    The hash is "" if the candidate does not compile any more.
    """
    settings = run.settings

    def recall(_script_sha256: str, artifact_sha256: str) -> Record | None:
        """Returns some outcome for any code, so that the runner compiles but evaluates nothing.

        None for a script, which is compiled. The runner calls this before it compiles, with the script's
        hash, and after, with the code's. Which outcome it is does not matter.
        """
        if artifact_sha256:
            return replace(records[0], reused_from=0)
        return None

    order = RunnerOrder(settings.problem, settings.target, bind, recall)
    how = RunnerSettings(settings.threads, settings.workers, settings.seed, run=run.uuid)
    runner = target.runner(order, how)
    try:
        yield from zip(records, _finished(runner, records, settings.workers), strict=True)
    finally:
        runner.close()


def _finished(runner: AbstractRunner, records: tuple[Record, ...], workers: int) -> Iterator[Record]:
    """Yields the records of candidates in order; up to ``workers`` + 1 of the candidates run at once."""
    for index, record in enumerate(records):
        runner.start(index, record.candidate, FINAL_EFFORT)
        if index >= workers:
            yield runner.finish().record
    for _ in range(min(workers, len(records))):
        yield runner.finish().record
