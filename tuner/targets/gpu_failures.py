"""What a GPU's refusal means for a candidate: the stage it failed at, and whether the process must end."""

import contextlib
from collections.abc import Iterator

from tuner.device import DeviceError
from tuner.errors import CandidateError, Stage

OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"


@contextlib.contextmanager
def failing_as(stage: Stage) -> Iterator[None]:
    """Turns a refusal into the candidate's failure.

    An error that takes the context with it is Stage RUN wherever it shows: a process that has seen one of
    RUN, VERIFY or MEASURE is ended, see ``tuner.errors.RAN``.
    """
    try:
        yield
    except DeviceError as error:
        raise CandidateError(Stage.RUN if error.is_sticky else stage, str(error)) from error


@contextlib.contextmanager
def allocating(what: str, size_bytes: int, stage: Stage) -> Iterator[None]:
    """Turns a lack of memory into a failure that tells how much was wanted."""
    try:
        yield
    except DeviceError as error:
        if error.error_name != OUT_OF_MEMORY:
            raise
        needed = f"{size_bytes / 2**30:.2f} GiB of GPU memory for {what} are not free"
        raise CandidateError(stage, f"{needed}: {OUT_OF_MEMORY}") from error
