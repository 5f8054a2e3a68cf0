"""The texts that a stored trial goes through: its script, the payload after it, the code."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuner.core.errors import CandidateError
from tuner.core.runs import StoredTrial, record_of
from tuner.core.target import Script
from tuner.tuning.composition import Composition

if TYPE_CHECKING:
    from tuner.db.store import Store


def trial_stages(composition: Composition, store: "Store", trial: StoredTrial) -> Iterator[tuple[str, str]]:
    """Yields (stage, text) as far as the trial comes with today's compiler; a GPU's code as it is stored."""
    if not trial.script_text:  # a replay, or binding failed
        return
    yield "script", trial.script_text
    record = record_of(trial)
    try:
        source = composition.kind(record.target).source(record.problem, trial.script_text)
        yield "payload", composition.apply(trial.script_text, source)
        code = _code(store, trial)
    except CandidateError:
        return
    if code:
        yield "code", code


def _code(store: "Store", trial: StoredTrial) -> str:
    """Returns PTX, or LLVM dialect of a CPU; '' where there is neither. Raises CandidateError."""
    program = store.program(trial.id)
    if program is not None:
        return program.ptx
    record = record_of(trial)
    if record.target.kind != "cpu" or record.status == "failed":
        return ""
    from tuner.targets.cpu.compiler import CpuCompiler

    script = Script(trial.script_text, record.script_sha256)
    return str(CpuCompiler().compile(record.problem, script).code)
