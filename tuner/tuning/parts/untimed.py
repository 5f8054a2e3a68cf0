"""The outcomes of a target kind that times nothing: candidates are compiled, and verified in children."""

from collections.abc import Callable
from typing import NoReturn

from tuner.core.errors import TunerError
from tuner.core.machine import Compiler, Machine
from tuner.core.problem import Problem
from tuner.core.target_name import TargetName
from tuner.tuning.outcome_source import BenchChildren, OutcomeSource
from tuner.tuning.parts import strategy_space
from tuner.tuning.parts.child_bench import child_bench


def untimed_outcomes(
    machine: Callable[[TargetName], Machine],
    compiler: Callable[[TargetName], Compiler],
    children: Callable[[TargetName, Problem, int], BenchChildren],
    why: str,
) -> OutcomeSource:
    """Returns the outcomes of a kind whose candidates are verified in ``children`` and not timed.

    A baseline and a roofline raise TunerError with ``why``: the reason that nothing is timed.
    """

    def refuse(*_arguments: object) -> NoReturn:
        raise TunerError(why)

    return OutcomeSource(
        machine=machine,
        compiler=compiler,
        plan=strategy_space.plan,
        bind=strategy_space.bind,
        bench=child_bench(children),
        baseline=refuse,
        roofline=refuse,
        children=children,
        is_timed=lambda: False,
    )
