"""The texts of a stored trial by stage: script, payload, IR of the lowering, code, assembly."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuner.core.errors import CandidateError, TunerError
from tuner.core.runs import StoredTrial
from tuner.core.target import Script
from tuner.tuning.composition import Composition
from tuner.tuning.target_kind import TargetKind

if TYPE_CHECKING:
    from tuner.db.store import Store


def trial_stages(composition: Composition, store: "Store", trial: StoredTrial) -> Iterator[tuple[str, str]]:
    """Yields (stage, text) of a trial: script, payload, IR after each lowering stage, code, assembly.

    The installed compiler compiles the script again; the code of a GPU is taken from the database where
    stored. Ends at the first stage that fails; yields nothing for a trial without a script.
    """
    if not trial.script:  # a replay, or binding failed
        return
    yield "script", trial.script_text
    record = trial.record
    kind = composition.kind(record.target)
    try:
        source = kind.source(record.problem, trial.script_text)
        payload = _applied(composition, trial.script_text, source)
        if not payload:
            return
        yield "payload", payload
        program = store.program(trial.id)
        if program is None and record.status == "failed":  # the script may hang the compiler
            return
        stages, compiled = _lowered(kind, trial)
        yield from stages
        code = compiled if program is None else program.ptx
        texts = (("code", code), ("assembly", code and kind.assembly(code, program)))
    except CandidateError:
        return
    yield from ((stage, text) for stage, text in texts if text)


def _applied(composition: Composition, script: str, source: str) -> str:
    """Returns the payload after the script; "" where the script cannot be applied to it."""
    try:
        return composition.apply(script, source)
    except TunerError:  # which stage fails is in the trial's record
        return ""


def _lowered(kind: TargetKind, trial: StoredTrial) -> tuple[list[tuple[str, str]], str]:
    """Returns (stage, IR after the stage) as far as today's compiler lowers, and the code, or ''."""
    from tuner.mlir.lowering_stages import kept_stages

    record = trial.record
    with kept_stages() as kept:
        try:
            script = Script(trial.script_text, record.script_sha256)
            return kept, kind.code(record.target, record.problem, script)
        except CandidateError:
            return kept, ""
