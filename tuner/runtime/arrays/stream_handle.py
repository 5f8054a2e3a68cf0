"""Reads the handle of a CUDA stream that another package made."""

from typing import Any

from tuner.core.errors import UsageError


def stream_handle(stream: Any) -> int:
    """Returns the handle of a number, or of what has ``__cuda_stream__``, ``cuda_stream`` or ``ptr``.

    Those are cuda-core's and the CUDA protocol's, PyTorch's, and CuPy's. Raises UsageError for anything else.
    """
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int(protocol()[1])  # (version, handle)
    for name in ("cuda_stream", "ptr"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    raise UsageError(
        f"stream: found {type(stream).__name__}, allowed a handle or an object with __cuda_stream__,"
        " cuda_stream or ptr"
    )
