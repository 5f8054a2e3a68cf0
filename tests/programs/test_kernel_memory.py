"""Memory that kernels allocate and address themselves, run on the simulator and compared with numpy."""

from typing import Any

import numpy as np
import pytest

from tests.programs.kernel_programs import arrays, program, ran, store
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.gpu import DeviceError
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.gpu.kernel_memory")

SPACES = ("3", "3 : i32", "#gpu.address_space<workgroup>", "#gpu.memory_space<workgroup>")
PRIVATE_SPACES = ("", ", 5", ", #gpu.address_space<private>")
WORDS = "#gpu.address_space<workgroup>"
REVERSE = text_beside(__file__, "REVERSE")
VIEWS = text_beside(__file__, "VIEWS")
BESIDE = """%mine = memref.alloc() : memref<64xf32, 3>
    memref.store %v, %mine[%tx] : memref<64xf32, 3>
    """
SUM = text_beside(__file__, "SUM")
ASKED = "dynamic_shared_memory_size %size"


def check(text: str, expected: Any, *more: Any, order: str = "fifo") -> None:
    x, y = arrays()
    ran(text, x, y, *more, order=order)
    np.testing.assert_array_equal(y, expected(x))


def reversed_rows(x: Any) -> Any:
    return x[:, ::-1]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("kind", ["alloc", "alloca"])
def test_shared_memory_in_every_spelling(space: str, kind: str) -> None:
    made = f"%s = memref.{kind}() : memref<64xf32, {space}>"
    check(program(f"{made} {REVERSE.replace('SPACE', space)}"), reversed_rows)


@pytest.mark.parametrize("order", ORDERS)
def test_shared_memory_next_to_attributions_and_memory_of_the_host(order: str) -> None:
    attributions = "workgroup(%w0 : memref<64xf32, 3>) private(%p0 : memref<4xf32, 5>)"
    before = "%h = memref.alloc() : memref<4xf32> memref.store %f, %h[%c0] : memref<4xf32>"
    text = program(text_beside(__file__, "BESIDE_ATTRIBUTIONS"), attributions, "%f: f32", before)
    text = text.replace("  return", "  memref.dealloc %h : memref<4xf32>\n  return")
    check(text, lambda x: 2 * x + x[:, ::-1] + 3, 3.0, order=order)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("space", PRIVATE_SPACES)
@pytest.mark.parametrize("kind", ["alloc", "alloca"])
def test_a_threads_own_memory_first_in_the_kernel_and_in_a_loop(space: str, kind: str) -> None:
    own = f"memref<4xf32{space}>"
    body = f"""%p = memref.{kind}() : {own} %q = memref.{kind}() : {own}
    %k = arith.remui %tx, %c4 : index
    scf.for %i = %c0 to %c4 step %c1 {{
      %t = memref.{kind}() : {own}
      memref.store %v, %t[%k] : {own}
      %z = memref.load %t[%k] : {own}
      %n = arith.index_cast %i : index to i32 %f = arith.sitofp %n : i32 to f32
      %zf = arith.mulf %z, %f : f32
      memref.store %zf, %p[%i] : {own} memref.store %z, %q[%i] : {own}
      gpu.barrier
    }}
    %a = memref.load %p[%k] : {own} %b = memref.load %q[%k] : {own}
    %w = arith.addf %a, %b : f32 {store("%w")}"""
    check(program(body), lambda x: x * (1 + np.arange(64) % 4).astype(np.float32))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("order", ORDERS)
def test_shared_memory_in_loops_and_branches_without_deallocations(order: str) -> None:
    check(program(text_beside(__file__, "LOOPS_AND_BRANCHES")), lambda x: x + x[:, ::-1], order=order)


def test_two_buffers_of_one_turn_of_a_loop_share_no_byte() -> None:
    check(program(text_beside(__file__, "TWO_BUFFERS")), lambda x: 3 * x[:, ::-1])


def test_views_of_dynamic_shared_memory_get_their_bytes() -> None:
    check(program(VIEWS), reversed_rows)
    check(program(VIEWS.replace(WORDS, "3")), reversed_rows)
    check(program(BESIDE + VIEWS + SUM), lambda x: x + x[:, ::-1])


def test_a_size_that_only_the_run_knows_is_passed_to_the_launch() -> None:
    check(program(VIEWS, ASKED, "%size: i32"), reversed_rows, 512)
    check(program(BESIDE + VIEWS + SUM, ASKED, "%size: i32"), lambda x: x + x[:, ::-1], 512)
    with pytest.raises(DeviceError, match="out of bounds"):
        check(program(VIEWS, ASKED, "%size: i32"), reversed_rows, 508)


def test_a_place_that_only_the_run_knows_works_with_a_size() -> None:
    views = VIEWS.replace("%block[%at]", "%block[%place]")
    size = "%size = arith.constant 512 : i32"
    check(program(views, ASKED, "%place: index", size), reversed_rows, 256)
    with pytest.raises(CandidateError, match="found a place that is not constant"):
        check(program(views, more="%place: index"), reversed_rows, 256)


def test_a_size_that_is_too_small_is_refused_at_compile_time() -> None:
    size = "%size = arith.constant 511 : i32"
    with pytest.raises(CandidateError, match="found dynamic_shared_memory_size 511, allowed at least 512"):
        check(program(VIEWS, ASKED, before=size), reversed_rows)
