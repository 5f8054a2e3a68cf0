"""Any recording -> a recorded space: the format is seen from the document."""

from pathlib import Path

from tuner.errors import UsageError
from tuner.recorded.file import open_recorded
from tuner.recorded.kernel_tuner import is_kernel_tuner, kernel_tuner_space
from tuner.recorded.t4_reading import is_t4, t4_space
from tuner.recorded_space import RecordedSpace


def read_recorded(path: Path) -> RecordedSpace:
    """Reads a T4 file or a Kernel Tuner cache, compressed or not. Raises UsageError for anything else."""
    file = open_recorded(path)
    try:
        if is_kernel_tuner(file.document):
            return kernel_tuner_space(file)
        if is_t4(file.document):
            return t4_space(file)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError(
            f"{path}: found {type(error).__name__}: {error}, allowed T4 or a Kernel Tuner cache"
        ) from error
    keys = ", ".join(sorted(file.document)[:8]) or "none"
    raise UsageError(
        f"{path}: found the keys {keys}, allowed 'results' (T4) or 'cache' (a Kernel Tuner cache)"
    )
