"""One transform op applied to one function."""

import functools
from typing import Any

from tests.mlir.kernels import changed
from tests.texts import filled
from tuner.mlir import transform


def line_of(op: str, **attributes: int | str) -> str:
    """Returns the line of a script that applies an op to %func; integers have 64 bits."""
    values = (f'"{each}"' if isinstance(each, str) else f"{each} : i64" for each in attributes.values())
    listed = ", ".join(f"{name} = {value}" for name, value in zip(attributes, values, strict=True))
    return f'"tuner.{op}"(%func) {{{listed}}} : (!transform.any_op) -> ()'


def apply_line(line: str, module: Any) -> None:
    """Applies a script that runs a line on handle %func, the function @f of a payload."""
    transform.apply_script(module, transform.parse(filled(__file__, "SCRIPT", line=line), "script"))


def apply(line: str, payload: str) -> str:
    """Returns the payload after a script that runs the line on handle %func."""
    return changed(functools.partial(apply_line, line), payload)[1]
