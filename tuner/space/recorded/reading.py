"""Reads a recording of any format; the format is recognized by the document's keys."""

from pathlib import Path

from tuner.core.dataclass_json import quoted
from tuner.core.errors import UsageError
from tuner.space.recorded.file import open_recorded
from tuner.space.recorded.kernel_tuner import is_kernel_tuner, kernel_tuner_space
from tuner.space.recorded.space import RecordedSpace
from tuner.space.recorded.t4_reading import is_t4, t4_space

ALLOWED = "allowed T4 or a Kernel Tuner cache"


def read_recorded(path: Path) -> RecordedSpace:
    """Reads a file of recorded results: T4 or a Kernel Tuner cache, compressed by gzip or not.

    Raises UsageError for any other file.
    """
    file = open_recorded(path)
    try:
        if is_kernel_tuner(file.document):
            return kernel_tuner_space(file)
        if is_t4(file.document):
            return t4_space(file)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    except KeyError as error:
        key = quoted(error.args[0])
        raise UsageError(f"{path}: found no {key} where its format has one, {ALLOWED}") from error
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError(f"{path}: found another form ({quoted(str(error))}), {ALLOWED}") from error
    keys = quoted(", ".join(sorted(file.document)[:8])) if file.document else "none"
    raise UsageError(
        f"{path}: found the keys {keys}, allowed 'results' (T4) or 'cache' (a Kernel Tuner cache)"
    )
