"""Random host programs: buffers of all kinds, copies, views, host code and kernels, in loops and branches.

Each program is MLIR with an entry @main. Kernels are ``gpu.launch`` with one thread for each element, free of
races. No element is read before it is written, values stay small, and float sums have one order: two correct
runs are bitwise equal.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.support.fuzzing.host_control_flow import block, free
from tests.support.fuzzing.host_program_writer import (
    COLUMNS,
    DYNAMIC,
    PLAIN,
    ROWS,
    MemrefVariable,
    ProgramFeatures,
    ProgramWriter,
)

INDICES = 8  # constants %c0 to %c7


@dataclass(frozen=True)
class RandomProgram:
    """A module and the arguments of @main."""

    text: str
    arguments: tuple[Any, ...]  # arrays of float32, then int (index), bool (i1) and float (f32)
    written: tuple[bool, ...]  # for each buffer argument: some statement of the text may write it


@st.composite
def host_programs(draw: Any, features: ProgramFeatures | None = None) -> RandomProgram:
    """Draws a program; with all features by default."""
    features = features or ProgramFeatures()
    writer = ProgramWriter(draw, features)
    types = [writer.choose([PLAIN, PLAIN, DYNAMIC]) for _ in range(writer.number(1, 3))]
    names = [f"%a{number}" for number in range(len(types))]
    scope = [MemrefVariable(name, kind, name) for name, kind in zip(names, types, strict=True)]
    own = block(writer, scope, 0)
    results = _results(writer, own, scope)
    free(writer, [variable for variable in own if variable not in results])
    text = _module(writer, types, results)
    arrays = tuple(map(_array, range(len(types))))
    scalars = (writer.number(0, 3), writer.flag(), 0.5)
    return RandomProgram(
        text, (*arrays, *scalars), tuple(variable.root in writer.written for variable in scope)
    )


def _module(writer: ProgramWriter, types: list[str], results: list[MemrefVariable]) -> str:
    arguments = [f"%a{number}: {kind}" for number, kind in enumerate(types)]
    signature = ", ".join([*arguments, "%n: index", "%flag: i1", "%scale: f32"])
    kinds = ", ".join(variable.type for variable in results)
    names = ", ".join(variable.name for variable in results)
    constants = [f"    %c{number} = arith.constant {number} : index" for number in range(INDICES)]
    lines = [
        "module attributes {gpu.container_module} {",
        f"  memref.global constant @table : {PLAIN} = dense<0.75>",
        f"  memref.global @state : {PLAIN} = dense<0.25>",
        *(_CALLEES if writer.features.calls else []),
        f"  func.func @main({signature}) -> ({kinds}) attributes {{llvm.emit_c_interface}} {{",
        *constants,
        "    %half = arith.constant 0.5 : f32",
        *writer.lines,
        f"    return {names} : {kinds}" if results else "    return",
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"


_CALLEES = f"""  func.func private @on_host(%a: {PLAIN}, %x: f32) -> f32 {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %old = memref.load %a[%c1, %c0] : {PLAIN}
    memref.store %x, %a[%c0, %c1] : {PLAIN}
    %state = memref.get_global @state : {PLAIN}
    memref.store %old, %state[%c1, %c1] : {PLAIN}
    return %old : f32
  }}
  func.func private @on_device(%a: {PLAIN}, %x: f32) {{
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {{
      %old = memref.load %a[%bx, %tx] : {PLAIN}
      %new = arith.mulf %old, %x : f32
      memref.store %new, %a[%bx, %tx] : {PLAIN}
      gpu.terminator
    }}
    return
  }}""".splitlines()


def _array(seed: int) -> Any:
    return np.random.default_rng(seed).integers(-8, 8, (ROWS, COLUMNS)).astype(np.float32) / 8


def _results(
    writer: ProgramWriter, own: list[MemrefVariable], scope: list[MemrefVariable]
) -> list[MemrefVariable]:
    """Returns what @main returns: allocations of its own, each once unless the features say otherwise."""
    choices = own + (scope if writer.features.repeated_results else [])
    if not choices:
        return []
    results = [writer.choose(choices) for _ in range(writer.number(0, 2))]
    return results if writer.features.repeated_results else list(dict.fromkeys(results))
