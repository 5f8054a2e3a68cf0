"""One transform op applied to one function."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from tests.mlir.kernels import changed
from tests.texts import filled
from tuner.mlir import transform

Apply = Callable[[str, str], str]


def apply_line(line: str, module: Any) -> None:
    """Applies a script that runs a line on handle %func, the function @f of a payload."""
    transform.apply_script(module, transform.parse(filled(__file__, "SCRIPT", line=line), "script"))


@pytest.fixture
def apply() -> Apply:
    """Returns ``apply(line, payload)``: the payload after a script that runs the line on handle %func."""
    return lambda line, payload: changed(functools.partial(apply_line, line), payload)[1]
