import numpy as np
import pytest

from benchmarks.search import replay_run
from benchmarks.search.replay_run import replay
from benchmarks.search.replay_space import ReplaySpace
from tests.search.tasks import line
from tuner.core.interfaces import AbstractSampler
from tuner.space.feasible_set import FeasibleSet


def test_the_best_so_far_is_kept_and_a_failure_is_an_evaluation() -> None:
    times = np.array([np.nan, 3.0, 5.0, np.nan, 2.0])
    space = ReplaySpace("s", FeasibleSet.of((line(5),)), times)
    done = replay(space, "exhaustive", seed=0, evaluations=9)
    assert done.found_s == pytest.approx([np.inf, 3, 3, 3, 2])
    assert done.evaluations == done.asks == 5
    assert done.ask_s > 0


class Heard(AbstractSampler):
    """Asks for row after row, and keeps what it was told before each."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.known: list[tuple[int, ...]] = []  # by trial

    def ask(self, number: int) -> int:
        self.known.append(tuple(self.told))
        return number

    def tell(self, row: int, value: float | None) -> None:
        self.told.append(row)

    def replay(self, number: int, row: int) -> None: ...


@pytest.mark.parametrize(
    ("pending", "known"),
    [(1, [(), (0,), (0, 1), (0, 1, 2)]), (3, [(), (), (), (0,)]), (9, [(), (), (), ()])],
)
def test_outcomes_of_pending_trials_are_not_reported(
    pending: int, known: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    monkeypatch.setattr(replay_run, "make_sampler", lambda *_: heard)
    space = ReplaySpace("s", FeasibleSet.of((line(4),)), np.array([4.0, 3.0, 2.0, 1.0]))
    done = replay(space, "exhaustive", seed=0, evaluations=4, pending=pending)
    assert heard.known == known
    assert done.found_s == pytest.approx([4, 3, 2, 1])
