"""Which stored trial gives a fusion its schedule."""

from dataclasses import replace

import pytest

from tests.db.values import COMPILER, MACHINE, SETTINGS, add, begin, outcome, timed
from tests.fusion_problems import fusion_problems, program_text
from tuner.analysis.warm_start import TuningTask, is_same_product, warm_points
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage
from tuner.core.matmul import Matmul
from tuner.core.problem import COLD, WEIGHTS_COLD, Problem
from tuner.core.problem_classes import FusedProblem, TextProblem
from tuner.core.programs import (
    FIRST,
    NEAREST,
    SAME_CONTRACTION,
    TUNED,
    CompiledFusion,
    ExplainedFusion,
    FusionSchedule,
    ProgramResult,
)
from tuner.core.requests import CampaignMember, CampaignSettings
from tuner.core.runs import ChosenStrategy
from tuner.db.store import Store
from tuner.models.fusion_schedules import fusion_schedules
from tuner.space.scripts.choice import first_configuration
from tuner.tuning.earlier_results import EarlierRuns

pytestmark = pytest.mark.mlir

SIZES = {"panel": 16, "tile_m": 4, "block_m": 0, "block_k": 0, "unroll_k": 1, "ahead": 0}
KNOBS: dict[str, int | str] = {**SIZES, "loop_order": "ji", "epilogue_on": "tile"}
SMALL = Candidate.of("contraction_cpu_packed", KNOBS)
LARGE = Candidate.of("contraction_cpu_packed", KNOBS | {"panel": 32})
ROWS = Candidate.of("rows_cpu", {"chunk": 16})
GAINED = Candidate.of("contraction_cpu_packed", KNOBS | {"panel": 32, "unroll_k": 2})
SCRIPT = "// a stored script\n"
ACTIVATIONS = """func.func @main(%a: tensor<8x24xf32>, %b: tensor<24x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %product = linalg.matmul ins(%a, %b : tensor<8x24xf32>, tensor<24x32xf32>)
    outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %product : tensor<8x32xf32>
}
"""


def problems(rows: int = 8, hidden: int = 32) -> tuple[TextProblem, ...]:
    """Returns a matmul with bias and relu, rows, and a matmul without an epilogue."""
    return fusion_problems(program_text(rows, 24, hidden))


def store_trial(
    store: Store,
    problem: Problem,
    candidate: Candidate,
    median_s: float | None,
    machine: str = MACHINE.name,
    threads: int = 1,
) -> int:
    """Stores a run with one trial; without a time it failed. Returns the trial's id."""
    run = begin(store, replace(SETTINGS, problem=problem, threads=threads), replace(MACHINE, name=machine))
    result = Failure(Stage.RUN, "timed out") if median_s is None else timed(median_s)
    return add(store, run, 0, replace(outcome(result, SCRIPT), candidate=candidate), SCRIPT)


def found(store: Store, problem: TextProblem, threads: int = 1) -> list[FusionSchedule]:
    return list(fusion_schedules(store, MACHINE, problem, threads))


def test_nothing_is_suggested_by_no_run_another_machine_or_sizes_that_are_far(store: Store) -> None:
    assert found(store, problems()[0]) == []
    store_trial(store, problems()[0], SMALL, 1e-6, machine="another")
    assert found(store, problems()[0]) == []
    store_trial(store, problems(rows=64, hidden=512)[0], LARGE, 1e-6)
    assert found(store, fusion_problems(program_text(2, 24, 16))[0]) == []


def test_the_best_trial_of_the_fusion_itself_comes_first(store: Store) -> None:
    problem = problems()[0]
    store_trial(store, problem, LARGE, 2e-6)
    best = store_trial(store, problem, SMALL, 1e-6)
    store_trial(store, problem, LARGE, None)
    first = found(store, problem)[0]
    assert (first.origin, first.trial, first.candidate, first.script) == (TUNED, best, SMALL, SCRIPT)


def test_a_trial_that_packs_weights_as_untuned_programs_do_is_taken_where_it_is_as_fast(store: Store) -> None:
    problem = problems()[0]
    initial = first_configuration(problem, MACHINE)
    assert initial is not None
    width = dict(initial[0].choices)["panel"]
    usual = Candidate.of("contraction_cpu_packed", KNOBS | {"panel": width})
    other = Candidate.of("contraction_cpu_packed", KNOBS | {"panel": 8})
    assert width != 8
    store_trial(store, problem, usual, 1.04e-6)
    store_trial(store, problem, usual, 0.5e-6, threads=4)  # times on other threads are not compared
    store_trial(store, problem, other, 1e-6)
    assert found(store, problem)[0].candidate == other
    store_trial(store, problem, usual, 1.02e-6)
    assert found(store, problem)[0].candidate == usual
    without_weights = fusion_problems(ACTIVATIONS)[0]
    assert not without_weights.facts.weights
    store_trial(store, without_weights, usual, 1.02e-6)
    store_trial(store, without_weights, other, 1e-6)
    assert found(store, without_weights)[0].candidate == other


def test_times_with_the_same_caches_count_first(store: Store) -> None:
    problem = problems()[0]
    store_trial(store, replace(problem, cache=COLD), LARGE, 1e-7)
    cold = found(store, replace(problem, cache=WEIGHTS_COLD))[0]
    assert (cold.origin, cold.candidate) == (TUNED, LARGE)  # better than nothing
    store_trial(store, replace(problem, cache=WEIGHTS_COLD), SMALL, 1e-6)
    assert found(store, replace(problem, cache=WEIGHTS_COLD))[0].candidate == SMALL


def test_times_on_the_nearest_number_of_threads_count_first(store: Store) -> None:
    problem, other = (
        problems()[0],
        fusion_problems(program_text().replace("maximumf %sum", "minimumf %sum"))[0],
    )
    for of in (problem, other):  # itself, and the same contraction
        store_trial(store, of, SMALL, 1e-6)
        store_trial(store, of, LARGE, 2e-6, threads=4)
    for of in (problem, problems()[0]):
        assert [found(store, of, threads)[0].candidate for threads in (1, 3, 4)] == [SMALL, LARGE, LARGE]
        chosen = [dict(found(store, of, threads)[1].candidate.choices)["panel"] for threads in (1, 4)]
        assert chosen == [16, 32]
    near = problems(rows=4, hidden=40)[1]
    store_trial(store, near, ROWS, 1e-6, threads=8)
    assert found(store, problems()[1])[0].candidate == ROWS  # better than nothing


def test_the_same_contraction_with_another_epilogue_lends_its_configuration(store: Store) -> None:
    minimum = program_text().replace("arith.maximumf %sum", "arith.minimumf %sum")
    trial = store_trial(store, fusion_problems(minimum)[0], SMALL, 1e-6)
    store_trial(store, problems(rows=16)[0], LARGE, 1e-9)
    first = found(store, problems()[0])[0]
    assert (first.origin, first.trial, first.candidate) == (SAME_CONTRACTION, trial, SMALL)
    assert first.script != SCRIPT  # bound again, for this fusion
    assert "tuner.pack_weights" in first.script


def test_the_matmul_of_the_same_sizes_lends_its_register_tile(store: Store) -> None:
    plain = problems()[2]
    blocks: dict[str, int | str] = dict.fromkeys(("block_m", "block_n", "block_k"), 0)
    knobs = {**blocks, "tile_m": 4, "tile_n": 16, "unroll_k": 2}
    trial = store_trial(store, Matmul(8, 24, 32), Candidate.of("matmul_cpu_packed", knobs), 1e-6)
    (only,) = found(store, plain)
    assert (only.origin, only.trial, only.candidate.strategy) == (SAME_CONTRACTION, trial, SMALL.strategy)
    chosen = dict(only.candidate.choices)
    assert (chosen["panel"], chosen["tile_m"], chosen["unroll_k"]) == (16, 4, 2)
    assert found(store, problems()[0]) == []  # that one has other sizes, and an epilogue


def test_the_matmul_with_the_epilogue_of_a_fusion_lends_its_register_tile(store: Store) -> None:
    problem = problems()[0]
    blocks: dict[str, int | str] = dict.fromkeys(("block_m", "block_n", "block_k"), 0)
    tiles = Candidate.of("matmul_cpu_packed", {**blocks, "tile_m": 4, "tile_n": 16, "unroll_k": 2})
    store_trial(store, Matmul(8, 32, 24), tiles, 1e-9)
    store_trial(store, Matmul(8, 32, 24, epilogue="bias"), tiles, 1e-9)
    assert found(store, problem) == []
    trial = store_trial(store, Matmul(8, 32, 24, epilogue="bias_relu"), tiles, 1e-6)
    (only,) = found(store, problem)
    assert (only.origin, only.trial, only.candidate.strategy) == (SAME_CONTRACTION, trial, SMALL.strategy)
    assert dict(only.candidate.choices)["tile_m"] == 4


def test_the_matmul_by_a_constant_b_with_the_epilogue_of_a_fusion_lends_its_script(store: Store) -> None:
    problem = problems()[0]
    for dtype, epilogue in (("f32", "bias"), ("f64", "bias_relu")):
        store_trial(store, Matmul(8, 32, 24, dtype, epilogue=epilogue, weights="constant"), LARGE, 1e-9)
    assert TUNED not in [each.origin for each in found(store, problem)]
    constant = Matmul(8, 32, 24, layout="nt", epilogue="bias_relu", weights="constant")
    trial = store_trial(store, constant, SMALL, 1e-6)
    first = found(store, problem)[0]
    assert (first.origin, first.trial, first.candidate, first.script) == (TUNED, trial, SMALL, SCRIPT)
    store_trial(store, problem, LARGE, 1e-3)
    assert found(store, problem)[0].candidate == LARGE  # its own come first


@pytest.mark.parametrize("is_fusion_first", [True, False])
def test_a_run_begins_with_trials_of_the_fusion_or_matmul_that_is_the_same(
    store: Store, is_fusion_first: bool
) -> None:
    fusion = problems()[0]
    matmul = Matmul(8, 32, 24, layout="nt", epilogue="bias_relu", weights="constant")
    earlier, later = (fusion, matmul) if is_fusion_first else (matmul, fusion)
    store_trial(store, Matmul(8, 32, 24, epilogue="bias_gelu", weights="constant"), LARGE, 1e-9)
    store_trial(store, earlier, SMALL, 1e-6)
    strategies = (ChosenStrategy(SMALL.strategy),)
    settings = replace(SETTINGS, problem=later, strategies=strategies, warm_start=True)
    known = EarlierRuns(store).known_tasks(settings, MACHINE)
    first, second = warm_points(TuningTask(later, MACHINE, 1), known)
    assert (first.candidate, first.source) == (SMALL, "8x32x24 (run 2)")  # of equal layout and epilogue
    assert (second.candidate, second.source) == (LARGE, "8x32x24 bias_gelu (run 1)")


def test_a_fusion_is_the_matmul_by_a_constant_b_that_the_table_of_epilogues_has(store: Store) -> None:
    fusion, rows, plain = problems()
    assert fusion.scheduled_as == Matmul(8, 32, 24, epilogue="bias_relu", weights="constant")
    assert plain.scheduled_as.epilogue == "none"
    assert rows.scheduled_as == rows
    quantized = Matmul(1, 32, 64, weights="i4", group_size=32)
    matmul = Matmul(8, 32, 24, "bf16", "nt")
    assert (quantized.scheduled_as, matmul.scheduled_as) == (quantized, matmul)


def test_the_nearest_sizes_lend_a_projected_configuration(store: Store) -> None:
    near = store_trial(store, problems(rows=4, hidden=40)[0], GAINED, 1e-5)
    store_trial(store, problems(rows=64, hidden=256)[0], SMALL, 1e-6)
    (only,) = found(store, fusion_problems(program_text(2, 24, 16))[0])
    assert (only.origin, only.trial) == (NEAREST, near)
    chosen = dict(only.candidate.choices)
    assert chosen["panel"] in (8, 16)  # 32 columns would be too many for 16
    assert chosen["tile_m"] == 2  # of two rows


def test_rows_take_the_chunk_of_other_rows_only(store: Store) -> None:
    store_trial(store, problems()[0], SMALL, 1e-6)
    trial = store_trial(store, problems(rows=16)[1], ROWS, 1e-6)
    (only,) = found(store, problems()[1])
    assert (only.origin, only.trial, only.candidate) == (NEAREST, trial, ROWS)


def begin_campaign(store: Store, fusions: tuple[TextProblem, ...]) -> int:
    """Begins a campaign of the fusions of a program, "g0", "g1" and so on; returns its id."""
    members = tuple(
        CampaignMember(
            replace(SETTINGS, problem=fusion, trials=None, budget_s=None, first=()), f"g{place}", 1
        )
        for place, fusion in enumerate(fusions)
    )
    settings = CampaignSettings("program.mlir", 4, None, 0, ())
    return store.begin_campaign(settings, members, MACHINE, COMPILER, "0.1.0", None)


def result_of(*origins: str) -> ProgramResult:
    summary = CompiledFusion("contraction", (), "packed", (), "", "", "f32", 8, 64)
    fusions = tuple(ExplainedFusion(replace(summary, origin=origin)) for origin in origins)
    return ProgramResult(1e-5, 1e-5, None, fusions)


def test_a_fusion_lends_no_initial_configuration(store: Store) -> None:
    near = problems(rows=4, hidden=40)[0]
    initial = first_configuration(near, MACHINE)
    assert initial is not None
    store_trial(store, near, initial[0], 1e-5)
    assert found(store, problems()[0]) == []
    other = problems(rows=8, hidden=40)[0]
    trial = store_trial(store, other, GAINED, 1e-5)
    assert [schedule.trial for schedule in found(store, problems()[0])] == [trial]


def test_an_untried_fusion_of_a_tuned_program_keeps_its_initial_configuration(store: Store) -> None:
    tried, untried = problems(rows=8, hidden=40)[0], problems()[0]
    campaign = begin_campaign(store, (tried, untried))
    run = store.campaign(campaign).runs[0].id
    add(store, run, 0, replace(outcome(timed(1e-6), SCRIPT), candidate=GAINED, problem=tried), SCRIPT)
    assert found(store, untried) == []
    assert [schedule.origin for schedule in found(store, problems(rows=4)[0])] == [NEAREST]  # of no program
    store.set_program_result(campaign, result_of(TUNED, FIRST))
    assert [schedule.origin for schedule in found(store, tried)] == [TUNED]
    assert found(store, untried) == []


def test_trials_that_made_no_program_faster_do_not_count_but_for_the_next_comparison(store: Store) -> None:
    problem = problems()[0]
    campaign = begin_campaign(store, (problem,))
    run = store.campaign(campaign).runs[0].id
    trial = add(
        store, run, 0, replace(outcome(timed(1e-6), SCRIPT), candidate=GAINED, problem=problem), SCRIPT
    )
    assert [schedule.trial for schedule in found(store, problem)] == [trial]  # nothing is known against it
    store.set_program_result(campaign, result_of(FIRST))
    assert found(store, problem) == []
    assert found(store, problems(rows=4)[0]) == []  # not lent either
    again = fusion_schedules(store, MACHINE, problem, 1, undecided=campaign)
    assert [schedule.trial for schedule in again] == [trial]
    later = store_trial(store, problem, SMALL, 2e-6)
    assert [schedule.trial for schedule in found(store, problem)] == [later]


@pytest.mark.parametrize(("name", "uses"), [("g0", True), ("g1", False), ("g1, g0", True), ("g7", True)])
def test_a_program_uses_a_run_where_one_of_its_fusions_has_the_schedule(name: str, uses: bool) -> None:
    assert result_of(TUNED, FIRST).uses(name) == uses


MATMUL_KNOBS: dict[str, int | str] = {
    **dict.fromkeys(("block_m", "block_n", "block_k", "pack_a", "prefetch", "prefetch_c"), 0),
    "tile_m": 4,
    "tile_n": 16,
    "unroll_k": 2,
    "loop_order": "ji",
    "pack_order": "rows",
    "split": "none",
}
PACKED = Candidate.of("matmul_cpu_packed", MATMUL_KNOBS)


def test_the_matmul_of_two_activations_lends_its_configuration_bound_to_the_fusion(store: Store) -> None:
    (fusion,) = fusion_problems(ACTIVATIONS)
    assert fusion.scheduled_as == Matmul(8, 32, 24)
    store_trial(store, Matmul(8, 32, 24, layout="nt"), PACKED, 1e-9)
    store_trial(store, Matmul(8, 32, 24), PACKED, 1e-9, threads=2)  # its partitions are none of a fusion
    assert found(store, fusion) == []
    trial = store_trial(store, Matmul(8, 32, 24, align="64"), PACKED, 1e-6)
    first = found(store, fusion)[0]
    assert (first.origin, first.trial, first.candidate) == (TUNED, trial, PACKED)
    assert "@the_matmul" in first.script


def test_the_matmul_with_another_epilogue_lends_its_configuration(store: Store) -> None:
    (fusion,) = fusion_problems(ACTIVATIONS)
    trial = store_trial(store, Matmul(8, 32, 24, epilogue="bias"), PACKED, 1e-6)
    (only,) = found(store, fusion)
    assert (only.origin, only.trial, only.candidate) == (SAME_CONTRACTION, trial, PACKED)


@pytest.mark.parametrize("is_fusion_first", [True, False])
def test_a_run_of_a_matmul_begins_with_trials_of_its_program_and_the_reverse(
    store: Store, is_fusion_first: bool
) -> None:
    fusion = replace(fusion_problems(ACTIVATIONS)[0], cache=WEIGHTS_COLD)
    matmul = Matmul(8, 32, 24)
    earlier, later = (fusion, matmul) if is_fusion_first else (matmul, fusion)
    store_trial(store, earlier, PACKED, 1e-6)
    settings = replace(
        SETTINGS, problem=later, strategies=(ChosenStrategy(PACKED.strategy),), warm_start=True
    )
    known = EarlierRuns(store).known_tasks(settings, MACHINE)
    (first,) = warm_points(TuningTask(later, MACHINE, 1), known)
    assert first.candidate == PACKED
    assert is_same_product(later, known[0].task.problem)
    assert not is_same_product(later, Matmul(8, 32, 24, layout="nt"))


def test_a_fusion_of_an_older_version_keeps_its_key_and_its_strategies(store: Store) -> None:
    (fusion,) = fusion_problems(ACTIVATIONS)
    assert isinstance(fusion, FusedProblem)
    older = replace(
        fusion, text=fusion.text.replace('tuner.layout = "nn", ', ""), facts=replace(fusion.facts, layout="")
    )
    assert older.text != fusion.text
    assert older.key != fusion.key
    assert older.scheduled_as == older
    store_trial(store, older, SMALL, 1e-6)
    assert found(store, older)[0].candidate == SMALL
    assert store.runs()[0].settings.problem == older
