"""One call in a child process, so that an abort or a hang does not end the tuner."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tuner.core.errors import CandidateError, Stage, TunerError, UsageError

if TYPE_CHECKING:
    from tuner.core.problem import Problem
    from tuner.workers.services import Environment

Value = TypeVar("Value")
MEMORY_BYTES = 8 << 30  # of a child, in addition to the arrays of its problem


def child_memory_bytes(problem: "Problem") -> int:
    """Returns the memory limit, in bytes, of a child process that works on a problem.

    MEMORY_BYTES (8 GiB) are added to twice what the problem's arrays and their float64 reference need.
    """
    from tuner.payload.reference import reference_bytes

    return MEMORY_BYTES + 2 * reference_bytes(problem)


def call_in_child(
    name: str,  # of the task, for messages
    work: Callable[[], Value],  # a function that the child can import, or a ``partial`` of one
    timeout_s: float,
    memory_bytes: int = MEMORY_BYTES,
    environment: "Environment" = (),
) -> Value:
    """Calls ``work`` without arguments in a new child process and returns its result.

    Args:
        name: Of the task, for messages.
        work: A function that the child can import, or a ``partial`` of one.
        timeout_s: Limit of the call in seconds.
        memory_bytes: Limit of the child's resident memory.
        environment: Changes to the environment variables: (name, value) pairs; value None: unset.

    Raises UsageError where ``work`` raises CandidateError of stage BIND (input that does not parse),
    TunerError where it raises anything else, crashes or exceeds a limit.
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
