"""One call in a child process: what aborts or hangs there ends nothing here."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tuner.core.errors import CandidateError, Stage, TunerError, UsageError

if TYPE_CHECKING:
    from tuner.core.problem import Problem
    from tuner.workers.services import Environment

Value = TypeVar("Value")
MEMORY_BYTES = 8 << 30  # of a child beside the arrays of its problem


def memory_besides_child(problem: "Problem") -> int:
    """Returns the bytes that a child may hold, the arrays of its problem and their reference included."""
    from tuner.payload.reference import reference_bytes

    return MEMORY_BYTES + 2 * reference_bytes(problem)


def call_in_child(
    name: str,  # of what is done, for messages to people
    work: Callable[[], Value],  # a function that the child can import; ``partial`` gives it its arguments
    timeout_s: float,
    memory_bytes: int = MEMORY_BYTES,
    environment: "Environment" = (),
) -> Value:
    """Returns what a function gives that is called in a child process of its own.

    Raises UsageError for what does not even parse (stage BIND), TunerError when it fails or crashes.
    """
    from tuner.workers.protocol import CALL, ServiceSpec
    from tuner.workers.worker import Worker

    worker = Worker(ServiceSpec(name, work, environment), memory_bytes)
    try:
        value: Value = worker.call(CALL, stage=Stage.RUN, timeout_s=timeout_s)
    except CandidateError as error:
        kind = UsageError if error.stage is Stage.BIND else TunerError
        raise kind(f"{name}: {error.reason}") from error
    finally:
        worker.kill()
    return value
