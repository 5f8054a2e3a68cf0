"""The machine code of the GPU strategies keeps its level: counts, which need no GPU and no quiet machine."""

import json
from functools import cache
from itertools import product
from typing import Any

import pytest

from benchmarks.machine_code.__main__ import loop_row
from benchmarks.machine_code.tiles import CHIPS, HELD, HOPPER_CHIP, STALLS_OVER_IDEAL, TILES, ComparedTile
from benchmarks.results_file import RESULTS
from tests.support.gpu_points import Builder
from tuner.gpu.target.compiler import find_ptxas, locate

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.skipif(locate("nvdisasm") is None, reason="needs nvdisasm (pip install -e '.[bench]')"),
    pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas (pip install -e '.[cuda]')"),
]

COMMITTED = json.loads((RESULTS / "machine_code.json").read_text())
ABOVE_CUTLASS = 1.02  # of its cycles
SLACK = 1.01  # of counts, between versions of ptxas
SMALL = "f16 nn 64x64x64"
OF_CUDA_CORES = tuple(f"f32 nn 128x128x{kind}" for kind in ("16 bounded", "16 ahead", "8"))
HOPPER_TILE = "f16 nn 128x256x64 wgmma"
CONSUMER_INSTRUCTIONS = 60  # of a step; CUTLASS 48
MAIN = tuple(each for each in TILES if not each.is_variant)
COMPARED = tuple((each.name, chip) for each in MAIN for chip, _ in each.cutlass_cycles)
GUARDED = (*product((*HELD, SMALL, *OF_CUDA_CORES), CHIPS), (HOPPER_TILE, HOPPER_CHIP))


@cache
def row(name: str, chip: str) -> dict[str, Any]:
    tool = locate("nvdisasm")
    assert tool is not None
    return loop_row(tile(name), "tuner", Builder(chip).build(tile(name).ours).program, tool)


def tile(name: str) -> ComparedTile:
    (found,) = (each for each in TILES if each.name == name)
    return found


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", HELD)
def test_the_tensor_cores_are_hardly_kept_waiting(name: str, chip: str) -> None:
    found = row(name, chip)
    assert found["stalls_over_ideal"] <= STALLS_OVER_IDEAL[chip]
    assert (found["spills"], found["spilled_bytes"]) == (0, 0)
    assert (found["waits"], found["barriers"]) == (2, 1)  # the group is committed, then waited for
    assert found["before_products"] <= 2


@pytest.mark.parametrize(("name", "chip"), COMPARED)
def test_a_loop_takes_hardly_more_cycles_than_that_of_cutlass(name: str, chip: str) -> None:
    assert row(name, chip)["stall_cycles"] <= ABOVE_CUTLASS * dict(tile(name).cutlass_cycles)[chip]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", OF_CUDA_CORES)
def test_two_blocks_of_the_cuda_core_tiles_fit_on_a_multiprocessor(name: str, chip: str) -> None:
    found = row(name, chip)
    assert found["registers"] <= 128
    assert found["blocks_per_multiprocessor"] == 2
    assert found["spilled_bytes"] == 0


def test_a_step_of_hoppers_pipeline_is_four_products_and_every_tile_is_committed() -> None:
    found = row(HOPPER_TILE, HOPPER_CHIP)
    assert (found["products"], found["ideal_cycles"]) == (4, 4 * 128)  # 64x256x16 each
    assert found["instructions"] <= CONSUMER_INSTRUCTIONS
    assert (found["waits"], found["barriers"], found["spills"]) == (1, 2, 0)
    assert (found["registers"], found["spilled_bytes"], found["is_serialized"]) == (168, 0, False)
    assert (found["tma_copies"], found["is_elected"]) == (5, True)  # A, and B in boxes of 64 columns
    assert found["register_limits"] == (40, 232)
    ours = {(each["tile"], each["chip"]) for each in COMMITTED["rows"] if each["maker"] == "tuner"}
    assert ours == {(each.name, chip) for each in TILES for chip in each.chips}
    for conflicts in COMMITTED["summary"]["bank_conflicts"]:
        assert (conflicts["wrong"], conflicts["with_conflicts"]) == (0, 0)


@pytest.mark.parametrize(("name", "chip"), GUARDED)
def test_no_loop_is_worse_than_in_the_committed_results(name: str, chip: str) -> None:
    of_tile = {"tile": name, "chip": chip, "maker": "tuner"}
    (before,) = (each for each in COMMITTED["rows"] if of_tile.items() <= each.items())
    found = row(name, chip)
    for count in ("instructions", "stall_cycles", "matrix_loads", "copies", "others"):
        assert found[count] <= SLACK * before[count] + 2, count
    assert found["blocks_per_multiprocessor"] >= before["blocks_per_multiprocessor"]
