"""Loops are divided among threads where their iterations touch separate memory, and only there."""

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import jit_text
from tuner.mlir.cpu.pipeline import FUSION_LOOPS_TO_LLVM
from tuner.mlir.cpu.threads import divide_among_threads
from tuner.mlir.fusions import fusion_function
from tuner.mlir.passes import run_passes
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

pytestmark = pytest.mark.mlir

HEAD = text_beside(__file__, "HEAD")


def function(body: str) -> str:
    """Returns a fusion that reads %x, writes %y, both of 8 x 4 elements."""
    return f"func.func @group(%x: memref<8x4xf32>, %y: memref<8x4xf32>) {{{HEAD}\n{body}\n  return\n}}"


def divided(body: str, threads: int = 2) -> str | None:
    """Returns the function divided among threads; None where it stays as it is."""
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(function(body), "group")
        if not divide_among_threads(fusion_function(module), threads):
            return None
        assert module.operation.verify()
        return str(module)


def results(body: str, threads: int) -> list[np.ndarray]:
    """Returns %y after each thread has run its part alone, one after the other in both orders."""
    text = divided(body, threads)
    assert text is not None
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(text, "fusion")
        fusion_function(module).attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        run_passes(module, FUSION_LOOPS_TO_LLVM)
        code = JittedModule(jit_text(module), ("group",))
    call = CompiledFunction(code.addresses["group"])
    found = []
    for order in (range(threads), reversed(range(threads))):
        x, y = np.arange(32, dtype=np.float32), np.full(32, np.nan, np.float32)
        for thread in order:
            call(PackedArguments(x.ctypes.data, y.ctypes.data, thread, threads))
        found.append(y.reshape(8, 4))
    return found


HALVES = """
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %v = memref.load %x[%i, %j] : memref<8x4xf32>
      %w = arith.mulf %v, %half : f32
      memref.store %w, %y[%i, %j] : memref<8x4xf32>
    }
  }"""
# Rows in threes; the last two are code after the loop.
RAGGED = text_beside(__file__, "RAGGED")
# A row of sums in a buffer that every iteration writes anew.
SCRATCH = text_beside(__file__, "SCRATCH")
# A row that every thread computes, since all read it.
SHARED_ROW = text_beside(__file__, "SHARED_ROW")
# The output is filled first: equal loops, so each thread fills what it adds to.
FILLED = text_beside(__file__, "FILLED")
X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("threads", [2, 3, 11])
@pytest.mark.parametrize(
    ("body", "expected"),
    [(HALVES, X / 2), (SCRATCH, X + 0.5), (SHARED_ROW, X + 0.5), (FILLED, X)],
    ids=["halves", "scratch", "shared row", "filled"],
)
def test_the_parts_are_the_whole_whoever_comes_first(body: str, expected: np.ndarray, threads: int) -> None:
    for found in results(body, threads):
        np.testing.assert_array_equal(found, expected)


def test_what_a_loop_leaves_over_is_done_by_one_thread() -> None:
    text = divided(RAGGED)
    assert text is not None
    assert text.count("scf.if") == 1
    for found in results(RAGGED, 2):
        np.testing.assert_array_equal(found, X)


def test_inner_loops_are_divided_where_outer_ones_have_too_few_iterations() -> None:
    body = HALVES.replace("%i = %c0 to %c8 step %c1", "%i0 = %c0 to %c8 step %c8").replace(
        "{\n    scf.for %j", "{\n    scf.for %i = %i0 to %c8 step %c1 {\n    scf.for %j", 1
    )
    for found in results(body.rstrip() + "\n  }", 2):
        np.testing.assert_array_equal(found, X / 2)


REFUSED = {
    "a sum over the loop that would be divided": """
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    %s = memref.load %y[%c0, %c0] : memref<8x4xf32>
    %w = arith.addf %s, %v : f32
    memref.store %w, %y[%c0, %c0] : memref<8x4xf32>
  }""",
    "a sum carried in a register": """
  %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f32 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    %w = arith.addf %s, %v : f32
    scf.yield %w : f32
  }
  memref.store %sum, %y[%c0, %c0] : memref<8x4xf32>""",
    "a sum carried in a buffer of the function": """
  %buffer = memref.alloca() : memref<1xf32>
  memref.store %zero, %buffer[%c0] : memref<1xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    %s = memref.load %buffer[%c0] : memref<1xf32>
    %w = arith.addf %s, %v : f32
    memref.store %w, %buffer[%c0] : memref<1xf32>
    memref.store %w, %y[%i, %c0] : memref<8x4xf32>
  }""",
    "iterations that write the row of the next one": """
  scf.for %i = %c0 to %c7 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    memref.store %v, %y[%i, %c0] : memref<8x4xf32>
    %n = arith.addi %i, %c1 : index
    memref.store %v, %y[%n, %c0] : memref<8x4xf32>
  }""",
    "a second loop that reads what other threads write": """
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    memref.store %v, %y[%i, %c0] : memref<8x4xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %back = arith.subi %c7, %i : index
    %v = memref.load %y[%back, %c0] : memref<8x4xf32>
    memref.store %v, %y[%i, %c1] : memref<8x4xf32>
  }""",
    "places that are read from memory": """
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    %k = arith.fptosi %v : f32 to i64
    %at = arith.index_cast %k : i64 to index
    memref.store %v, %y[%at, %c0] : memref<8x4xf32>
  }""",
    "a view of the output": """
  %view = memref.collapse_shape %y [[0, 1]] : memref<8x4xf32> into memref<32xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %half, %view[%i] : memref<32xf32>
  }""",
    "an instruction that may do anything": """
  scf.for %i = %c0 to %c8 step %c1 {
    %now = llvm.call_intrinsic "llvm.x86.rdtsc"() : () -> i64
    memref.store %half, %y[%i, %c0] : memref<8x4xf32>
  }""",
    "an assertion": """
  %true = arith.constant true
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %half, %y[%i, %c0] : memref<8x4xf32>
  }
  cf.assert %true, "never" """,
    "a loop that is a small part of the work": """
  scf.for %i = %c0 to %c2 step %c1 {
    memref.store %half, %y[%i, %c0] : memref<8x4xf32>
  }
  %v = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f32 {
    %a = memref.load %x[%i, %c1] : memref<8x4xf32>
    %b = arith.addf %a, %s : f32
    scf.yield %b : f32
  }
  memref.store %v, %y[%c7, %c1] : memref<8x4xf32>""",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_divided_stays_as_it_is(what: str) -> None:
    assert divided(REFUSED[what]) is None, what
