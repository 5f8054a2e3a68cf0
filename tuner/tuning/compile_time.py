"""Where the seconds of compiling a stored trial go: it is compiled again, and each pass is timed."""

from tuner.core.errors import CandidateError, UsageError
from tuner.core.pass_seconds import PassSeconds
from tuner.core.runs import StoredTrial, record_of
from tuner.core.target import Script
from tuner.tuning.composition import Composition


def pass_seconds(composition: Composition, trial: StoredTrial) -> tuple[PassSeconds, ...]:
    """Returns the passes of a trial, the longest first. Raises UsageError for one that does not compile."""
    from tuner.mlir.pass_timing import timed_passes

    record = record_of(trial)
    if not trial.script_text or record.target.is_replay or record.status == "failed":
        raise UsageError(f"trial {trial.id}: found none that compiles, allowed a measured or verified one")
    script = Script(trial.script_text, record.script_sha256)
    with timed_passes() as times:
        try:
            composition.kind(record.target).code(record.target, record.problem, script)
        except CandidateError as error:
            raise UsageError(f"trial {trial.id}: does not compile any more: {error}") from error
    return times.passes
