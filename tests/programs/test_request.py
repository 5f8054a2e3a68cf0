from typing import Any

import pytest

from tuner.core.errors import CandidateError, Stage, TunerError, UsageError
from tuner.programs.request import DeviceOptions, in_file, named_in_errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "async"}, r"^form: found 'async', allowed streams, tokens, sync$"),
        ({"max_streams": 0}, r"^max_streams: found 0, allowed 1 and more$"),
    ],
)
def test_unknown_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        DeviceOptions(**options)


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
    with pytest.raises(kind, match=r"f\.mlir:1:2: no") as caught, named_in_errors("f.mlir", ""):
        raise kind("line 1:2: no")
    assert type(caught.value) is kind
    with pytest.raises(CandidateError, match=r"f\.mlir: no") as failed, named_in_errors("f.mlir", ""):
        raise CandidateError(Stage.LOAD, "no")
    assert failed.value.stage is Stage.LOAD


TEXT = """func.func @f(%x: memref<4xf32>) {
  %v = memref.load %x[%c9] : memref<4xf32>
  "my.op"(%v) : (f32) -> ()
  call @g() : () -> ()
"""


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("kernel k: ld (at line 2:8): out of bounds", "f.mlir:2:8: memref.load: kernel k: ld: out of bounds"),
        ("memref.load at line 2:8: found X", "f.mlir:2:8: memref.load: found X"),  # it is named already
        ("line 3:3: unknown", "f.mlir:3:3: my.op: unknown"),
        ("line 4:3: no body", "f.mlir:4:3: call: no body"),
        ("line 9:1: unknown", "f.mlir:9:1: unknown"),
        ("line 2:3: unknown", "f.mlir:2:3: unknown"),  # a value begins there
    ],
)
def test_the_operation_at_the_place_is_named(reason: str, expected: str) -> None:
    assert in_file(reason, "f.mlir", TEXT) == expected
