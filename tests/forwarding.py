"""Both ports of a target, forwarded to other targets, to be changed where a test needs that."""

from numpy.random import Generator

from tuner.core.interfaces import AbstractCompiler, AbstractEvaluator, Artifact, Effort, Script
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Verdict


class ForwardingTarget(AbstractCompiler, AbstractEvaluator):
    """Compiles with one target and evaluates with another."""

    def __init__(self, compiler: AbstractCompiler, evaluator: AbstractEvaluator) -> None:
        self._compiler = compiler
        self._evaluator = evaluator

    def compile(self, problem: Problem, script: Script) -> Artifact:
        return self._compiler.compile(problem, script)

    def load(self, problem: Problem, artifact: Artifact) -> object:
        return self._evaluator.load(problem, artifact)

    def verify(self, problem: Problem, loaded: object, rng: Generator) -> Verdict:
        return self._evaluator.verify(problem, loaded, rng)

    def measure(self, problem: Problem, loaded: object, effort: Effort, rng: Generator) -> Measurement:
        return self._evaluator.measure(problem, loaded, effort, rng)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: Generator
    ) -> tuple[Measurement, ...]:
        return self._evaluator.measure_together(problem, loaded, effort, rng)
