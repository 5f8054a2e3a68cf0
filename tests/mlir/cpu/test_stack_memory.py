"""Kernels use a bounded part of the stack, however often their loops run; packs on buffers are loops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.mlir.cpu.lowering import lower_to_llvm
from tuner.mlir.cpu.packs import packs_to_loops
from tuner.mlir.cpu.stack_memory import STACK_LIMIT_BYTES, bound_stacks
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

ROW, PACK, LOOPS, WHILE, LARGE, UNPACKED = (
    text_beside(__file__, name) for name in ("ROW", "PACK", "LOOPS", "WHILE", "LARGE", "UNPACKED")
)
SHOWN: dict[Callable[..., object], tuple[Any, ...]] = {bound_stacks: (ROW,), packs_to_loops: (PACK,)}
NUMBERS = np.arange(64, dtype=np.float32)


def called(text: str, *arrays: npt.NDArray[np.float32]) -> None:
    """Compiles the function @f of a module and calls it."""
    with parsed(text) as module:
        code = JittedModule(lower_to_llvm(module), ("f",))
    CompiledFunction(code.addresses["f"])(PackedArguments(*(each.ctypes.data for each in arrays)))


def test_buffers_of_iterations_are_on_the_stack_once_or_give_it_back() -> None:
    total = np.zeros(1, np.float32)
    called(LOOPS, NUMBERS, total)  # 100,000 times 512 bytes and more: without bound_stacks a stack overflow
    assert total[0] == pytest.approx(np.resize(NUMBERS, 100_000).sum(dtype=np.float64), rel=1e-3)
    with parsed(LOOPS) as module:
        bound_stacks(module)
        text = str(module)
    before_loop = text.partition("scf.for")[0]
    assert before_loop.count("memref.alloca()") == 2
    assert text.count("llvm.intr.stacksave") == text.count("llvm.intr.stackrestore") == 1


def test_a_buffer_that_the_next_iteration_reads_is_another_one() -> None:
    total = np.zeros(1, np.float32)
    called(WHILE, NUMBERS, total)
    assert total[0] == 6


def test_what_does_not_fit_on_the_stack_is_on_the_heap_and_freed() -> None:
    total = np.zeros(1, np.float32)
    called(LARGE, NUMBERS + 3, total)
    assert total[0] == 3
    with parsed(LARGE) as module:
        bound_stacks(module)
        text = str(module)
    assert text.count("memref.alloc()") == text.count("memref.dealloc") == 1
    assert text.count("memref.alloca()") == 1
    with parsed(LARGE) as module:
        bound_stacks(module, 32 * STACK_LIMIT_BYTES + 64)
        assert "memref.alloc()" not in str(module)


def test_packs_and_unpacks_of_buffers_run() -> None:
    array = np.arange(130, dtype=np.float32).reshape(10, 13)
    back = np.zeros_like(array)
    packed = np.zeros((2, 3, 4, 8), np.float32)
    called(UNPACKED, array, back, packed)
    assert np.array_equal(back, array)
    padded = np.pad(array, ((0, 2), (0, 3)), constant_values=1.5)
    assert np.array_equal(packed, padded.reshape(3, 4, 2, 8).transpose(2, 0, 1, 3))


def test_an_op_without_a_lowering_is_named_where_it_is_compiled() -> None:
    text = """func.func @f(%x: f32) -> f32 {
  %y = complex.create %x, %x : complex<f32>
  %z = complex.abs %y : complex<f32>
  return %z : f32
}"""
    with (
        parsed(text) as module,
        pytest.raises(CandidateError, match=r"complex\.create at line 2:8: no lowering"),
    ):
        lower_to_llvm(module)
