import numpy as np
import pytest

from tests.targets.cpu.dishonest_kernels import dishonest_code
from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Matmul, Problem
from tuner.core.target import Artifact
from tuner.payload.cpu import partition
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.cpu.evaluator import CpuEvaluator, LoadedKernel
from tuner.targets.cpu.watched_samples import WatchedSamples
from tuner.targets.problem_arrays import ProblemArrays

pytestmark = pytest.mark.mlir

PROBLEM = Matmul(5, 16, 8)


def watched(name: str, problem: Problem = PROBLEM) -> WatchedSamples:
    """Times a kernel by a clock that goes on by a second with each look."""
    artifact = Artifact(dishonest_code(name, problem), name, partition(problem, 1, "none", 1))
    kernel = CpuEvaluator(1).load(problem, artifact)
    assert isinstance(kernel, LoadedKernel)
    rng = np.random.default_rng(0)
    arrays = ProblemArrays(problem, rng)
    looks = [0.0]

    def clock() -> float:
        looks.append(looks[-1] + 1.0)
        return looks[-1]

    return WatchedSamples(ThreadTeam(1), kernel.calls(problem, arrays.operands), arrays, rng, clock)


def test_a_sample_is_the_time_of_its_calls_and_of_nothing_beside() -> None:
    take = watched("honest")
    assert [take(1) for _ in range(30)] == [1.0] * 30


def test_the_number_of_calls_is_not_foreseen() -> None:
    take = watched("honest")
    assert len({take(1000) for _ in range(5)}) > 1


def test_a_kernel_that_leaves_c_as_it_is_is_seen_in_any_call() -> None:
    take = watched("filled_is_done")
    with pytest.raises(
        CandidateError, match=r"^left an element of C unwritten in \d+ of \d+ calls$"
    ) as caught:
        take(1000)
    assert caught.value.stage == Stage.VERIFY


def test_a_result_that_is_wrong_after_many_samples_is_seen() -> None:
    take = watched("wrong_from_15")
    for _ in range(5):
        take(1)
    with pytest.raises(CandidateError, match=r"^1 of 80 elements are wrong"):
        take(20)
