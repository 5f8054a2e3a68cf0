from collections.abc import Callable

import pytest

from tests.programs.file_check import require
from tests.programs.lowering.device_programs import KERNELS, host_text
from tests.texts import text_beside
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir
gpux = pytest.importorskip("tuner.programs.streams.gpux")
gpux_ops = pytest.importorskip("tuner.programs.streams.gpux_ops")
bindings = pytest.importorskip("tuner.mlir.bindings")
interpreter = pytest.importorskip("tuner.mlir.transform")
STREAM, BUFFER = "!gpux.StreamType", "memref<16xf32>"
CREATE = f'%s = "gpux.create_stream"() : () -> {STREAM}'
WAIT = f'"gpux.wait"(%s) : ({STREAM}) -> ()'
DESTROY = f'"gpux.destroy_stream"(%s) : ({STREAM}) -> ()'
# the second spelling is that of properties, which mlir-extensions prints; the third is from before 2023
ALLOC = f'%d = "gpux.alloc"(%s) {{operandSegmentSizes = array<i32: 0, 1, 0, 0>}} : ({STREAM}) -> {BUFFER}'
ALLOCS = (
    ALLOC,
    ALLOC.replace("{", "<{").replace("}", "}>"),
    ALLOC.replace("operandSegmentSizes", "operand_segment_sizes"),
    f'%d = "gpux.alloc"(%s) : ({STREAM}) -> {BUFFER}',
)
FREE = f'"gpux.dealloc"(%s, %d) : ({STREAM}, {BUFFER}) -> ()'
LAUNCH = (
    '"gpux.launch_func"(%s, %c1, %c1, %c1, %c16, %c1, %c1, %d) {kernel = @m::@inc,'
    " operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 1, 0, 1>}"
    f" : ({STREAM}, index, index, index, index, index, index, {BUFFER}) -> ()"
)


def copy(target: str, source: str) -> str:
    return f'"gpux.memcpy"(%s, {target}, {source}) : ({STREAM}, {BUFFER}, {BUFFER}) -> ()'


def program(*lines: str, arguments: str = f"%a: {BUFFER}") -> str:
    text = "\n".join(f"    {line}" for line in lines)
    return f"""module attributes {{gpu.container_module}} {{
  func.func @main({arguments}) {{
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
{text}
    return
  }}
{KERNELS}}}
"""


WORK = (ALLOC, copy("%d", "%a"), LAUNCH, copy("%a", "%d"), FREE)
OWN_STREAM = program(CREATE, *WORK, WAIT, DESTROY)
CALLERS_STREAM = program(*WORK, WAIT, arguments=f"%s: {STREAM}, %a: {BUFFER}")


def lowered(text: str) -> tuple[str, int]:
    """Returns the host's text, and how many streams it takes."""
    with interpreter.new_context() as context, bindings.ir.Location.unknown():
        module = gpux_ops.parse_with_gpux(text, "test")
        function = next(op.operation for op in module.body.operations if op.operation.name == "func.func")
        assert gpux_ops.uses_gpux(function)
        gpux.take_stream_from_caller(function)
        count = gpux.lower_gpux(function)
        assert not context.allow_unregistered_dialects
        assert module.operation.verify()
        return host_text(module), count


def test_a_stream_of_its_own_is_a_second_one_next_to_the_callers(golden: Callable[[str, str], None]) -> None:
    text, count = lowered(OWN_STREAM)
    golden("gpux_own_stream.mlir", text)
    assert count == 2


def test_a_stream_that_is_an_argument_is_the_callers(golden: Callable[[str, str], None]) -> None:
    text, count = lowered(CALLERS_STREAM)
    golden("gpux_callers_stream.mlir", text)
    assert count == 1


@pytest.mark.parametrize("alloc", ALLOCS)
def test_all_spellings_of_segments_are_taken(alloc: str) -> None:
    assert "gpu.alloc async [%1] () : memref<16xf32>" in lowered(program(CREATE, alloc, FREE, DESTROY))[0]


def test_sizes_known_at_run_time_stay_operands() -> None:
    alloc = f'%d = "gpux.alloc"(%s, %n) {{operandSegmentSizes = array<i32: 0, 1, 1, 0>}} : ({STREAM}, index)'
    text = program(CREATE, f"{alloc} -> memref<?xf32>", DESTROY, arguments="%n: index")
    assert "gpu.alloc async [%1] (%arg0) : memref<?xf32>" in lowered(text)[0]


def test_memory_shared_with_the_host_is_allocated_at_once() -> None:
    alloc = ALLOC.replace("{operand", "{hostShared, operand")
    assert "= gpu.alloc  host_shared () : memref<16xf32>" in lowered(program(CREATE, alloc, FREE, DESTROY))[0]


def test_a_fill_and_shared_memory_of_a_launch() -> None:
    fill = f'"gpux.memset"(%s, %a, %x) : ({STREAM}, {BUFFER}, f32) -> ()'
    launch = LAUNCH.replace("%c1, %d", "%c1, %bytes, %d").replace("1, 0, 1>", "1, 1, 1>")
    launch = launch.replace(f"index, {BUFFER}", f"index, i32, {BUFFER}")
    text = lowered(
        program(
            *(CREATE, "%x = arith.constant 0.0 : f32", "%bytes = arith.constant 64 : i32"),
            *(ALLOC, fill, launch, FREE, DESTROY),
        )
    )[0]
    assert "gpu.memset async [%1] %arg0, %cst : memref<16xf32>, f32" in text
    assert "dynamic_shared_memory_size %c64_i32 args(%memref : memref<16xf32>)" in text


def test_a_stream_is_joined_unless_the_host_has_waited_for_it_last() -> None:
    assert lowered(program(CREATE, *WORK, WAIT, DESTROY))[0].count("call @mgpuEventRecord") == 1
    assert lowered(program(CREATE, *WORK, DESTROY))[0].count("call @mgpuEventRecord") == 2
    assert lowered(program(CREATE, *WORK[:-1], WAIT, FREE, DESTROY))[0].count("call @mgpuEventRecord") == 2


def test_a_stream_that_is_never_destroyed_is_joined_at_the_end() -> None:
    lines = lowered(program(CREATE, *WORK))[0].splitlines()
    end = lines.index("    return")
    assert "@mgpuStreamWaitEvent(%arg1, %" in lines[end - 2]


def test_a_stream_without_work_is_none() -> None:
    assert lowered(program(CREATE, DESTROY))[1] == 1


@pytest.mark.parametrize(
    ("lines", "arguments", "reason"),
    [
        (('"gpux.fly"() : () -> ()',), "", r"gpux\.fly at .*: found gpux\.fly, allowed gpux\.alloc, "),
        (
            (f'%s = "gpux.create_stream"(%x) : (index) -> {STREAM}',),
            "%x: index",
            r"gpux\.create_stream at .*: found an operand of type index, allowed !gpux\.DeviceType and ",
        ),
        ((f'"gpux.wait"(%a) : ({BUFFER}) -> ()',), f"%a: {BUFFER}", r"found no stream as first operand"),
        (
            (CREATE, f'"gpux.memcpy"(%s, %a) : ({STREAM}, {BUFFER}) -> ()'),
            f"%a: {BUFFER}",
            r"gpux\.memcpy at .*: found 1 operands after the stream, allowed those of gpu\.memcpy",
        ),
        (
            (
                CREATE,
                "%d = memref.alloc() : memref<16xf32>",
                LAUNCH.replace("0, 1, 1, 1, 1,", "1, 1, 1, 1, 1,"),
            ),
            "",
            r"found operandSegmentSizes = \[1, 1, .*\], allowed 0, 1 and 8 more",
        ),
        (
            (CREATE, "%d = memref.alloc() : memref<16xf32>", LAUNCH.replace("operandSegmentSizes", "sizes")),
            "",
            r"found no operandSegmentSizes, allowed 0, 1 and 8 more",
        ),
        (
            ("gpux.memset %s, %b, %x : memref<16xi8>, i8",),
            f"%s: {STREAM}, %b: memref<16xi8>, %x: i8",
            r"gpux\.memset at .*: found a fill of memref<16xi8>, allowed whole memory of 16 or 32 bits",
        ),
        (
            (f'%s = "test.stream"() : () -> {STREAM}', WAIT),
            "",
            r"test\.stream at .*: found a stream that it gives, allowed streams of gpux\.create_stream",
        ),
        (
            (CREATE, DESTROY, WAIT),
            "",
            r"gpux\.wait at .*: found a stream that is destroyed before, allowed one that is still there",
        ),
    ],
)
def test_what_is_no_gpux_is_refused(lines: tuple[str, ...], arguments: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason):
        lowered(program(*lines, arguments=arguments))


def test_streams_as_further_arguments_are_the_programs_own() -> None:
    text, count = lowered(program(*WORK, arguments=f"%r: {STREAM}, %a: {BUFFER}, %s: {STREAM}"))
    assert count == 2
    assert "func.func @main(%arg0: memref<16xf32>, %arg1: !llvm.ptr, %arg2: !llvm.ptr)" in text
    lines = text.splitlines()
    assert "@mgpuStreamWaitEvent(%arg1, %" in lines[lines.index("    return") - 2]


def test_a_stream_that_control_flow_chooses_is_a_pointer() -> None:
    other, choice = CREATE.replace("%s", "%r"), f"%u = arith.select %x, %r, %s : {STREAM}"
    work = [line.replace("%s", "%u") for line in (*WORK, WAIT, DESTROY)]
    text, count = lowered(program(other, CREATE, choice, *work, arguments=f"%x: i1, %a: {BUFFER}"))
    assert count == 3
    assert "arith.select %arg0, %arg3, %arg4 : !llvm.ptr" in text
    assert "call @mgpuStreamSynchronize(%" in text
    lines = text.splitlines()
    joins = [line for line in lines if "@mgpuStreamWaitEvent(%arg2, %" in line]
    assert len(joins) >= 2  # both are joined where the function ends: any of them may have had work


def test_the_device_and_the_context_are_the_programs_own() -> None:
    device = '%v = "gpux.create_device"() : () -> !gpux.DeviceType'
    of_device = f'%s = "gpux.create_stream"(%v) : (!gpux.DeviceType) -> {STREAM}'
    text, count = lowered(program(device, of_device, *WORK, WAIT, DESTROY))
    assert count == 2
    assert "Device" not in text


# Tokens of GPUX: what order they become, and which are refused.

M = "memref<16xf32>"


def gpux_tokens_lowered(*lines: str, arguments: str = "") -> list[str]:
    """Returns the lines of a function between its constants and its return."""
    text = "\n".join(lines)
    streams = f"%s: !gpux.StreamType, %r: !gpux.StreamType, %a: {M}, %d: {M}, %x: i1{arguments}"
    with interpreter.new_context(), bindings.ir.Location.unknown():
        module = gpux_ops.parse_with_gpux(
            f"""module attributes {{gpu.container_module}} {{
              func.func @main({streams}) {{
                %c0 = arith.constant 0 : index
                %c1 = arith.constant 1 : index
                {text}
                return
              }}
            {KERNELS}}}""",
            "test",
        )
        function = next(op.operation for op in module.body.operations if op.operation.name == "func.func")
        gpux.lower_tokens(function)
        assert module.operation.verify()
        found = [line.strip() for line in host_text(module).splitlines()]
    return [line.partition(" : ")[0] for line in found if '"gpux.' in line]


ORDERED = (
    "a_token_of_another_stream_is_an_event_after_its_work",
    "a_token_of_the_same_stream_orders_nothing_more",
    "an_event_serves_all_who_take_its_token",
    "an_asynchronous_wait_for_tokens_joins_them",
    "a_wait_for_tokens_holds_the_host",
    "a_wait_of_a_stream_with_a_token_is_no_wait_of_the_host",
    "a_loop_that_hands_a_token_on_along_one_stream_needs_no_event",
    "a_token_that_control_flow_chooses_is_a_stream_to_wait_for",
    "the_token_of_no_work_is_the_callers_stream",
)


@pytest.mark.drawn(len(ORDERED))
@pytest.mark.parametrize("name", ORDERED)
def test_tokens_become_events_and_waits(name: str) -> None:
    text = text_beside(__file__, name)
    require(text, "\n".join(["operations:", *gpux_tokens_lowered(text)]))


@pytest.mark.parametrize(
    ("lines", "arguments", "reason"),
    [
        (
            (f"%t = gpu.memcpy async %d, %a : {M}, {M}", f"gpux.dealloc [%t] %s, %d : {M}"),
            "",
            r"gpu\.memcpy at .*: found a token next to GPUX, allowed those of gpux",
        ),
        (
            (f"gpux.dealloc [%t] %s, %d : {M}",),
            ", %t: !gpu.async.token",
            r"func\.func at .*: found a token as argument, allowed those of gpux operations",
        ),
    ],
)
def test_other_tokens_are_refused(lines: tuple[str, ...], arguments: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason):
        gpux_tokens_lowered(*lines, arguments=arguments)
