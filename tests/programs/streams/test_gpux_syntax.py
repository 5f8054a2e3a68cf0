"""Printed GPUX becomes generic form: every form of the RFC, and what is refused."""

import pytest

from tests.texts import text_beside
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

from tuner.mlir.bindings import ir  # noqa: E402
from tuner.mlir.transform import new_context  # noqa: E402
from tuner.programs.streams.gpux_syntax import to_generic  # noqa: E402

S = "!gpux.StreamType"
T = "!gpu.async.token"
M = "memref<8xf32>"
FORMS = [
    ("%s = gpux.create_stream", f'%s = "gpux.create_stream"() : () -> ({S})'),
    (f"%s = gpux.create_stream () : () -> {S}", f'%s = "gpux.create_stream"() : () -> ({S})'),
    (
        f"%s = gpux.create_stream %d, %c : (!gpux.DeviceType, !gpux.ContextType) -> {S}",
        f'%s = "gpux.create_stream"(%d, %c) : (!gpux.DeviceType, !gpux.ContextType) -> ({S})',
    ),
    (f"gpux.stream.destroy(%s) : ({S}) -> ()", f'"gpux.destroy_stream"(%s) : ({S}) -> ()'),
    ("gpux.destroy_stream %s", f'"gpux.destroy_stream"(%s) : ({S}) -> ()'),
    ("gpux.wait %s", f'"gpux.wait"(%s) : ({S}) -> ()'),
    (f"%t = gpux.wait async [%u] (%s) : {S}", f'%t = "gpux.wait"(%u, %s) : ({T}, {S}) -> ({T})'),
    (
        f"%0 = gpux.alloc (%s) : ({S}) -> {M}",
        f'%0 = "gpux.alloc"(%s) {{operandSegmentSizes = array<i32: 0, 1, 0, 0>}} : ({S}) -> ({M})',
    ),
    (
        "%0, %t = gpux.alloc async [%u] host_shared (%s, %n)[%m] {x = 1} : memref<?xf32, #m>",
        (
            '%0, %t = "gpux.alloc"(%u, %s, %n, %m) {hostShared, x = 1, '
            "operandSegmentSizes = array<i32: 1, 1, 1, 1>} : "
            f"({T}, {S}, index, index) -> (memref<?xf32, #m>, {T})"
        ),
    ),
    (f"gpux.dealloc(%s, %0) : ({S}, {M}) -> ()", f'"gpux.dealloc"(%s, %0) : ({S}, {M}) -> ()'),
    (f"gpux.dealloc (%s, %0) : {M}", f'"gpux.dealloc"(%s, %0) : ({S}, {M}) -> ()'),
    (f"gpux.memcpy %s, %0, %1 : {M}, {M}", f'"gpux.memcpy"(%s, %0, %1) : ({S}, {M}, {M}) -> ()'),
    (f"gpux.memset(%s, %0, %v) : {M}, f32", f'"gpux.memset"(%s, %0, %v) : ({S}, {M}, f32) -> ()'),
    (
        f"gpux.launch_func @m::@k blocks in (%a, %b, %c) threads in (%d, %e, %f) args(%s : {S}, %0 : {M})",
        (
            '"gpux.launch_func"(%s, %a, %b, %c, %d, %e, %f, %0) {kernel = @m::@k, '
            "operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 1, 0, 1>} : "
            f"({S}, index, index, index, index, index, index, {M}) -> ()"
        ),
    ),
    (
        (
            "%t = gpux.launch_func async [%u] %s, @m::@k, blocks in (%a, %b, %c) threads in (%d, %e, %f)"
            " dynamic_shared_memory_size %z"
        ),
        (
            '%t = "gpux.launch_func"(%u, %s, %a, %b, %c, %d, %e, %f, %z) {kernel = @m::@k, '
            "operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 0>} : "
            f"({T}, {S}, index, index, index, index, index, index, i32) -> ({T})"
        ),
    ),
]


@pytest.mark.parametrize(("printed", "generic"), FORMS)
def test_a_printed_operation_becomes_generic(printed: str, generic: str) -> None:
    assert to_generic(f"{printed}\n  return") == f"{generic}\n  return"


@pytest.mark.parametrize(("printed", "generic"), FORMS)
def test_what_is_generic_stays(printed: str, generic: str) -> None:
    assert to_generic(generic) == generic


@pytest.mark.parametrize(
    "text",
    [
        '"a gpux.wait %s"',
        "// gpux.wait %s",
        "@gpux.wait",
        "#gpux.wait",
        "!gpux.StreamType",
        "gpux.unknown %s",
    ],
)
def test_strings_comments_names_and_the_unknown_stay(text: str) -> None:
    assert to_generic(text) == text


def test_the_older_prefix_is_known() -> None:
    assert (
        to_generic('"imex.gpux.wait"(%s) : (!imex.gpux.StreamType) -> ()') == f'"gpux.wait"(%s) : ({S}) -> ()'
    )


def test_no_line_moves() -> None:
    launch = "gpux.launch_func @m::@k\n  blocks in (%a,\n %b, %c)\n threads in (%d, %e, %f)"
    text = f"{launch} // why\n// gpux.wait\nfoo"
    lines = to_generic(text).split("\n")
    assert lines[5] == "foo"
    assert lines[4] == "// gpux.wait"


def test_an_operand_is_not_the_result_of_the_next_line() -> None:
    text = to_generic(f"gpux.wait %s\n%0, %t = gpux.alloc async (%s) : {M}\n%1:2 = foo")
    assert text.split("\n")[0] == f'"gpux.wait"(%s) : ({S}) -> ()'


def test_a_whole_function_parses() -> None:
    with new_context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(to_generic(text_beside(__file__, "WHOLE")))
        names = [op.operation.name for op in module.body.operations[0].regions[0].blocks[0].operations]
    found = [name.removeprefix("gpux.") for name in names if name.startswith("gpux.")]
    assert found == ["create_stream", "alloc", "memcpy", "launch_func", "wait", "dealloc", "destroy_stream"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("gpux.alloc (%s", r"line 1:15: GPUX: found the end, allowed '\)'"),
        ("gpux.alloc (%s)", r"line 1:16: GPUX: found the end, allowed ':' and the type of the memref"),
        ("\n  gpux.launch_func k", r"line 2:20: GPUX: found 'k', allowed @module::@kernel"),
        ("gpux.launch_func @m::@k blocks (%a)", r"GPUX: found '\(%a\)', allowed 'in'"),
        ("gpux.launch_func @m::@k blocks in (%a)", r"allowed three sizes of blocks, not 1"),
        (f"gpux.dealloc(%s, %0) : ({S}) -> ()", r"allowed 2 types, one for each operand"),
        ("gpux.wait %s {a", r"found the end, allowed '}'"),
        ("gpux.dealloc %s, %0 : ?", r"found '\?', allowed a type"),
    ],
)
def test_what_breaks_off_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(CandidateError, match=complaint):
        to_generic(text)
