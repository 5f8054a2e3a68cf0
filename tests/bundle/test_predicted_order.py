import pytest

from tests.bundle.values import pending
from tuner.bundle import predicted_order
from tuner.bundle.predicted_order import predicted_first
from tuner.core.kernel_program import KernelProgram
from tuner.core.pending_trial import PendingTrial
from tuner.core.problem import Problem
from tuner.targets.gpu.machine_code.prediction import PredictedCycles


def numbers(trials: tuple[PendingTrial, ...]) -> list[int]:
    return [trial.origin.number for trial in trials]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[KernelProgram]:
    """Lets each program that is looked at be predicted cheaper than the one before."""
    seen: list[KernelProgram] = []

    def cheaper(_problem: Problem, program: KernelProgram) -> PredictedCycles:
        seen.append(program)
        return PredictedCycles(100.0 - len(seen), None)

    monkeypatch.setattr(predicted_order, "predicted", cheaper)
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
