"""The texts that a stored trial goes through: its script, the payload after it, the code, its assembly."""

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
    kind = composition.kind(record.target)
    try:
        source = kind.source(record.problem, trial.script_text)
        yield "payload", composition.apply(trial.script_text, source)
        program = store.program(trial.id)
        if program is None and record.status == "failed":  # it may hang the compiler
            return
        script = Script(trial.script_text, record.script_sha256)
        code = kind.code(record.target, record.problem, script) if program is None else program.ptx
        yield "code", code
        assembly = kind.assembly(code, program)
    except CandidateError:
        return
    if assembly:
        yield "assembly", assembly
