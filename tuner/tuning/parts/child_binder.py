"""Binds candidates; those of a user's custom templates in a child process, since templates may hang."""

import weakref
from typing import final

from tuner.core.candidate import Candidate, Value
from tuner.core.chosen_strategy import ChosenStrategy
from tuner.core.errors import Stage
from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.scripts.strategy import Binder, load_strategy
from tuner.tuning.outcome_source import Bind
from tuner.workers.protocol import CALL, ServiceSpec
from tuner.workers.worker import Worker

TIMEOUT_S = 10.0  # per candidate; a shipped template takes milliseconds
MEMORY_BYTES = 1 << 30


def binding(
    chosen: tuple[ChosenStrategy, ...],
    problem: Problem,
    variables: tuple[tuple[str, Value], ...],  # sizes and device limits
    threads: int,
    timeout_s: float = TIMEOUT_S,
) -> Bind:
    """Returns a function that binds candidates: it fills their knob values into their strategy's script.

    Args:
        chosen: The strategies.
        problem: The problem to bind for.
        variables: Names and values of sizes and device limits, which templates may use.
        threads: Threads of the kernel.
        timeout_s: Limit per candidate, for custom templates.

    A template is a program that need not terminate: custom templates are bound in a child process, under
    limits. Raises UsageError for a script that cannot be read.
    """
    strategies = tuple(load_strategy(one.name, one.path) for one in chosen)
    here = Binder(strategies, problem, variables, threads)
    foreign = tuple(
        strategy
        for one, strategy in zip(chosen, strategies, strict=True)
        if one.path is not None and strategy.is_template
    )
    if not foreign:
        return here.bind
    names = {strategy.name for strategy in foreign}
    there = ChildBinder(Binder(foreign, problem, variables, threads), timeout_s)
    return lambda candidate: (there if candidate.strategy in names else here).bind(candidate)


@final
class ChildBinder:
    """Binds candidates in a child process, which starts at the first candidate and ends with this object.

    To bind is to fill a candidate's knob values into its strategy's script.
    """

    def __init__(self, binder: Binder, timeout_s: float) -> None:
        self.worker = Worker(ServiceSpec("bind", binder.bind), MEMORY_BYTES)
        self._timeout_s = timeout_s
        weakref.finalize(self, self.worker.kill)

    def bind(self, candidate: Candidate) -> Script:
        """Returns the transform script of a candidate as plain MLIR text, with its knob values filled in.

        Raises CandidateError of stage BIND, also where a template exceeds its limit of time or memory.
        """
        script: Script = self.worker.call(CALL, candidate, stage=Stage.BIND, timeout_s=self._timeout_s)
        return script
