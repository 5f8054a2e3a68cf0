"""One transform op applied to one function."""

from collections.abc import Callable

import pytest

from tuner.mlir import transform
from tuner.mlir.bindings import ir

Apply = Callable[[str, str], str]
SCRIPT = """
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: !transform.any_op) {{
    %func = transform.structured.match ops{{["func.func"]}} attributes{{sym_name = "f"}} in %root
      : (!transform.any_op) -> !transform.any_op
    {line}
    transform.yield
  }}
}}
"""


@pytest.fixture
def apply() -> Apply:
    """Returns ``apply(line, payload)``: the payload after a script that runs the line on handle %func."""

    def run(line: str, payload: str) -> str:
        with transform.new_context(), ir.Location.unknown():
            module = transform.parse(payload, "payload")
            transform.apply_script(module, transform.parse(SCRIPT.format(line=line), "script"))
            assert module.operation.verify()
            return str(module)

    return run
