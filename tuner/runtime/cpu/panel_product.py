"""A product of small panels that is the same in each version: it needs of a core what a matmul needs.

Multiply-adds alone do not. On a shared Cascade Lake, matmuls have two speeds 7 to 8 % apart for seconds at a
time, and so has this product, while a loop of multiply-adds in registers has one.
"""

from typing import final

import numpy as np

from tuner.core.machine import Machine
from tuner.mlir.jit import JittedModule, PackedArguments
from tuner.runtime.cpu.guarded_arrays import aligned_empty
from tuner.runtime.cpu.thread_team import ThreadTeam

ROWS, VECTORS = 6, 2  # of C in registers: 12 sums, so that AVX2 has registers left for A and B
INNER = 256  # the length of the panels
PANELS_OF_A, PANELS_OF_B = 4, 4  # B has 128 KiB with AVX-512: more than a first-level cache
ITERATIONS = 20  # of the whole product in a repeat, some 0.25 ms
VALUE = 0.5  # of each element of A and B


@final
class PanelProduct:
    """The product on each thread of a team, with arrays of its own. It always does the same work."""

    def __init__(self, team: ThreadTeam, machine: Machine) -> None:
        """Compiles the product for the machine's vectors of f32."""
        lanes = machine.vector_bytes // 4
        self._team = team
        self._code = JittedModule(product_text(lanes), ("panel_product",))
        address = self._code.addresses["panel_product"]
        sizes = (PANELS_OF_A * INNER * ROWS, PANELS_OF_B * INNER * VECTORS * lanes, ROWS * VECTORS * lanes)
        self.arrays = [
            tuple(aligned_empty((size,), np.dtype(np.float32)) for size in sizes) for _ in range(team.size)
        ]
        for array in (array for arrays in self.arrays for array in arrays):
            array.fill(VALUE)
        self._arguments = [
            PackedArguments(*(array.ctypes.data for array in arrays), ITERATIONS) for arrays in self.arrays
        ]
        self._calls = tuple((address, one.address) for one in self._arguments)

    def repeat(self, times: int) -> None:
        """Multiplies ``times`` times."""
        self._team.repeat(self._calls, times)


def product_text(lanes: int) -> str:
    """Returns LLVM dialect in which each panel of A meets each of B, and C keeps the last product.

    A panel of A has ROWS floats, one of B VECTORS vectors for each step of the innermost loop.
    """
    tile = [(row, column) for row in range(ROWS) for column in range(VECTORS)]
    types = ", ".join(["!vector"] * len(tile))
    sums = ", ".join(f"%s{row}_{column}: !vector" for row, column in tile)
    next_sums = ", ".join(f"%n{row}_{column}" for row, column in tile)
    step = [
        *(_load(f"b{column}", "%b", f"%b_row, {column}", "!vector") for column in range(VECTORS)),
        *(_load(f"x{row}", "%a", f"%a_row, {row}", "f32") + _broadcast(row, lanes) for row in range(ROWS)),
        *(
            f"%n{row}_{column} = llvm.intr.fma(%a{row}, %b{column}, %s{row}_{column})"
            " : (!vector, !vector, !vector) -> !vector\n"
            for row, column in tile
        ),
    ]
    stores = [
        f"%c{row}_{column} = llvm.getelementptr %c[{row * VECTORS + column}]"
        " : (!llvm.ptr) -> !llvm.ptr, !vector\n"
        f"llvm.store %n{row}_{column}, %c{row}_{column} : !vector, !llvm.ptr\n"
        for row, column in tile
    ]
    return f"""!vector = vector<{lanes}xf32>
!a_row = !llvm.array<{ROWS} x f32>
!b_row = !llvm.array<{VECTORS} x !vector>
module {{
  llvm.func @panel_product(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr, %iterations: i64)
      attributes {{llvm.emit_c_interface}} {{
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %inner = llvm.mlir.constant({INNER} : i64) : i64
    %panels_of_a = llvm.mlir.constant({PANELS_OF_A} : i64) : i64
    %panels_of_b = llvm.mlir.constant({PANELS_OF_B} : i64) : i64
    %none = llvm.mlir.constant(dense<0.0> : !vector) : !vector
    %unset = llvm.mlir.poison : !vector
    llvm.br ^iteration(%zero : i64)
  ^iteration(%t: i64):
    llvm.br ^panel_of_b(%zero : i64)
  ^panel_of_b(%j: i64):
    %b_begin = llvm.mul %j, %inner : i64
    llvm.br ^panel_of_a(%zero : i64)
  ^panel_of_a(%i: i64):
    %a_begin = llvm.mul %i, %inner : i64
    llvm.br ^step(%zero, {", ".join(["%none"] * len(tile))} : i64, {types})
  ^step(%k: i64, {sums}):
    %a_row = llvm.add %a_begin, %k : i64
    %b_row = llvm.add %b_begin, %k : i64
    {"".join(step)}
    %next_k = llvm.add %k, %one : i64
    %more_k = llvm.icmp "slt" %next_k, %inner : i64
    llvm.cond_br %more_k, ^step(%next_k, {next_sums} : i64, {types}), ^store
  ^store:
    {"".join(stores)}
    %next_i = llvm.add %i, %one : i64
    %more_i = llvm.icmp "slt" %next_i, %panels_of_a : i64
    llvm.cond_br %more_i, ^panel_of_a(%next_i : i64), ^end_of_a
  ^end_of_a:
    %next_j = llvm.add %j, %one : i64
    %more_j = llvm.icmp "slt" %next_j, %panels_of_b : i64
    llvm.cond_br %more_j, ^panel_of_b(%next_j : i64), ^end_of_b
  ^end_of_b:
    %next_t = llvm.add %t, %one : i64
    %more_t = llvm.icmp "slt" %next_t, %iterations : i64
    llvm.cond_br %more_t, ^iteration(%next_t : i64), ^end
  ^end:
    llvm.return
  }}
}}
"""


def _load(name: str, array: str, place: str, of: str) -> str:
    row = f"!{array[1:]}_row"
    return (
        f"%{name}_at = llvm.getelementptr {array}[{place}] : (!llvm.ptr, i64) -> !llvm.ptr, {row}\n"
        f"%{name} = llvm.load %{name}_at : !llvm.ptr -> {of}\n"
    )


def _broadcast(row: int, lanes: int) -> str:
    first = f"%f{row} = llvm.insertelement %x{row}, %unset[%zero : i64] : !vector\n"
    return first + f"%a{row} = llvm.shufflevector %f{row}, %unset {[0] * lanes} : !vector\n"
