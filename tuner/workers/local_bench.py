"""A bench without child processes, for tests, replays and debuggers: a crash ends the tuner."""

import time
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from tuner.core.bench import AbstractBench, BoundRecord, FinalTimes
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.target import AbstractCompiler, AbstractEvaluator, Artifact, Effort, Script
from tuner.workers.evaluation import evaluate, work_seed
from tuner.workers.group_timing import Group, RemeasurementRounds
from tuner.workers.in_flight import BenchOrder, Ticket
from tuner.workers.services import time_together

Value = TypeVar("Value")


class LocalBench(AbstractBench):
    """A bench that compiles and evaluates in this process, one candidate at a time.

    A candidate that crashes ends the tuner.
    """

    def __init__(
        self, order: BenchOrder, compiler: AbstractCompiler, evaluator: AbstractEvaluator, seed: int
    ) -> None:
        self._order = order
        self._compiler = compiler
        self._evaluator = evaluator
        self._seed = seed
        self._finals = RemeasurementRounds(seed, self._recompiled, self._timed)
        self._started: deque[tuple[int, Ticket, Effort]] = deque()

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        """Binds the candidate of trial ``number`` to its script and queues it; compiles nothing yet."""
        self._started.append((number, Ticket(self._order, candidate), effort))

    def finish(self) -> BoundRecord:
        """Compiles and evaluates the earliest started candidate; returns its record.

        A candidate whose outcome is known by now is not compiled or evaluated again.
        """
        number, ticket, effort = self._started.popleft()
        ticket.recall_script()
        if ticket.record is None:
            ticket.take_compiled(*_attempt(Stage.COMPILE, lambda: self._compile(ticket.script)))
        if ticket.record is None and (artifact := ticket.artifact) is not None:
            problem, rng = self._order.problem, np.random.default_rng(work_seed(self._seed, number))
            ticket.take_evaluation(
                *_attempt(Stage.RUN, lambda: evaluate(self._evaluator, problem, artifact, effort, rng))
            )
        return ticket.finished

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Times the top-k trials again, interleaved, in this process, with the baseline where it works.

        Compiles scripts without an artifact first. One time per trial; None: the trial no longer works.
        """
        return self._finals.times(top_trials, effort)

    def close(self) -> None:
        """Drops the candidates that are started and not finished; there are no processes to end."""
        self._started.clear()

    def _compile(self, script: Script) -> Artifact:
        return self._compiler.compile(self._order.problem, script)

    def _recompiled(self, scripts: tuple[Script, ...]) -> list[Artifact | Failure]:
        return [_attempt(Stage.COMPILE, partial(self._compile, script))[0] for script in scripts]

    def _timed(
        self, group: Group, effort: Effort, seed: int, _slowest_s: float | None
    ) -> FinalTimes | Failure:
        asked = (self._evaluator, self._order.problem, group, effort, np.random.default_rng(seed))
        return _attempt(Stage.RUN, partial(time_together, *asked))[0]


def _attempt(stage: Stage, work: Callable[[], Value]) -> tuple[Value | Failure, float]:
    """Returns the result of ``work``, or its Failure, and the seconds it took."""
    start = time.perf_counter()
    try:
        return work(), time.perf_counter() - start
    except CandidateError as error:
        return error.failure, time.perf_counter() - start
    except Exception as error:  # noqa: BLE001 - as in a child: one odd candidate is only a Failure
        line = traceback.format_exception_only(error)[0].splitlines()[0]
        return Failure(stage, line), time.perf_counter() - start
