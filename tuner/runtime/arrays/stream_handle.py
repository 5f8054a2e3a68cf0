"""Reads the handle of a CUDA stream that another package created."""

from typing import Any

from tuner.core.errors import UsageError


def stream_handle(stream: Any) -> int:
    """Returns the CUstream handle of a stream object; an integer is returned as is.

    Supported are ``__cuda_stream__`` (CUDA's protocol, cuda-core), ``cuda_stream`` (PyTorch) and ``ptr``
    (CuPy). Raises UsageError for other objects.
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
