"""What the child process of a measuring serves: it owns the GPU, and may be lost with a candidate."""

from dataclasses import dataclass, replace

from tuner.core.bench import FinalTimes
from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Problem
from tuner.core.remote_results import CUBIN, PTX
from tuner.core.target import Artifact, Effort
from tuner.payload.sampled_reference import compare_sampled
from tuner.targets.gpu.evaluator import GpuEvaluator
from tuner.workers.evaluation import Evaluation
from tuner.workers.group_timing import Group
from tuner.workers.library_environment import gpu_library_environment
from tuner.workers.protocol import Factory, ServiceSpec
from tuner.workers.services import Announce, EvaluationService


@dataclass(frozen=True)
class EvaluatedCode:
    """A verdict with its time, and which code ran."""

    evaluation: Evaluation
    code: str  # CUBIN or PTX


class MeasuringService:
    """Verifies and times programs; machine code that the driver does not take is replaced by its PTX."""

    def __init__(self, announce: Announce, evaluator: Factory) -> None:
        self._service = EvaluationService(announce, evaluator)

    def evaluate(self, problem: Problem, artifact: Artifact, effort: Effort, seed: int) -> EvaluatedCode:
        """Returns verdict and time. Raises CandidateError; that of the machine code if neither is taken."""
        program = artifact.program
        assert program is not None
        try:
            evaluation = self._service.evaluate(problem, artifact, effort, seed)
            return EvaluatedCode(evaluation, CUBIN if program.cubin else PTX)
        except CandidateError as error:
            if error.stage is not Stage.LOAD or not program.cubin or not program.ptx:
                raise
            refused = error
        try:
            bare = replace(artifact, program=replace(program, cubin=b""))
            return EvaluatedCode(self._service.evaluate(problem, bare, effort, seed), PTX)
        except CandidateError as error:
            raise (refused if error.stage is Stage.LOAD else error) from error

    def finals(self, problem: Problem, group: Group, effort: Effort, seed: int) -> FinalTimes:
        """Times a group interleaved; None for a program that does not load."""
        return self._service.finals(problem, group, effort, seed)


def gpu_evaluator(chip: str) -> GpuEvaluator:
    """Returns the evaluator of the GPU here; problems too large for that are compared by rows."""
    return GpuEvaluator(chip, compare=compare_sampled)


def gpu_evaluator_factory(chip: str) -> Factory:
    """Describes the evaluator of the GPU here, of a chip."""
    return Factory("tuner.bundle.measure.service:gpu_evaluator", (chip,))


def measuring_spec(evaluator: Factory) -> ServiceSpec:
    """Describes a child that measures with the evaluator that the factory builds."""
    factory = Factory("tuner.bundle.measure.service:MeasuringService", (evaluator,))
    return ServiceSpec("measure", factory, gpu_library_environment(), announces=True)
