import pytest

from tests.fakes import PROBLEM, UntimedTarget, bind, candidate
from tuner.core.interfaces import Artifact, Partition
from tuner.fleet.work import packed, unpacked


@pytest.mark.parametrize("x", [3, 5])
def test_a_program_with_machine_code_comes_back_as_it_was(x: int) -> None:
    artifact = UntimedTarget().compile(PROBLEM, bind(candidate(x)))
    assert artifact.program is not None
    assert unpacked(packed(artifact)) == artifact
    assert packed(unpacked(packed(artifact))) == packed(artifact)  # so equal artifacts have equal hashes


def test_code_of_a_processor_comes_back_as_it_was() -> None:
    artifact = Artifact("llvm.func @f()", "0" * 64, (Partition("f", 0, 0, 8, 8),), (("lower", 0.1),))
    assert unpacked(packed(artifact)) == artifact
