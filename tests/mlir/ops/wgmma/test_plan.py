from dataclasses import replace

import pytest

from tuner.mlir.wgmma.plan import OperandTile, PipelinePlan


def plan(rows: int = 128, columns: int = 256, stages: int = 4, consumers: int = 2) -> PipelinePlan:
    a, b = OperandTile(rows, 64, 2, is_k_major=True), OperandTile(columns, 64, 2, is_k_major=False)
    return PipelinePlan(a, b, 1000, stages, consumers, "f16")


def test_a_plan_counts_what_a_block_needs() -> None:
    found = plan()
    assert (found.threads, found.k_tiles, found.fragments, found.sums) == (384, 16, 1, 128)
    assert (found.stage_bytes, found.shared_bytes) == (49152, 4 * 49152 + 64)
    assert found.why_not() is None


def test_blocks_have_equal_parts_of_the_sum() -> None:
    found = replace(plan(), k=1024, splits=4)
    assert found.k_tiles == 4
    assert found.why_not() is None


def test_boxes_of_results_lie_between_the_stages_and_the_mbarriers() -> None:
    found = replace(plan(), stores="tma")
    assert (found.boxes_offset_bytes, found.box_bytes) == (4 * 49152, 16 * 128)
    assert found.mbarriers_offset_bytes == 4 * 49152 + 2 * 8 * 2048  # two boxes for each of eight warps
    assert found.shared_bytes == found.mbarriers_offset_bytes + 64
    assert found.why_not() is None
    assert plan().mbarriers_offset_bytes == 4 * 49152


def test_registers_move_from_the_producer_only_where_equal_parts_are_too_few() -> None:
    assert plan().registers == (40, 232)
    assert plan(columns=128).registers is None
    assert plan(rows=64, consumers=1).registers is None


def test_consumers_of_a_cluster_release_every_stage() -> None:
    found = replace(plan(), cluster=(2, 1))
    assert (found.cluster_blocks, found.readers) == (2, 4)
    assert found.why_not() is None


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (replace(plan(), cluster=(2, 2)), r"cluster: found (2, 2), allowed (1, 1), (2, 1), (1, 2)"),
        (plan(consumers=4, rows=256), "consumers: found 4, allowed 1, 2, 3"),
        (replace(plan(), tiles=0), "tiles: found 0, allowed 1 or more"),
        (replace(plan(), splits=0), "splits: found 0 of 1000 elements, allowed equal parts of whole tiles"),
        (replace(plan(), splits=2), "splits: found 2 of 1000 elements, allowed equal parts of whole tiles"),
        (replace(plan(), k=1024, splits=2, stores="tma"), "splits: found results stored by tma, allowed"),
        (replace(plan(), stores="tensor"), "stores: found 'tensor', allowed direct, tma"),
        (
            replace(plan(columns=96), stores="tma"),
            "stores: found tma for 96 columns of C, allowed multiples of 64",
        ),
        (plan(stages=1), "stages: found 1, allowed 2 or more"),
        (plan(columns=320), "B: found 320 columns of C, allowed 256"),
        (plan(rows=128, consumers=1), "consumers: found 256 sums per thread, allowed 192 with 1"),
        (plan(rows=192, consumers=3), "consumers: found 128 sums per thread, allowed 80 with 3"),
        (plan(rows=192, columns=64), "A: found 192 rows, allowed multiples of 128"),
    ],
)
def test_what_cannot_be_built_reports_why(broken: PipelinePlan, reason: str) -> None:
    found = broken.why_not()
    assert found is not None
    assert found.startswith(reason)
