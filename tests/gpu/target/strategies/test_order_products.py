"""Knob ``order_products`` of CUDA cores: equal instructions and bits in another order, ports of registers."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.gpu.target.strategies.points import SIMT, SIMT_LARGE, compiled, is_feasible, require_right, simt
from tests.support.gpu_point import GpuPoint
from tuner.core.candidate import Candidate
from tuner.core.matmul import (
    Matmul,
)
from tuner.core.problem import (
    Problem,
)
from tuner.gpu.ptxsim.target.cycle_model import register_reads
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.gpu.target.compiler import Ptxas
from tuner.gpu.target.sass import listing_of, nvdisasm, read_kernels
from tuner.payload.drawing import draw, draw_base
from tuner.payload.reference import output_dtype

pytestmark = pytest.mark.mlir
EIGHT_BY_EIGHT: dict[str, Any] = {"block_m": 64, "block_k": 16, "split_m": 2}
ROWS: dict[str, Any] = {"order_products": 1}


def large(problem: Problem, **knobs: Any) -> GpuPoint:
    return GpuPoint(problem, Candidate.of(SIMT, SIMT_LARGE | knobs), "sm_90a")


def bits_of(one: GpuPoint) -> bytes:
    """Returns the bytes of C on the simulator."""
    problem = one.problem
    inputs = draw(problem, draw_base(problem, np.random.default_rng(0)), np.random.default_rng(1))
    c = np.full(problem.sizes[:2], np.nan, output_dtype(problem))
    simulate_program(compiled(one), inputs.named | {"c": c})
    return c.tobytes()


def opcodes(ptx: str) -> Counter[str]:
    return Counter(re.findall(r"^\s+(?:@!?%p\d+ )?([a-z][\w.:]*)[ ;]", ptx, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize("knobs", [{}, {"prefetch": 1, "unroll_k": 1, "depth": 3}], ids=str)
def test_rows_are_the_same_products_in_another_order_and_give_equal_bits(knobs: dict[str, Any]) -> None:
    by_vectors = simt(Matmul(64, 64, 48, layout="tn"), **EIGHT_BY_EIGHT, **knobs)
    by_rows = simt(by_vectors.problem, **EIGHT_BY_EIGHT, **knobs, **ROWS)
    assert is_feasible(by_rows)
    require_right(by_rows)
    assert bits_of(by_rows) == bits_of(by_vectors)
    before, after = (opcodes(compiled(one).text) for one in (by_vectors, by_rows))
    names = ("fma.rn.f32", "ld.shared.v4.b32", "cp.async.cg.shared.global", "st.global.v4.b32", "bar.sync")
    for name in names:
        assert after[name] == before[name] > 0
    assert after["xor.b32"] - before["xor.b32"] == 64  # one for each sum


@pytest.mark.slow
@pytest.mark.parametrize(
    "one",
    [
        simt(Matmul(64, 64, 48), **EIGHT_BY_EIGHT, **ROWS),
        simt(Matmul(67, 61, 33, epilogue="bias_relu"), **EIGHT_BY_EIGHT, **ROWS, depth=3),
        simt(Matmul(64, 64, 32, layout="nt"), **EIGHT_BY_EIGHT, thread_n=1, split_n=8, pad_bytes=16, **ROWS),
        simt(Matmul(64, 64, 32, layout="tn"), **EIGHT_BY_EIGHT, depth=0, **ROWS),
        simt(Matmul(64, 64, 32, layout="nt"), **EIGHT_BY_EIGHT, transpose=1, pad_bytes=16, **ROWS),
    ],
    ids=str,
)
def test_rows_are_right_and_give_equal_bits_in_every_layout(one: GpuPoint) -> None:
    require_right(one)
    knobs = dict(one.candidate.choices) | {"order_products": 0}
    assert bits_of(one) == bits_of(replace(one, candidate=Candidate.of(SIMT, knobs)))


OF_TRANSPOSED = {"transpose": 1, "vector_a": 1, "pad_bytes": 16}
WIDE = {"block_m": 256, "split_m": 4}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "knobs", "most_alone"),
    [
        ("tn", {}, 1.25),
        ("tn", {"depth": 4}, 1.25),
        ("tn", {"prefetch": 1}, 1.25),
        ("tn", WIDE, 1.18),
        ("nn", OF_TRANSPOSED, 1.25),
        ("nn", OF_TRANSPOSED | WIDE, 1.18),
        ("nn", OF_TRANSPOSED | {"block_m": 96, "split_m": 3}, 1.25),
        ("nt", OF_TRANSPOSED | WIDE | {"vector_b": 1}, 1.18),
    ],
    ids=str,
)
def test_registers_of_rows_are_in_different_banks(
    layout: str, knobs: dict[str, Any], most_alone: float, ptxas: Ptxas
) -> None:
    tool = nvdisasm()
    if tool is None:
        pytest.skip("needs nvdisasm")
    problem = Matmul(4096, 4096, 4096, layout=layout)
    program = ptxas.assemble(compiled(large(problem, **({"group": 8} | knobs | ROWS))))
    assert program.resources[0].spilled_bytes == 0
    (kernel,) = read_kernels(listing_of(program.binary, tool.path))
    reads = register_reads(kernel)
    assert reads is not None
    assert reads.alone <= most_alone
    assert reads.in_one_bank <= 0.02
