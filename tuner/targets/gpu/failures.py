"""Converts DeviceErrors to failures of a candidate; the stage decides whether the process must end."""

import contextlib
from collections.abc import Iterator

from tuner.core.device import DeviceError
from tuner.core.errors import CandidateError, Stage

OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"


@contextlib.contextmanager
def failing_as(stage: Stage) -> Iterator[None]:
    """Raises CandidateError(stage) in place of a DeviceError that the ``with`` block raises.

    A sticky error, which loses the context, becomes CandidateError(RUN) whatever ``stage``: a process with a
    failure of RUN, VERIFY or MEASURE is ended, see ``tuner.core.errors.RAN``.
    """
    try:
        yield
    except DeviceError as error:
        raise CandidateError(Stage.RUN if error.is_sticky else stage, str(error)) from error


@contextlib.contextmanager
def allocating(what: str, size_bytes: int, stage: Stage) -> Iterator[None]:
    """Raises CandidateError(stage) where the ``with`` block raises DeviceError CUDA_ERROR_OUT_OF_MEMORY.

    The message says that ``size_bytes`` bytes are needed for ``what``. Other errors are raised unchanged.
    """
    try:
        yield
    except DeviceError as error:
        if error.error_name != OUT_OF_MEMORY:
            raise
        needed = f"{size_bytes / 2**30:.2f} GiB of GPU memory for {what} are not free"
        raise CandidateError(stage, f"{needed}: {OUT_OF_MEMORY}") from error
