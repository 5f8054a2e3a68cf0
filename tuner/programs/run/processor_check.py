"""Refuses code that this processor cannot run, before the code is loaded."""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.tile_permission import REFUSED, may_use_tiles
from tuner.runtime.cpu.processor_flags import missing_sets, own_flags

AMX = "amx-"  # begins the names of instruction sets that need a permission


def require_processor(needs: tuple[str, ...], what: str) -> None:
    """Raises CandidateError(LOAD) where this processor lacks one of the instruction sets ``needs``.

    ``what`` begins the message. Requests the permission to use AMX tiles where they are needed.
    """
    missing = missing_sets(needs, own_flags())
    if missing:
        raise CandidateError(
            Stage.LOAD, f"{what}: needs {' and '.join(missing)}, which this processor does not have"
        )
    if any(each.startswith(AMX) for each in needs) and not may_use_tiles():
        raise CandidateError(Stage.LOAD, f"{what}: {REFUSED}")
