"""GPUX: printed forms become generic ones; its streams and tokens become those of the program."""

from typing import Any

import pytest

from tests.default_suite import ALL
from tests.models.file_check import cases, checked, filled, require
from tests.models.lowering.device_programs import KERNELS, ONE_BLOCK, host_text
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.gpu.streams import gpux, gpux_ops
from tuner.gpu.streams.gpux_syntax import to_generic
from tuner.mlir.bindings import ir
from tuner.mlir.ir.reading import walk
from tuner.mlir.transform import new_context

pytestmark = pytest.mark.mlir
STREAM, BUFFER = "!gpux.StreamType", "memref<16xf32>"
CREATE, WAIT, DESTROY = "%s = gpux.create_stream", "gpux.wait %s", "gpux.destroy_stream %s"
GENERIC_WAIT = f'"gpux.wait"(%s) : ({STREAM}) -> ()'
# the second spelling is that of properties, which mlir-extensions prints; the third is from before 2023
ALLOC = f'%d = "gpux.alloc"(%s) {{operandSegmentSizes = array<i32: 0, 1, 0, 0>}} : ({STREAM}) -> {BUFFER}'
ALLOCS = (
    ALLOC,
    ALLOC.replace("{", "<{").replace("}", "}>"),
    ALLOC.replace("operandSegmentSizes", "operand_segment_sizes"),
    f'%d = "gpux.alloc"(%s) : ({STREAM}) -> {BUFFER}',
)
FREE = f"gpux.dealloc %s, %d : {BUFFER}"
LAUNCH = f"gpux.launch_func %s, @m::@inc {ONE_BLOCK} args(%d : {BUFFER})"
SHARED = ALLOC.replace("{operand", "{hostShared, operand")
KEPT = ('"a gpux.wait %s"', "// gpux.wait %s", "@gpux.wait", "#gpux.wait", "!gpux.StreamType", "gpux.no %s")


def copy(target: str, source: str) -> str:
    return f"gpux.memcpy %s, {target}, {source} : {BUFFER}, {BUFFER}"


def program(*lines: str, arguments: str = f"%a: {BUFFER}") -> str:
    text = "\n".join(f"    {line}" for line in lines)
    return filled(__file__, "PROGRAM", arguments=arguments, text=text, kernels=KERNELS)


WORK = (ALLOC, copy("%d", "%a"), LAUNCH, copy("%a", "%d"), FREE)
OWN_STREAM = program(CREATE, *WORK, WAIT, DESTROY)
CALLERS_STREAM = program(*WORK, WAIT, arguments=f"%s: {STREAM}, %a: {BUFFER}")


def lowered(text: str) -> tuple[str, int]:
    with new_context() as context, ir.Location.unknown():
        module = gpux_ops.parse_with_gpux(text, "test")
        function = walk(module, "func.func")[0]
        assert gpux_ops.uses_gpux(function)
        gpux.take_stream_from_caller(function)
        count = gpux.lower_gpux(function)
        assert not context.allow_unregistered_dialects
        assert module.operation.verify()
        return host_text(module), count


@pytest.mark.parametrize(("name", "text", "count"), [("own", OWN_STREAM, 2), ("callers", CALLERS_STREAM, 1)])
def test_a_stream_of_its_own_is_one_more(name: str, text: str, count: int, golden: Any) -> None:
    found, streams = lowered(text)
    golden(f"gpux_{name}_stream.mlir", found)
    assert streams == count


@pytest.mark.parametrize(
    ("alloc", "found"),
    [*((each, "gpu.alloc async [%1] ()") for each in ALLOCS), (SHARED, "= gpu.alloc  host_shared ()")],
)
def test_all_spellings_are_taken_and_shared_memory_is_allocated_at_once(alloc: str, found: str) -> None:
    assert f"{found} : memref<16xf32>" in lowered(program(CREATE, alloc, FREE, DESTROY))[0]


def test_sizes_of_the_run_fills_and_shared_memory_of_a_launch_stay_operands() -> None:
    alloc = f'%d = "gpux.alloc"(%s, %n) {{operandSegmentSizes = array<i32: 0, 1, 1, 0>}} : ({STREAM}, index)'
    text = program(CREATE, f"{alloc} -> memref<?xf32>", DESTROY, arguments="%n: index")
    assert "gpu.alloc async [%1] (%arg0) : memref<?xf32>" in lowered(text)[0]
    fill = f"gpux.memset %s, %a, %x : {BUFFER}, f32"
    launch = LAUNCH.replace(" args", " dynamic_shared_memory_size %bytes args")
    numbers = ("%x = arith.constant 0.0 : f32", "%bytes = arith.constant 64 : i32")
    text, _ = lowered(program(CREATE, *numbers, ALLOC, fill, launch, FREE, DESTROY))
    assert "gpu.memset async [%1] %arg0, %cst : memref<16xf32>, f32" in text
    assert "dynamic_shared_memory_size %c64_i32 args(%memref : memref<16xf32>)" in text


def test_a_stream_is_joined_unless_it_has_no_work_and_one_that_is_chosen_a_pointer() -> None:
    for work, records in (((*WORK, WAIT), 1), (WORK, 2), ((*WORK[:-1], WAIT, FREE), 2)):
        assert lowered(program(CREATE, *work, DESTROY))[0].count("call @mgpuEventRecord") == records
    lines = lowered(program(CREATE, *WORK))[0].splitlines()  # never destroyed: joined at the end
    assert "@mgpuStreamWaitEvent(%arg1, %" in lines[lines.index("    return") - 2]
    assert lowered(program(CREATE, DESTROY))[1] == 1
    other, choice = CREATE.replace("%s", "%r"), f"%u = arith.select %x, %r, %s : {STREAM}"
    lines = [line.replace("%s", "%u") for line in (*WORK, WAIT, DESTROY)]
    text, count = lowered(program(other, CREATE, choice, *lines, arguments=f"%x: i1, %a: {BUFFER}"))
    assert count == 3
    assert "arith.select %arg0, %arg3, %arg4 : !llvm.ptr" in text
    assert "call @mgpuStreamSynchronize(%" in text
    # both are joined where the function ends: any of them may have had work
    assert text.count("@mgpuStreamWaitEvent(%arg2, %") >= 2


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(("options", "text"), cases(text_beside(__file__, "REFUSED")))
def test_what_is_no_gpux_is_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(CandidateError, match=options["refused"]):
        lowered(program(text, arguments=options.get("arguments", "")))


def test_streams_as_arguments_device_and_context_are_the_programs_own() -> None:
    text, count = lowered(program(*WORK, arguments=f"%r: {STREAM}, %a: {BUFFER}, %s: {STREAM}"))
    assert count == 2
    assert "func.func @main(%arg0: memref<16xf32>, %arg1: !llvm.ptr, %arg2: !llvm.ptr)" in text
    lines = text.splitlines()
    assert "@mgpuStreamWaitEvent(%arg1, %" in lines[lines.index("    return") - 2]
    device = '%v = "gpux.create_device"() : () -> !gpux.DeviceType'
    of_device = f'%s = "gpux.create_stream"(%v) : (!gpux.DeviceType) -> {STREAM}'
    text, count = lowered(program(device, of_device, *WORK, WAIT, DESTROY))
    assert count == 2
    assert "Device" not in text


# Tokens of GPUX: what order they become, and which are refused.


def gpux_tokens_lowered(*lines: str, arguments: str = "") -> list[str]:
    streams = f"%s: {STREAM}, %r: {STREAM}, %a: {BUFFER}, %d: {BUFFER}, %x: i1{arguments}"
    text = filled(__file__, "OF_TOKENS", streams=streams, text="\n".join(lines), kernels=KERNELS)
    with new_context(), ir.Location.unknown():
        module = gpux_ops.parse_with_gpux(text, "test")
        gpux.lower_tokens(walk(module, "func.func")[0])
        assert module.operation.verify()
        found = [line.strip() for line in host_text(module).splitlines()]
    return [line.partition(" : ")[0] for line in found if '"gpux.' in line]


ORDERED = checked(__file__)


@pytest.mark.drawn(len(ORDERED))
@pytest.mark.parametrize("name", ORDERED)
def test_tokens_become_events_and_waits(name: str) -> None:
    text = text_beside(__file__, name)
    require(text, "\n".join(["operations:", *gpux_tokens_lowered(text)]))


@pytest.mark.parametrize(("options", "text"), cases(text_beside(__file__, "OTHER_TOKENS")))
def test_other_tokens_are_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(CandidateError, match=options["refused"]):
        gpux_tokens_lowered(text, arguments=options.get("arguments", ""))


@pytest.mark.parametrize(("options", "text"), cases(text_beside(__file__, "FORMS")))
def test_a_printed_operation_becomes_generic_and_that_stays(options: dict[str, str], text: str) -> None:
    _, _, generic = text.partition("\n")
    assert to_generic(f"{options['printed']}\n  return") == f"{generic}\n  return"
    assert to_generic(generic) == generic


def test_strings_comments_names_and_lines_stay_and_a_whole_function_parses() -> None:
    assert [to_generic(text) for text in KEPT] == [*KEPT]
    assert to_generic('"imex.gpux.wait"(%s) : (!imex.gpux.StreamType) -> ()') == GENERIC_WAIT
    launch = "gpux.launch_func @m::@k\n  blocks in (%a,\n %b, %c)\n threads in (%d, %e, %f)"
    lines = to_generic(f"{launch} // why\n// gpux.wait\nfoo").split("\n")
    assert lines[4:6] == ["// gpux.wait", "foo"]
    on_stream = "gpu.launch_func\n  <%s :\n !gpux.StreamType>\n  @m::@k blocks in (%a, %b, %c)"
    with pytest.raises(CandidateError, match="line 5:1: GPUX: found '}', allowed 'threads'"):
        to_generic(f"{on_stream}\n}}")
    older = "// imex.gpux.wait\nimex.gpux.launch_func %s @m::@k blocks"
    assert to_generic("// imex.gpux.wait\nfoo") == "// imex.gpux.wait\nfoo"
    with pytest.raises(CandidateError, match=f"line 2:{len(older.splitlines()[1]) + 2}: GPUX: found 'on'"):
        to_generic(f"{older} on")
    text = to_generic(f"gpux.wait %s\n%0, %t = gpux.alloc async (%s) : {BUFFER}\n%1:2 = foo")
    assert text.split("\n")[0] == GENERIC_WAIT
    with new_context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(to_generic(text_beside(__file__, "WHOLE")))
        names = [op.operation.name for op in module.body.operations[0].regions[0].blocks[0].operations]
    found = [name.removeprefix("gpux.") for name in names if name.startswith("gpux.")]
    assert found == ["create_stream", "alloc", "memcpy", "launch_func", "wait", "dealloc", "destroy_stream"]


@pytest.mark.parametrize(("options", "text"), cases(text_beside(__file__, "BREAKS_OFF")))
def test_what_breaks_off_is_refused_with_its_line(options: dict[str, str], text: str) -> None:
    with pytest.raises(CandidateError, match=options["refused"]):
        to_generic(text)
