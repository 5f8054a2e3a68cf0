"""What rows decide: each question is open until its rows are there, and changes its answer with them."""

from typing import Any

import pytest

from benchmarks.gpu_visit.candidates import EXPERTS as TIMED_EXPERTS
from benchmarks.gpu_visit.candidates import as_one_matmul
from benchmarks.gpu_visit.decisions import (
    EXPERTS,
    OPEN,
    QUESTIONS,
    UNSCALED,
    WITH_SCALES,
    VisitFinding,
    decided,
)

F32 = "matmul 4096x4096x4096 f32"


def micro(check: str, cycles: float) -> dict[str, Any]:
    return {"part": "micro_kernels", "check": check, "status": "passed", "cycles_per_operation": cycles}


def timed(problem: str, block_m: int, median_s: float, part: str = "f32", **facts: Any) -> dict[str, Any]:
    row = {"part": part, "check": f"{problem} {block_m}", "status": "passed", "problem": problem}
    return row | {"knobs": {"block_m": block_m}, "median_s": median_s, "strategy": "s", **facts}


def found(word: str, *rows: dict[str, Any]) -> VisitFinding:
    (finding,) = (each for each in decided(rows) if word in each.question)
    return finding


def test_without_rows_every_question_is_open() -> None:
    assert [finding.answer for finding in decided(())] == [OPEN] * len(QUESTIONS)
    failed = timed(f"{F32} nn none", 64, 1e-3) | {"status": "failed"}
    assert {finding.answer for finding in decided((failed,))} == {OPEN}


@pytest.mark.parametrize(
    ("two_and_one", "three", "in_runs", "answer"),
    [
        (4.2, 8.0, 8.0, "ports, by bank"),
        (6.1, 6.1, 12.0, "ports, by bank over a few FFMA"),
        (6.1, 6.1, 6.1, "ports, whatever the bank"),
        (4.2, 4.4, 4.4, "not ports: look at the path"),
    ],
)
def test_ports_limit_ffma_where_three_reads_take_longer_than_two(
    two_and_one: float, three: float, in_runs: float, answer: str
) -> None:
    rows = [
        micro("ffma_reuse: 4 warps per scheduler", 4.0),
        micro("ffma_two_and_one: 4 warps per scheduler", two_and_one),
    ]
    assert found("register ports", *rows).answer == OPEN
    rows.append(micro("ffma_three: 4 warps per scheduler", three))
    assert found("register ports", *rows).answer == OPEN
    rows.append(micro("ffma_three_in_runs: 4 warps per scheduler", in_runs))
    finding = found("register ports", *rows)
    assert (finding.answer, finding.figures["three"]) == (answer, three / 4)


@pytest.mark.parametrize(("pairs", "answer"), [(32.0, "yes: pair the lanes"), (63.0, "no: leave the lanes")])
def test_lanes_are_paired_only_where_that_takes_fewer_passes(pairs: float, answer: str) -> None:
    rows = (micro("lds_128: distinct, 16 warps", 64.0), micro("lds_128: pairs n, n^1, 16 warps", pairs))
    assert found("pairs of lanes", *rows).answer == answer
    assert found("pairs of lanes", rows[0]).answer == OPEN


@pytest.mark.parametrize(("tn_s", "answer"), [(0.9e-3, "tn: transpose A"), (0.999e-3, "no difference")])
def test_the_same_knobs_of_tn_and_nn_are_compared_and_others_not(tn_s: float, answer: str) -> None:
    rows = [timed(f"{F32} nn none", 64, 1e-3), timed(f"{F32} tn none", 128, 0.5e-3)]
    assert found("with A's rows along m", *rows).answer == OPEN
    finding = found("with A's rows along m", *rows, timed(f"{F32} tn none", 64, tn_s))
    assert (finding.answer, finding.figures["pairs"]) == (answer, 1)


def test_knobs_for_registers_are_compared_on_one_tile() -> None:
    off = {"order_products": 0, "transpose": 0, "block_n": 8}
    on = {"order_products": 1, "transpose": 1, "block_n": 8, "pad_bytes": 16}
    rows = [timed(f"{F32} nn none", 64, 1e-3, knobs=off | {"block_m": 64})]
    assert found("products in rows", *rows).answer == OPEN
    rows.append(timed(f"{F32} nn none", 128, 0.1e-3, knobs=on | {"block_m": 128}))
    assert found("products in rows", *rows).answer == OPEN
    slow = timed(f"{F32} nn none", 64, 0.99e-3, knobs=on | {"block_m": 64})
    assert found("products in rows", *rows, slow).answer == "nothing"
    fast = timed(f"{F32} nn none", 64, 0.9e-3, knobs=on | {"block_m": 64})
    assert found("products in rows", *rows, fast).answer == "both_over_neither: 0.900"


def test_the_fastest_configuration_is_named_with_its_ratio_and_a_random_point_is_none() -> None:
    rows = (
        timed(f"{F32} nn none", 64, 2e-3, ratio=0.8),
        timed(f"{F32} nn none", 128, 1e-3, ratio=0.9),
        timed(f"{F32} nn none", 256, 0.5e-3, part="ranking"),
    )
    finding = found("of f32 comes first at 4096", *rows)
    assert (finding.answer, finding.figures["ratio"]) == ("block_m=128", 0.9)
    assert (finding.figures["configurations"], finding.figures["second_s"]) == (2, [2e-3])


def test_next_to_a_library_the_ratio_decides_since_clocks_change_between_candidates() -> None:
    rows = (timed(f"{F32} nn none", 64, 1.0e-3, ratio=0.97), timed(f"{F32} nn none", 128, 1.1e-3, ratio=1.01))
    assert found("of f32 comes first at 4096", *rows).answer == "block_m=128"


def test_bits_are_those_of_each_type_and_models_are_ranked_by_strategy() -> None:
    bits = {"part": "micro_kernels", "check": "bits_tf32: one instruction", "status": "passed"}
    finding = found("bits does a sum keep", bits | {"kept_bits": {"+1": 24, "-1": 23}})
    assert finding.answer == "tf32: one instruction: 23 to 24"
    rows = [
        timed("p", number, 1e-3 * number, "ranking", by_knobs=-number, by_machine_code=2.0 * number)
        for number in range(1, 12)
    ]
    finding = found("order new points", *rows)
    assert finding.figures["s by_machine_code"] == {"points": 11, "rank": pytest.approx(1.0)}
    assert finding.figures["s by_knobs"]["rank"] == pytest.approx(-1.0)
    assert found("order new points", *rows[:5]).answer == OPEN


def test_scales_of_blocks_are_compared_with_none_by_the_fastest_of_both() -> None:
    unscaled = [timed(UNSCALED, block_m, median_s) for block_m, median_s in ((64, 120e-6), (128, 118e-6))]
    assert found("is left with scales", *unscaled).answer == OPEN
    scaled = [timed(WITH_SCALES, block_m, median_s) for block_m, median_s in ((64, 125e-6), (128, 130e-6))]
    finding = found("is left with scales", *unscaled, *scaled)
    assert finding.answer == "0.944"
    assert finding.figures == {"unscaled_s": 118e-6, "scaled_s": 125e-6, "ratio": 118 / 125}


def test_groups_are_compared_with_as_many_rows_of_one_matrix_which_are_timed_too() -> None:
    assert list(EXPERTS) == [problem.key for problem in TIMED_EXPERTS]
    assert [as_one_matmul(problem).key for problem in TIMED_EXPERTS] == list(EXPERTS.values())
    (grouped, one), other = EXPERTS.items()
    rows = [timed(one, 64, 90e-6), timed(one, 128, 80e-6)]
    assert found("next to as many rows", *rows).answer == OPEN
    finding = found("next to as many rows", *rows, timed(grouped, 64, 100e-6), timed(other[0], 64, 1e-6))
    assert finding.figures == {grouped: pytest.approx(0.8)}
