"""Micro-kernels: ptxas keeps their form, another form is refused, and the simulator's results are right."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.gpu_visit.comparison import BLOCKS, THREADS, comparison
from benchmarks.gpu_visit.kept_bits import ROWS, kept_bits
from benchmarks.gpu_visit.micro_kernels import (
    MicroKernel,
    asynchronous_copies,
    register_ports,
    shared_reads,
    tensor_copies,
)
from benchmarks.gpu_visit.micro_plan import micro_kernels
from benchmarks.gpu_visit.prepare import require_form
from benchmarks.gpu_visit.wgmma_kernels import (
    COLUMNS,
    SUM_TYPES,
    bits_of_a_sum,
    tf32_image,
    tf32_products,
)
from tuner.core.errors import UsageError
from tuner.gpu.cost_model.untimed import is_serialized
from tuner.gpu.ptxsim.launch import Simulation
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.gpu.target.compiler import Ptxas, locate

CHIP = "sm_90a"
KERNELS = micro_kernels()
needs_nvdisasm = pytest.mark.skipif(
    locate("nvdisasm") is None, reason="needs nvdisasm (pip install -e '.[bench]')"
)
Arrays = dict[str, np.ndarray]


def simulated(kernel: MicroKernel, number: int = 0) -> tuple[Arrays, Simulation]:
    """Runs one block without a clock; returns what it wrote."""
    run = kernel.runs[number]
    program = kernel.program(CHIP, run, has_clock=False, blocks=1)
    arrays: Arrays = {buffer.name: np.zeros(buffer.bytes, np.uint8) for buffer in program.buffers}
    arrays |= {name: words.view(np.uint8).copy() for name, words in run.inputs.items()}
    (simulation,) = simulate_program(program, arrays)
    assert not simulation.hazards
    return arrays, simulation


def test_every_kernel_has_a_name_and_a_question_of_its_own() -> None:
    names = [f"{kernel.name}: {run.label}" for kernel in KERNELS for run in kernel.runs]
    assert len(names) == len(set(names)) == 45
    assert {kernel.name for kernel in KERNELS} >= {"ffma_three", "lds_128", "ldgsts_32", "tma", "wgmma_rs_2"}
    assert all(kernel.operations > 0 for kernel in KERNELS)


@pytest.mark.slow
@needs_nvdisasm
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_ptxas_keeps_the_form_that_is_meant(ptxas: Ptxas, kernel: MicroKernel) -> None:
    program = ptxas.assemble(kernel.program(CHIP, kernel.runs[0]))
    require_form(kernel, program)
    (resources,) = program.resources
    assert (resources.spilled_bytes, is_serialized(resources)) == (0, False)


@needs_nvdisasm
@pytest.mark.parametrize(
    ("kernel", "other", "message"),
    [
        (register_ports("three"), register_ports("reuse"), r"256 FFMA, of which 0% read \(3, 0\)"),
        (shared_reads(4), shared_reads(2), r"found LDS of \{2: 16\} words"),
        (asynchronous_copies(16), asynchronous_copies(4), "found {'LDGSTS.E': 16}"),
        (tensor_copies(), shared_reads(4), "found {}"),
    ],
    ids=lambda value: value.name if isinstance(value, MicroKernel) else None,
)
def test_machine_code_of_another_form_is_refused(
    ptxas: Ptxas, kernel: MicroKernel, other: MicroKernel, message: str
) -> None:
    program = ptxas.assemble(other.program(CHIP, other.runs[0]))
    with pytest.raises(UsageError, match=f"ptxas has not kept the form: {message}"):
        require_form(kernel, program)


@pytest.mark.parametrize("number", [0, 1], ids=["in one instruction", "in two"])
@pytest.mark.parametrize(("place", "most"), [(0, 23), (1, 23), (2, 16)], ids=["tf32", "f16", "e4m3"])
def test_a_sum_of_the_simulator_keeps_the_bits_of_f32(place: int, most: int, number: int) -> None:
    kernel = bits_of_a_sum(SUM_TYPES[place])
    arrays, _ = simulated(kernel, number)
    sums = arrays["sums"].view(np.float32)
    kept = kept_bits(sums)
    assert kept["+1"] == most
    assert kept["-1"] >= most
    expected = 1.0 + 1.5 * 2.0 ** -np.arange(13)  # of column 2, exact in f32
    np.testing.assert_array_equal(sums.reshape(ROWS, -1)[:13, 2], expected.astype(np.float32))


def test_kept_bits_are_the_last_row_that_differs_from_one() -> None:
    sums = np.ones((ROWS, 8), np.float32)
    sums[:14, 0] = 1.5
    sums[3, 1] = 0.5
    assert kept_bits(sums) == {"+1": 13, "-1": 3, "+1.5": -1, "-1.5": -1}


@pytest.mark.slow
@pytest.mark.parametrize("consumers", [1, 2])
@pytest.mark.parametrize("from_registers", [False, True])
def test_products_of_tf32_are_right_with_a_in_shared_memory_and_in_registers(
    consumers: int, from_registers: bool
) -> None:
    kernel = tf32_products(consumers, from_registers=from_registers)
    arrays, simulation = simulated(kernel)
    image = tf32_image(consumers, np.random.default_rng(0))
    times = kernel.operations // 4  # four steps of K in a pass
    lane = np.arange(128)
    sums = arrays["sums"].view(np.float32).reshape(consumers, 128, COLUMNS // 2)
    for group in range(consumers):
        wanted = times * image.a[group].astype(np.float64) @ image.b.T
        rows = lane // 32 * 16 + lane % 32 // 4
        for register in range(0, COLUMNS // 2, 29):
            columns = register // 4 * 8 + lane % 4 * 2 + register % 2
            found = sums[group, :, register]
            expected = wanted[rows + register % 4 // 2 * 8, columns]
            np.testing.assert_allclose(found, expected, rtol=2e-3, atol=0.2)
    assert simulation.conflict_ratio == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel", [register_ports("two_and_one"), tensor_copies()], ids=lambda each: each.name
)
def test_kernels_of_ports_and_copies_run_on_the_simulator(kernel: MicroKernel) -> None:
    arrays, _ = simulated(kernel)
    assert set(arrays) >= {"cycles"}
    if "numbers" in arrays:
        sums = arrays["numbers"].view(np.float32).reshape(-1, 48)[:128, :16]
        assert np.isfinite(sums).all()
        assert (sums > 1.0).all()


@pytest.mark.slow
def test_lanes_that_read_distinct_vectors_have_no_bank_conflicts() -> None:
    kernel = shared_reads(4)
    assert simulated(kernel)[1].conflict_ratio == 1.0


@pytest.mark.parametrize(
    ("result", "wrong", "largest"),
    [
        ("f32", None, 0.25),
        ("f32", (700, 3.0), 3.0),
        ("f32", (0, -np.inf), np.inf),
        ("f32", (999, np.nan), np.nan),
        ("i32", None, 0.0),
        ("i32", (500, 7), 7.0),
    ],
)
def test_the_comparison_finds_the_largest_error_of_any_element(
    result: str, wrong: tuple[int, float] | None, largest: float
) -> None:
    elements = 1000
    rng = np.random.default_rng(0)
    reference = np.round(rng.uniform(-100, 100, elements)).astype(np.float32)
    c = reference.astype(np.float32 if result == "f32" else np.int32)
    if result == "f32":
        c[10] += 0.25
    if wrong is not None:
        c[wrong[0]] = reference[wrong[0]] + wrong[1]
    terms = np.zeros(16, np.uint8)
    terms[:8].view(np.uint64)[0] = elements
    terms[8:12].view(np.float32)[0] = 1.0
    found = np.zeros(1, np.float32)
    program = comparison(CHIP, result, elements)
    (launch,) = program.launches
    few = replace(program, launches=(replace(launch, grid=(2, 1, 1)),))  # each thread takes several elements
    simulate_program(few, {"c": c, "reference": reference, "terms": terms, "largest": found})
    np.testing.assert_equal(found[0], np.float32(largest))
    assert (launch.grid[0], launch.block[0]) == (BLOCKS, THREADS)
