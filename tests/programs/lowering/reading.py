"""Reads payloads as programs, each in a context of its own."""

import pytest

from tuner.core.errors import CandidateError, Stage

T = "tensor<4xf32>"
EXP = f"""func.func @exp(%x: {T}) -> {T} {{
  %empty = tensor.empty() : {T}
  %y = linalg.exp ins(%x : {T}) outs(%empty : {T}) -> {T}
  return %y : {T}
}}
"""


def read(text: str, entry: str | None = None) -> str:
    """Returns the module as text."""
    from tuner.mlir.bindings import ir
    from tuner.mlir.transform import new_context
    from tuner.programs.lowering.read_program import read_program

    with new_context(), ir.Location.unknown():
        return str(read_program(text, entry).module)


def entry_read(text: str, entry: str | None = None) -> str:
    """Returns the name of the function that is run."""
    from tuner.mlir.bindings import ir
    from tuner.mlir.transform import new_context
    from tuner.programs.lowering.read_program import read_program

    with new_context(), ir.Location.unknown():
        return read_program(text, entry).entry


def refusal(text: str, entry: str | None = None) -> tuple[Stage, str]:
    """Returns stage and reason of the error that the payload gets."""
    with pytest.raises(CandidateError) as caught:
        read(text, entry)
    return caught.value.stage, caught.value.reason
