"""Which configurations are proposed to IREE for an entry; nothing is compiled."""

from dataclasses import replace

import pytest

from tuner.core.candidate import Candidate, Value
from tuner.core.problem import BatchMatmul, Matmul, Problem
from tuner.core.processors import PROCESSORS
from tuner.library.entries import LibraryEntry
from tuner.library.iree.tuning_spec import MOST, IreeConfiguration, configurations_for

PROBLEM = Matmul(128, 2304, 768)
KNOBS: dict[str, Value] = {"block_m": 64, "block_n": 0, "tile_m": 12, "tile_n": 48, "unroll_k": 2}
BATCH_TILE = "vector_common_parallel = [1, 8, 32, 0]"
PIPELINE = (
    "translation_info = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>"
)


def entry(problem: Problem, **knobs: Value) -> LibraryEntry:
    machine = PROCESSORS["haswell"].machine
    candidate = Candidate.of("matmul_cpu_packed", knobs)
    return LibraryEntry(problem, candidate, "", machine, 1, 1e-3, "", None, 1)


def test_the_tiles_of_the_knobs_come_first_then_their_blocks_with_the_usual_tile() -> None:
    first, second, *others = configurations_for(entry(PROBLEM, **KNOBS))
    assert first == IreeConfiguration((64, 2304), (12, 48), 2)
    assert second == IreeConfiguration((64, 2304), (8, 32), 2)
    assert len(others) == MOST - 2
    assert {each.tile for each in others} == {(8, 32)}


def test_no_size_is_larger_than_its_extent_and_none_is_proposed_twice() -> None:
    found = configurations_for(entry(Matmul(4, 24, 2), **KNOBS))
    assert found == tuple(dict.fromkeys(found))
    assert {each.distribution for each in found} == {(4, 24)}
    assert {each.tile for each in found} == {(4, 24)}
    assert {each.step for each in found} == {1, 2}


def test_a_strategy_without_such_knobs_has_the_known_configurations() -> None:
    assert configurations_for(entry(PROBLEM, tiles_m=2, tiles_n=2))[0] == IreeConfiguration(
        (128, 2304), (8, 32), 1
    )


@pytest.mark.parametrize(
    ("problem", "sizes"),
    [
        (
            PROBLEM,
            "distribution = [64, 256, 0], vector_common_parallel = [8, 32, 0], vector_reduction = [0, 0, 4]",
        ),
        (
            BatchMatmul(3, 128, 2304, 768),
            f"distribution = [1, 64, 256, 0], {BATCH_TILE}, vector_reduction = [0, 0, 0, 4]",
        ),
    ],
)
def test_the_attribute_lists_the_sizes_by_dimension(problem: Problem, sizes: str) -> None:
    text = IreeConfiguration((64, 256), (8, 32), 4).attribute(problem)
    lowering = f"lowering_config = #iree_cpu.lowering_config<{sizes}>"
    assert text == f"#iree_codegen.compilation_info<{lowering}, {PIPELINE}>"


def test_alignment_changes_nothing() -> None:
    assert configurations_for(entry(replace(PROBLEM, align="64"), **KNOBS)) == configurations_for(
        entry(PROBLEM, **KNOBS)
    )
