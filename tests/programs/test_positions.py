import pytest

from tuner.core.errors import CandidateError, Stage, TunerError, UsageError
from tuner.programs.positions import in_file, named_in_errors


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("gpu.alloc at line 8:3: found X, allowed Y", "f.mlir:8:3: gpu.alloc: found X, allowed Y"),
        ("payload: error: line 20:15: found a.b of dialect a", "f.mlir:20:15: found a.b of dialect a"),
        ("program: payload: found a call (at line 1:2), allowed 0", "f.mlir:1:2: found a call, allowed 0"),
        ("payload: entry: found 'x', allowed main", "f.mlir: payload: entry: found 'x', allowed main"),
        ("program: killed by SIGSEGV", "f.mlir: killed by SIGSEGV"),
        ("line 73: ld.global: out of bounds", "f.mlir: line 73: ld.global: out of bounds"),  # of PTX
        ("op at line 4:5: found one at line 3:1", "f.mlir:4:5: op: found one at line 3:1"),
    ],
)  # fmt: skip
def test_a_message_begins_with_the_file_and_the_place_in_it(reason: str, expected: str) -> None:
    assert in_file(reason, "f.mlir") == expected


@pytest.mark.parametrize("kind", [UsageError, TunerError])
def test_errors_stay_of_their_kind(kind: type[TunerError]) -> None:
    with pytest.raises(kind, match=r"f\.mlir:1:2: no") as caught, named_in_errors("f.mlir"):
        raise kind("line 1:2: no")
    assert type(caught.value) is kind
    with pytest.raises(CandidateError, match=r"f\.mlir: no") as failed, named_in_errors("f.mlir"):
        raise CandidateError(Stage.LOAD, "no")
    assert failed.value.stage is Stage.LOAD
