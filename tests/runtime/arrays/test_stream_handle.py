from types import SimpleNamespace
from typing import Any

import pytest

from tuner.core.errors import UsageError
from tuner.runtime.arrays.stream_handle import stream_handle


@pytest.mark.parametrize(
    "stream",
    [
        42,
        SimpleNamespace(__cuda_stream__=lambda: (0, 42)),
        SimpleNamespace(cuda_stream=42),
        SimpleNamespace(ptr=42),
    ],
    ids=["number", "protocol", "PyTorch", "CuPy"],
)
def test_a_stream_of_any_package_is_a_handle(stream: Any) -> None:
    assert stream_handle(stream) == 42


def test_anything_else_is_refused() -> None:
    with pytest.raises(UsageError, match="stream: found str, allowed a handle or an object with __cuda"):
        stream_handle("s0")
