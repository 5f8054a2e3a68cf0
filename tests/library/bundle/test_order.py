"""Which pending trials come first: what promises most, what is predicted to cost least."""

import re

import pytest

from tests.library.bundle.values import PROBLEM, pending, program
from tuner.core.gpu_code import KernelProgram
from tuner.core.problem import Matmul, Problem
from tuner.core.remote_results import PendingTrial
from tuner.library.bundle import exchange
from tuner.library.bundle.archive import best_first, deciding_facts, promise
from tuner.library.bundle.exchange import predicted_first
from tuner.targets.gpu.cycle_model import PredictedCycles

LARGE = Matmul(4096, 4096, 4096)
SLOW = "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ..."
HALF = Matmul(4096, 4096, 4096, dtype="f16")


@pytest.mark.parametrize(
    ("problem", "better", "worse"),
    [
        (HALF, program("mma.sync.aligned", blocks=4096), program("fma.rn.f32", blocks=264)),
        (HALF, program("wgmma.mma_async.sync", blocks=4096), program("fma.rn.f32", blocks=264)),
        (HALF, program("wgmma.mma_async", blocks=4096), program("wgmma.mma_async", blocks=264, note=SLOW)),
        (LARGE, program(blocks=4096), program(blocks=264, spills=4)),
        (LARGE, program(blocks=4096, spills=8), program(blocks=264, spills=400)),
        (LARGE, program(blocks=264), program(blocks=528)),  # whole waves both: larger tiles read less
        (LARGE, program(blocks=528), program(blocks=265)),  # a wave for one block
        (LARGE, program(blocks=1024), program(blocks=4)),  # four blocks leave most of the GPU idle
    ],
)
def test_what_promises_more_comes_first(
    problem: Problem, better: KernelProgram, worse: KernelProgram
) -> None:
    assert promise(problem, better, 132) < promise(problem, worse, 132)
    ordered = best_first((pending(0, problem, worse), pending(1, problem, better)))
    assert [trial.origin.number for trial in ordered] == [1, 0]


def test_problems_stay_together_in_the_order_they_came() -> None:
    trials = (pending(0, LARGE), pending(1, PROBLEM), pending(2, LARGE), pending(3, PROBLEM))
    assert [trial.origin.number for trial in best_first(trials)] == [0, 2, 1, 3]


def test_what_is_compared_is_said_in_words() -> None:
    facts = deciding_facts(pending(0, HALF, program("fma.rn.f32", blocks=264, spills=4)), 132)
    assert facts.startswith("tensor cores idle, 4 bytes spilled, 264 blocks for ")
    assert re.search(r"places, relative reads [\d.]+, occupancy \d+%$", facts)


def test_equal_promises_keep_their_numbers_order() -> None:
    assert [trial.origin.number for trial in best_first((pending(5), pending(3)))] == [3, 5]


def test_the_order_depends_on_how_many_multiprocessors_there_are() -> None:
    many, few = program(blocks=264), program(blocks=200)
    assert promise(LARGE, many, 132) < promise(LARGE, few, 132)
    assert promise(LARGE, few, 100) < promise(LARGE, many, 100)


def numbers(trials: tuple[PendingTrial, ...]) -> list[int]:
    return [trial.origin.number for trial in trials]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[KernelProgram]:
    """Lets each program that is looked at be predicted cheaper than the one before."""
    seen: list[KernelProgram] = []

    def cheaper(_problem: Problem, program: KernelProgram) -> PredictedCycles:
        seen.append(program)
        return PredictedCycles(100.0 - len(seen), None)

    monkeypatch.setattr(exchange, "predicted", cheaper)
    return seen


def test_what_is_predicted_to_cost_least_comes_first(looked_at: list[KernelProgram]) -> None:
    found = predicted_first((pending(0), pending(1), pending(2)))
    assert numbers(found) == [2, 1, 0]
    assert [trial.predicted_cycles for trial in found] == [97.0, 98.0, 99.0]
    assert len(looked_at) == 3


def test_few_of_many_are_looked_at_and_the_others_come_after(looked_at: list[KernelProgram]) -> None:
    assert numbers(predicted_first((pending(number) for number in range(4)), looked_at=2)) == [1, 0, 2, 3]
    assert len(looked_at) == 2


def test_what_cannot_be_looked_at_is_not_left_out() -> None:
    found = predicted_first((pending(1), pending(0)))  # their cubin is none
    assert numbers(found) == [0, 1]
    assert [trial.predicted_cycles for trial in found] == [None, None]
