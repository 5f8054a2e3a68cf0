"""One call in a child process: what aborts or hangs there ends nothing here."""

from typing import TYPE_CHECKING

from tuner.core.errors import Failure, Stage, TunerError, UsageError

if TYPE_CHECKING:
    from tuner.core.problem import Problem
    from tuner.workers.protocol import ServiceSpec

MEMORY_BYTES = 8 << 30  # of a child beside the arrays of its problem


def memory_beside(problem: "Problem") -> int:
    """Returns the bytes that a child may hold, the arrays of its problem and their reference included."""
    from tuner.payload.reference import reference_bytes

    return MEMORY_BYTES + 2 * reference_bytes(problem)


def call_in_child(
    spec: "ServiceSpec",
    method: str,
    arguments: tuple[object, ...],
    timeout_s: float,
    memory_bytes: int = MEMORY_BYTES,
) -> object:
    """Returns what one call in a child process gives.

    Raises UsageError for what does not even parse (stage BIND), TunerError when it fails or crashes.
    """
    from tuner.workers.protocol import Reply
    from tuner.workers.worker import Worker

    worker = Worker(spec, memory_bytes)
    try:
        worker.submit(method, *arguments, stage=Stage.RUN, timeout_s=timeout_s)
        while not isinstance(news := worker.wait(), Reply):
            worker.go_ahead()
    finally:
        worker.kill()
    if isinstance(news.value, Failure):
        is_misuse = news.value.stage is Stage.BIND
        kind = UsageError if is_misuse else TunerError
        raise kind(f"{spec.name}: {news.value.reason}")
    return news.value
