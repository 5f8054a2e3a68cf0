"""Products of tf32 where k is not innermost in A: lanes read it, without an exchange of operands."""

import re

import numpy as np
import pytest

from tests.gpu.target.strategies.points import HOPPER, wgmma
from tuner.core.compiled_code import KernelBuffer
from tuner.core.gpu import chip_of
from tuner.core.matmul import (
    Matmul,
)
from tuner.gpu.mlir.lowering import lower_to_program
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import Scratch
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.mlir import transform
from tuner.mlir.bindings import ir

pytestmark = pytest.mark.mlir
M, N, K = 72, 132, 100
A_BY_ROWS = r"affine_map<\((\w+), (\w+), (\w+)\) -> \(\1, \3\)>"
BUFFERS = (
    KernelBuffer("a", 4 * M * K, "input"),
    KernelBuffer("b", 4 * N * K, "input"),
    KernelBuffer("c", 4 * M * N, "output"),
)


def with_transposed_a(mlir: str) -> str:
    """Returns a payload, or a script for it, whose A is m x k, with A as k x m."""
    text = mlir.replace(f"{M}x{K}xf32", f"{K}x{M}xf32")
    changed = re.sub(A_BY_ROWS, r"affine_map<(\1, \2, \3) -> (\3, \1)>", text)
    assert changed != text
    return changed


@pytest.mark.parametrize("consumers", [1, 2])
def test_a_in_registers_is_right_and_free_of_races(consumers: int) -> None:
    problem = Matmul(M, N, K, "tf32", "nt")
    one = wgmma(problem, block_k=32, block_m=64 * consumers, consumers=consumers, stages=2)
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(with_transposed_a(gpu_payload_mlir(problem, Scratch())), "payload")
        transform.apply_script(module, transform.parse(with_transposed_a(one.script()), "script"))
        program = lower_to_program(module, chip_of(HOPPER), BUFFERS, 1)
    assert "ld.shared.v2.b32" in program.text
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (K, M)).astype(np.float32)
    b = rng.integers(-8, 9, (N, K)).astype(np.float32)
    c = np.full((M, N), np.nan, np.float32)
    (simulation,) = simulate_program(program, {"a": a, "b": b, "c": c}, schedule_seed=1)
    np.testing.assert_array_equal(c, a.T @ b.T)
    assert simulation.hazards == ()
    assert simulation.conflict_ratio == 1.0
