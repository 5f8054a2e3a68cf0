"""What a specialized kernel has in addition to its main loop; bank conflicts of random points."""

import numpy as np
import pytest

from benchmarks.machine_code.conflicts import count_conflicts, random_points
from benchmarks.machine_code.loop_counts import count_loop
from benchmarks.machine_code.pipeline_counts import PipelineCounts, count_pipeline
from tests.support.gpu_point import feasible_set
from tests.support.gpu_points import TENSOR_CORES
from tests.tuning.fakes import present
from tuner.core.compiled_code import Resources
from tuner.gpu.target.sass import Kernel, MachineInstruction

PRODUCER = (
    "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8",
    "USETMAXREG.DEALLOC.CTAPOOL 0x28",
    "ELECT P0, URZ, PT",
    "UTMALDG.2D [UR8], [UR34]",
    "UTMALDG.2D [UR12], [UR36]",
)


def kernel(*lines: str) -> Kernel:
    code = tuple(MachineInstruction(16 * place, text, 1) for place, text in enumerate(lines))
    return Kernel("k", code, ((".L_x_0", 0),))


def resources(*notes: str) -> Resources:
    return Resources("k", 168, 0, 0, 0, 0, 0, 0.2, 1, notes)


def test_copies_registers_the_elected_thread_and_columns_of_a_wgmma_are_counted() -> None:
    found = count_pipeline(kernel(*PRODUCER), resources())
    assert found == PipelineCounts(2, is_elected=True, register_limits=(40, 232), is_serialized=False)
    for lines in (PRODUCER[:2], (*PRODUCER[3:], PRODUCER[2])):  # without copies, or after them
        assert not count_pipeline(kernel(*lines), resources()).is_elected
    note = "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ..."
    assert count_pipeline(kernel(*PRODUCER), resources(note)).is_serialized
    loop = kernel(
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R3",
        "HGMMA.64x256x16.F32 R24, gdesc[UR16].tnspB, R24",
        "HGMMA.64x256x16.F32 R24, gdesc[UR16].tnspB, R24, gsb0",
        "WARPGROUP.DEPBAR.LE gsb0, 0x1",
        "BRA `(.L_x_0)",
    )
    counts = present(count_loop(loop, "sm_90a"))
    assert (counts.products, counts.barriers, counts.waits, counts.before_products) == (2, 1, 1, 1)
    assert counts.ideal_cycles == 2 * 128


@pytest.mark.mlir
@pytest.mark.parametrize("shared", ["swizzle", "pad"])
def test_random_points_are_feasible_and_laid_out_as_asked(shared: str) -> None:
    drawn = list(random_points(shared, 3, np.random.default_rng(2)))
    assert [point.problem.layout for point in drawn] == ["nn", "nt", "tn"]
    for point in drawn:
        assert dict(point.candidate.choices)["shared"] == shared
        assert feasible_set(point.problem, TENSOR_CORES, point.chip).row_of(point.candidate) is not None
    assert drawn == list(random_points(shared, 3, np.random.default_rng(2)))


@pytest.mark.mlir
def test_points_are_simulated_and_counted() -> None:
    found = count_conflicts("swizzle", 1, seed=3)
    assert (found.points, found.wrong, found.with_conflicts, found.worst_ratio) == (1, 0, 0, 1.0)
