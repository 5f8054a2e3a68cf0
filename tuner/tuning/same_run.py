"""Checks that a stored run can go on: same machine, compiler, search space and scripts."""

from tuner.core.errors import CandidateError, UsageError
from tuner.core.machine import Compiler, Machine
from tuner.core.runs import Proposal, Run
from tuner.space.feasible_set import FeasibleSet
from tuner.tuning.outcome_source import Bind


def require_same_code(run: Run, machine: Machine, compiler: Compiler) -> None:
    """Raises UsageError unless machine and compiler are those that the run was made with."""
    if machine.name != run.machine.name:
        raise UsageError(f"run {run.id}: was made on {run.machine.name!r}, this machine is {machine.name!r}")
    if compiler.fingerprint != run.compiler.fingerprint:
        changes = ", ".join(run.compiler.changes_to(compiler))
        raise UsageError(
            f"run {run.id}: was made by another version of the compiler; changed: {changes}",
            "start a new run, or time its best trial with this version: tuner audit",
        )


def require_same_rows(run: Run, feasible: FeasibleSet, stored: tuple[Proposal, ...]) -> None:
    """Raises UsageError unless every stored row is still the index of the same candidate."""
    for each in stored:
        if each.row >= feasible.rows or feasible.candidate(each.row) != each.candidate:
            raise UsageError(
                f"run {run.id}: row {each.row} of its search space is no longer "
                f"{each.candidate.text}; start a new run"
            )


def require_same_scripts(run: Run, bind: Bind, stored: tuple[Proposal, ...]) -> None:
    """Raises UsageError unless each strategy still binds its first trial to the same script."""
    finished = [each.trial.record for each in stored if each.trial is not None]
    records = [record for record in finished if record.script_sha256]
    for record in {record.candidate.strategy: record for record in reversed(records)}.values():
        try:
            script = bind(record.candidate)
        except CandidateError:
            script = None
        if script is None or script.sha256 != record.script_sha256:
            raise UsageError(
                f"run {run.id}: strategy {record.candidate.strategy!r} was changed since; start a new run"
            )
