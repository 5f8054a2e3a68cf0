"""The table against what NVIDIA ships: cuda-bindings and cuda.h, each where it is there."""

import ctypes
import re
from pathlib import Path

import pytest

from tuner.runtime.cuda.driver_calls import CALLS, INT, OUT_NAME, DriverCall

HEADER = Path("/usr/local/cuda/include/cuda.h")


def c_parameters(call: DriverCall) -> int:
    return sum(2 if kind is OUT_NAME else 1 for kind in call.kinds)


@pytest.mark.parametrize("name", CALLS)
def test_the_bindings_have_the_call_with_as_many_inputs(name: str) -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    import inspect

    kinds = CALLS[name].kinds
    inputs = sum(not kind.is_output or kind is OUT_NAME for kind in kinds)
    assert len(inspect.signature(getattr(driver, name)).parameters) == inputs
    for kind in kinds:
        assert not kind.enum or hasattr(driver, kind.enum)


@pytest.mark.parametrize("name", CALLS)
def test_the_header_declares_the_call_with_the_same_parameters(name: str) -> None:
    if not HEADER.exists():
        pytest.skip(f"needs {HEADER}")
    text = HEADER.read_text()
    found = re.search(rf"^CUresult CUDAAPI {name}\(([^;]*)\);", text, re.MULTILINE)
    assert found is not None
    parameters = [part.strip() for part in found[1].split(",") if part.strip() != "void"]
    call = CALLS[name]
    assert len(parameters) == c_parameters(call)
    kinds = [each for kind in call.kinds for each in ((kind, INT) if kind is OUT_NAME else (kind,))]
    for kind, parameter in zip(kinds, parameters, strict=True):
        is_pointer = "*" in parameter
        assert not kind.is_output or is_pointer, parameter
        assert not is_pointer or kind.is_output or _is_pointer(kind.ctype), parameter


@pytest.mark.parametrize("name", CALLS)
def test_the_symbol_is_one_that_the_header_knows(name: str) -> None:
    """A symbol is the plain name, or a version of it that a macro of the header or an older driver has."""
    if not HEADER.exists():
        pytest.skip(f"needs {HEADER}")
    symbol = CALLS[name].symbol
    defines = rf"^#\s*define {name}\s+.*\b{symbol}\b"
    assert symbol == name or re.search(defines, HEADER.read_text(), re.MULTILINE)


def _is_pointer(ctype: object) -> bool:
    return ctype in (ctypes.c_void_p, ctypes.c_char_p) or "LP_" in getattr(ctype, "__name__", "")
