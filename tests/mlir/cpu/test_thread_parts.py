"""Loops are divided among threads where their iterations touch separate memory, and only there."""

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.mlir.kernels import changed, parsed
from tests.texts import text_beside
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import jit_text
from tuner.mlir.cpu.pipeline import FUSION_LOOPS_TO_LLVM
from tuner.mlir.cpu.threads import divide_among_threads
from tuner.mlir.fusions.function import fusion_function
from tuner.mlir.passes import run_passes
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

HEAD = text_beside(__file__, "HEAD")


def function(body: str) -> str:
    return f"func.func @fusion(%x: memref<8x4xf32>, %y: memref<8x4xf32>) {{{HEAD}\n{body}\n  return\n}}"


def divided(body: str, threads: int = 2) -> str | None:
    """Returns the function divided among threads; None where it stays as it is."""
    _, text, is_cut = changed(lambda it: divide_among_threads(fusion_function(it), threads), function(body))
    return text if is_cut else None


def results(body: str, threads: int) -> list[np.ndarray]:
    text = divided(body, threads)
    assert text is not None
    with parsed(text) as module:
        fusion_function(module).attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        run_passes(module, FUSION_LOOPS_TO_LLVM)
        code = JittedModule(jit_text(module), ("fusion",))
    call = CompiledFunction(code.addresses["fusion"])
    found = []
    for order in (range(threads), reversed(range(threads))):
        x, y = np.arange(32, dtype=np.float32), np.full(32, np.nan, np.float32)
        for thread in order:
            call(PackedArguments(x.ctypes.data, y.ctypes.data, thread, threads))
        found.append(y.reshape(8, 4))
    return found


HALVES = text_beside(__file__, "HALVES")
X = np.arange(32, dtype=np.float32).reshape(8, 4)
WHOLE = {
    "HALVES": X / 2,
    "SCRATCH": X + 0.5,  # a row of sums in a buffer that every iteration writes anew
    "SHARED_ROW": X + 0.5,  # a row that every thread computes, since all read it
    "FILLED": X,  # the output is filled first: equal loops, so each thread fills what it adds to
    "RAGGED": X,  # rows in threes; what the loop leaves over is done by one thread
}


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("threads", [2, 3, 11])
@pytest.mark.parametrize("name", WHOLE)
def test_the_parts_are_the_whole_whoever_comes_first(name: str, threads: int) -> None:
    for found in results(text_beside(__file__, name), threads):
        np.testing.assert_array_equal(found, WHOLE[name])


def test_what_a_loop_leaves_over_is_done_by_one_thread() -> None:
    assert (divided(text_beside(__file__, "RAGGED")) or "").count("scf.if") == 1


def test_inner_loops_are_divided_where_outer_ones_have_too_few_iterations() -> None:
    body = HALVES.replace("%i = %c0 to %c8 step %c1", "%i0 = %c0 to %c8 step %c8").replace(
        "{\n    scf.for %j", "{\n    scf.for %i = %i0 to %c8 step %c1 {\n    scf.for %j", 1
    )
    for found in results(body.rstrip() + "\n  }", 2):
        np.testing.assert_array_equal(found, X / 2)


def test_a_store_of_a_vector_that_is_an_element_is_one_of_one_element() -> None:
    assert divided(text_beside(__file__, "vectors_as_elements_of_a_buffer")) is not None


REFUSED = (
    *("sum_over_the_divided_loop", "sum_in_a_register", "sum_in_a_buffer_of_the_function"),
    *("writes_of_the_next_row", "reads_of_what_other_threads_write", "places_from_memory"),
    *("view_of_the_output", "instruction_that_may_do_anything", "assertion", "small_part_of_the_work"),
)


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_divided_stays_as_it_is(what: str) -> None:
    assert divided(text_beside(__file__, what)) is None
