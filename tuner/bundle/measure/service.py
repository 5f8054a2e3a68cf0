"""The service of the child process that owns the GPU; a candidate may crash the process."""

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
    """The evaluation of a candidate (verdict and time), and which code ran: CUBIN or PTX."""

    evaluation: Evaluation
    code: str  # CUBIN or PTX


class MeasuringService:
    """The service of the child process that verifies and times GPU programs.

    A cubin that the driver does not load is replaced by the program's PTX.
    """

    def __init__(self, announce: Announce, evaluator: Factory) -> None:
        self._service = EvaluationService(announce, evaluator)

    def evaluate(self, problem: Problem, artifact: Artifact, effort: Effort, seed: int) -> EvaluatedCode:
        """Verifies and times a GPU program; returns its evaluation and which code ran, CUBIN or PTX.

        ``seed`` is that of the inputs. Raises CandidateError where the candidate fails; where neither cubin
        nor PTX can be loaded, it is the error of the cubin.
        """
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

    def remeasure(self, problem: Problem, group: Group, effort: Effort, seed: int) -> FinalTimes:
        """Times the programs of a group interleaved; returns their times in the group's order.

        The time of a program that does not load is None.
        """
        return self._service.remeasure(problem, group, effort, seed)


def gpu_evaluator(chip: str) -> GpuEvaluator:
    """Returns the evaluator that verifies and times programs of ``chip`` on this machine's GPU.

    Of problems above 2**40 flop only a sample of C's rows is compared with the reference.
    """
    return GpuEvaluator(chip, compare=compare_sampled)


def gpu_evaluator_factory(chip: str) -> Factory:
    """Returns a factory with which a child process builds the ``gpu_evaluator`` of ``chip``."""
    return Factory("tuner.bundle.measure.service:gpu_evaluator", (chip,))


def measuring_spec(evaluator: Factory) -> ServiceSpec:
    """Returns the spec of a child process that serves a MeasuringService with the given evaluator."""
    factory = Factory("tuner.bundle.measure.service:MeasuringService", (evaluator,))
    return ServiceSpec("measure", factory, gpu_library_environment(), announces=True)
