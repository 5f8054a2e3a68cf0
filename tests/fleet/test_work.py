import json

import pytest

from tests.fakes import PROBLEM, UntimedTarget, bind, candidate
from tests.fleet.values import work
from tuner.core.errors import UsageError
from tuner.core.interfaces import Artifact, Effort, Partition
from tuner.core.machine import Compiler
from tuner.fleet.work import (
    EVALUATE,
    compile_queue,
    compiler_build_of,
    measure_queue,
    packed,
    to_json,
    unpacked,
    work_from_json,
)


def test_work_crosses_as_json() -> None:
    asked = work("r", 3, blobs=("a", "b"), effort=Effort(stop_above_s=0.1), slowest_s=None)
    assert work_from_json(json.loads(json.dumps(to_json(asked)))) == asked
    assert asked.key == ("r", 3, "compile")


def test_what_another_version_wrote_is_refused() -> None:
    with pytest.raises(UsageError, match=r"work\.number: missing"):
        work_from_json({"run": "r"})


def test_queues_are_of_what_makes_code_and_of_a_device() -> None:
    first, second = (compiler_build_of(Compiler("LLVM", (("wheel", version),), "0" * 64)) for version in "12")
    assert compile_queue(first) != compile_queue(second)
    assert measure_queue("h200", "a") != measure_queue("h200", "b") != measure_queue("a100", "b")
    assert len(measure_queue("h200" * 100, "a" * 500)) < 128  # what the engine takes


def test_people_are_reported_of_trials_by_number() -> None:
    assert work("run", 7).words == "compile of trial 7"
    assert work("run", -2, EVALUATE).words == "evaluate"


@pytest.mark.parametrize("x", [3, 5])
def test_a_program_with_machine_code_comes_back_as_it_was(x: int) -> None:
    artifact = UntimedTarget().compile(PROBLEM, bind(candidate(x)))
    assert artifact.program is not None
    assert unpacked(packed(artifact)) == artifact
    assert packed(unpacked(packed(artifact))) == packed(artifact)  # so equal artifacts have equal hashes


def test_code_of_a_processor_comes_back_as_it_was() -> None:
    artifact = Artifact("llvm.func @f()", "0" * 64, (Partition("f", 0, 0, 8, 8),), (("lower", 0.1),))
    assert unpacked(packed(artifact)) == artifact
