"""The fusions of a program that can be tuned: a strategy supports them, and their results can be verified."""

from dataclasses import dataclass, replace

import numpy as np

from tuner.core import fusions
from tuner.core.errors import CandidateError, Refusal, UsageError
from tuner.core.machine import Machine
from tuner.core.problem import NamedProblem, Problem, distinct_problems
from tuner.core.problem_classes import TextProblem
from tuner.space.scripts.choice import why_no_strategy
from tuner.tuning.pretuned import initial_configuration


@dataclass(frozen=True)
class TunableFusions:
    """The distinct fusions of a program as tuning problems, with their names in the program: "g0", "g1"."""

    problems: tuple[NamedProblem, ...] = ()
    left_out: tuple[str, ...] = ()  # a line for each fusion that is not tuned, with the reason
    why_none: str = ""  # why the program is not compiled as fusions; "" if it is
    divided: tuple[Problem, ...] = ()  # those that the program divides among its threads; others run on one
    seconds: float = 0.0  # that finding the fusions took

    def threads_of(self, problem: Problem, threads: int) -> int:
        """Returns how many of a program's ``threads`` compute the fusion ``problem``: all of them, or 1."""
        if problem in self.divided:
            return threads
        return 1


def tunable_fusions(
    text: str, entry: str | None, cache: str, machine: Machine, threads: int = 1
) -> TunableFusions:
    """Returns the fusions of a payload that a strategy supports and whose results can be verified.

    Args:
        text: the payload, MLIR text.
        entry: the function; None: ``main``, or the only public function.
        cache: state of the CPU caches in which fusions are to be timed, one of ``tuner.core.problem.CACHES``.
        machine: the CPU.
        threads: how many threads the program may use.

    Raises CandidateError(BIND) for text that does not parse.
    """
    from tuner.models.fusion_compiler import threads_of  # loads MLIR
    from tuner.models.fusions.payload import NotFused  # loads MLIR
    from tuner.models.fusions.pipeline import fuse_program  # loads MLIR

    formed = fuse_program(
        text,
        entry,
        multiplies_pairs=machine.multiplies_pairs,
        multiplies_bytes=machine.multiplies_bytes,
    )
    if isinstance(formed, NotFused):
        return TunableFusions(why_none=formed.reason)
    known: dict[tuple[str, str], TextProblem | Refusal] = {}  # by kind and text of a fusion
    problems: list[NamedProblem] = []
    left_out: list[str] = []
    divided: dict[Problem, None] = {}
    for index, fusion in enumerate(formed.program.fusions):
        key = (fusion.kind, fusion.text)
        if key not in known:
            known[key] = _problem_of(fusion, machine)
        problem = known[key]
        name = f"g{index}"
        if isinstance(problem, Problem):
            problems.append(NamedProblem(replace(problem, cache=cache), name))
            if threads_of(fusion, problem, threads) > 1:
                divided[problems[-1].problem] = None
        else:
            left_out.append(f"{name} {', '.join(dict.fromkeys(fusion.ops))}: {problem.text}")
    return TunableFusions(distinct_problems(tuple(problems)), tuple(left_out), divided=tuple(divided))


def _problem_of(fusion: fusions.Fusion, machine: Machine) -> TextProblem | Refusal:
    from tuner.mlir.fusions.facts import fusion_problem  # loads MLIR
    from tuner.targets.cpu.fusion_draws import FusionDraws  # loads MLIR

    if fusion.kind == fusions.LOOPS:
        return Refusal(fusion.reason)
    try:
        problem = fusion_problem(fusion)
        if initial_configuration(problem, machine) is None:
            return Refusal(why_no_strategy(problem, machine))
        FusionDraws(problem, np.random.default_rng(0))  # raises where results cannot be verified
    except (UsageError, CandidateError) as error:
        return Refusal(str(error))
    return problem
