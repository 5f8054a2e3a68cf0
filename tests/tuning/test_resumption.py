from tests.fakes import FakeTarget, candidate, order
from tests.trials import measurement, trial
from tuner.core.interfaces import AbstractSampler, Effort
from tuner.runtime.workers.runner import LocalRunner
from tuner.tuning.events import Interruption
from tuner.tuning.run_steps import ReplayingRunner, ReplayingSampler, bound_record


class NotingSampler(AbstractSampler):
    """Proposes 100, 101, ... and writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def ask(self, number: int) -> int | None:
        self.heard.append(("ask", number))
        return 100 + number

    def tell(self, row: int, value: float | None) -> None:
        self.heard.append(("tell", row, value))

    def replay(self, number: int, row: int) -> None:
        self.heard.append(("replay", number, row))


def test_stored_rows_come_first_and_the_method_hears_of_them() -> None:
    method = NotingSampler()
    sampler = ReplayingSampler(method, (5, 9))
    assert [sampler.ask(number) for number in range(3)] == [5, 9, 102]
    sampler.tell(5, 1.0)
    sampler.replay(7, 3)
    assert method.heard == [
        ("replay", 0, 5),
        ("replay", 1, 9),
        ("ask", 2),
        ("tell", 5, 1.0),
        ("replay", 7, 3),
    ]


def test_stored_outcomes_are_given_without_work() -> None:
    known = bound_record(trial(0, measurement(5.0)))
    inner = LocalRunner(order(), FakeTarget(), FakeTarget(), 0)
    runner = ReplayingRunner(inner, (known, None), Interruption())
    for number, x in enumerate((1, 7, 7)):
        runner.start(number, candidate(x), Effort())
    assert runner.finish() is known
    assert runner.finish().record.median_s == 1e-3
    assert runner.finish().record.median_s == 1e-3
    runner.close()
