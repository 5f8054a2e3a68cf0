import re
from contextlib import closing, nullcontext
from typing import Any

import numpy as np
import pytest

from tests.mlir.kernels import parsed
from tests.models.file_check import filled
from tests.models.lowering import device_programs as texts
from tests.models.lowering.compiled import on_simulator
from tests.models.lowering.device_programs import lowered
from tests.texts import text_beside
from tuner.core.device_programs import FORMS, BufferType, DeviceProgram, ScalarType
from tuner.core.errors import CandidateError
from tuner.core.gpu import chip_of
from tuner.gpu.lowering import device as device_lowering
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction
from tuner.mlir.passes import run_passes
from tuner.models.execution import copies

pytestmark = pytest.mark.mlir

TWO_PRODUCTS = text_beside(__file__, "TWO_PRODUCTS")
DYNAMIC = text_beside(__file__, "DYNAMIC")
TO_LLVM = device_lowering.TO_LLVM.format(bare_pointers="true")


def called(program: DeviceProgram, *arguments: Any) -> tuple[Any, SimulatedDevice]:
    """Calls twice, the second time counts; closes, and asks that nothing was reported or left over."""
    with on_simulator(program, order="lifo") as (loaded, device):
        loaded(*copies(arguments))
        result = loaded(*arguments)
    counts = device.counts
    assert loaded.host_allocations == 0
    assert counts.streams_created == counts.streams_destroyed
    assert counts.events_created == counts.events_destroyed
    assert (counts.modules_loaded, counts.modules_unloaded) == (1, 1)
    return result, device


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", FORMS)
def test_two_products_and_their_sum(form: str) -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(-4, 5, (16, 16)).astype(np.float32) for _ in range(2))
    result, _ = called(lowered(TWO_PRODUCTS, form=form), a, b)
    np.testing.assert_array_equal(result, 2 * (a @ b) + 0.5)


def test_the_signature_is_the_functions_without_the_streams() -> None:
    program = lowered(DYNAMIC, device_arguments=False)
    assert program.arguments == (BufferType("f32", (None,)), ScalarType("f32"))
    assert (program.entry, program.results, program.written) == ("main", (), (True, False))
    assert program.stream_slots == 1
    two = lowered(TWO_PRODUCTS, form="tokens", pinned=True)
    assert two.results == (BufferType("f32", (16, 16)),)
    assert (two.written, two.stream_slots, two.device_arguments) == ((False, False), 0, False)
    one = lowered(TWO_PRODUCTS, max_streams=1)
    assert one == lowered(TWO_PRODUCTS, max_streams=1)
    assert one.stream_slots == 1
    assert "mgpuEvent" not in one.llvm
    assert re.search(r"args\(%\d+ : !llvm\.ptr\)", lowered(texts.TWO_CHAINS).llvm)  # of static sizes


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_memory_of_an_iteration_is_freed(count: int, pinned: bool) -> None:
    array = np.ones(16, np.float32)
    called(lowered(text_beside(__file__, "IN_ITERATIONS"), pinned=pinned), array, count)
    assert array[0] == 2**count


def test_launches_in_a_loop_take_the_same_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(SimulatedDevice, "launch", lambda _, launch, __: seen.append(launch.parameters))
    text = DYNAMIC.replace("  gpu.launch", "  scf.for %i = %c0 to %n step %c1 {\n  gpu.launch")
    text = text.replace("  return", "  }\n  return")
    with closing(DeviceFunction(lowered(text), SimulatedDevice())) as loaded:
        loaded(np.zeros(5, np.float32), 3.0)
    assert (len(seen), len(set(seen))) == (5, 1)


def test_code_of_an_assembler_takes_the_place_of_ptx() -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []

    def assemble(*code: Any) -> bytes:
        asked.append(code)
        return b"machine code"

    program = lowered(texts.TWO_CHAINS, assemble)
    ((ptx, kernels),) = asked
    assert kernels == ("add", "inc")
    assert ".visible .entry inc(" in ptx
    assert 'bin = "machine code"' in program.llvm
    assert ".entry" not in program.llvm


def test_an_unknown_operation_and_a_function_that_is_not_there_are_refused_by_name() -> None:
    missing = pytest.raises(CandidateError, match=r"^host program: function run is missing, it has main$")
    with parsed(texts.TWO_CHAINS) as module, missing:
        device_lowering.lower_device_program(module, "run", chip_of("sm_90"))
    text = "func.func @f(%a: KIND) -> KIND { return %a : KIND }"
    converted(text.replace("KIND", "memref<4xf32>"))
    with pytest.raises(CandidateError, match=r"^host program: found func\.func, allowed what lowers to LLVM"):
        converted(text.replace("KIND", "tensor<4xf32>"))


def copy_of_a_view(where: str, layout: str) -> str:
    lines = filled(__file__, "COPY_OF_A_VIEW", where=where, layout=layout)
    return texts.host_function(lines, buffers="a", others="%c: memref<8xf32>")


def full(*numbers: float) -> list[Any]:
    return [np.full(16, number, np.float32) for number in numbers]


RANGE = np.arange(16, dtype=np.float32)
EIGHT = RANGE[:8].reshape(2, 4)
OF_A_VIEW = copy_of_a_view("[4] [8] [1]", "strided<[1], offset: 4>")  # upstream takes it from the wrong place
ON_HOST = texts.host_function(*texts.store("a"), buffers="a")
RUNS = {  # program: (arguments, what the last array is then)
    "sizes at run time": (DYNAMIC, [RANGE[:5], 3.0], 3 * RANGE[:5]),
    "its own memory": (texts.TWO_CHAINS, full(10, 1)[::-1], full(10)[0]),
    "its own tokens": (text_beside(__file__, "BY_TOKENS"), full(3, 0), full(6)[0]),
    "no kernels": (ON_HOST, full(1), np.array([1, 2, *[1] * 14], np.float32)),
    "registered": (text_beside(__file__, "REGISTERED"), full(3), full(6)[0]),
    "a thread copies views": (text_beside(__file__, "VIEWS"), [EIGHT, 0 * EIGHT], EIGHT),
    "a view": (OF_A_VIEW, [RANGE, np.zeros(8, np.float32)], RANGE[4:12]),
}


@pytest.mark.drawn(7)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", RUNS)
def test_every_form_gives_the_same(name: str, form: str) -> None:
    text, arguments, expected = RUNS[name]
    own, program = copies(tuple(arguments)), lowered(text, form=form)
    _, device = called(program, *own)
    np.testing.assert_array_equal([each for each in own if isinstance(each, np.ndarray)][-1], expected)
    if name == "its own memory":
        assert (own[0][0], device.counts.copies) == (1 + 10 + 4, 2 * 3)
    if name in ("its own tokens", "a thread copies views"):
        np.testing.assert_array_equal(own[0], arguments[0])
        assert program.written == (False, True)
    assert name != "registered" or device.counts.copies == 2 * 2


def test_a_copy_with_gaps_and_work_that_is_no_llvm_are_refused() -> None:
    with pytest.raises(CandidateError, match=r"^host program: found gpu\.memcpy of memref<8xf32, strided"):
        lowered(copy_of_a_view("[0] [8] [2]", "strided<[2]>"))
    refused = r"^host program: found tensor\.empty, allowed what lowers to LLVM"
    with pytest.raises(CandidateError, match=refused):
        lowered(texts.host_function(text_beside(__file__, "TENSOR")))


def converted(text: str) -> None:
    with parsed(text) as module:
        run_passes(module, TO_LLVM)
        device_lowering.reject_what_was_not_converted(module)


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (texts.copy("a", "b"), "gpu.memcpy"),
        ("gpu.memset %a, %x : memref<16xf32>, f32", "gpu.memset"),
    ],
)
def test_what_upstream_leaves_without_a_word_is_named_with_its_place(lines: str, name: str) -> None:
    text = texts.host_function(lines, others="%x: f32").split("  gpu.module")[0] + "}"
    with pytest.raises(CandidateError, match=rf"^host program: found {name}, allowed .*token \(at line 7:"):
        converted(text)


@pytest.mark.parametrize(
    ("view", "layout", "is_allowed"),
    [
        ("[0, 0] [2, 4] [1, 1]", "2x4xf32, strided<[4, 1]>", True),
        ("[1, 0] [2, 4] [1, 1]", "2x4xf32, strided<[4, 1], offset: 4>", False),
        ("[%c1, 0] [2, 4] [1, 1]", "2x4xf32, strided<[4, 1], offset: ?>", False),
        ("[0, 0] [2, 4] [2, 1]", "2x4xf32, strided<[8, 1]>", False),
        ("[0, 0] [4, 2] [1, 1]", "4x2xf32, strided<[4, 1]>", False),
    ],
)
def test_views_are_copied_from_their_start_or_not_at_all(view: str, layout: str, is_allowed: bool) -> None:
    part, plain = f"memref<{layout}>", f"memref<{layout.split(',')[0]}>"
    cut = f"%v = memref.subview %x{view} : memref<4x4xf32> to {part}"
    copied = f"gpu.memcpy %y, %v : {plain}, {part}"
    refused = r"^host program: found gpu\.memcpy of memref<.*>, allowed contiguous memory .* \(at line "
    expected = nullcontext() if is_allowed else pytest.raises(CandidateError, match=refused)
    with (
        parsed(texts.host_function(cut, copied, others=f"%x: memref<4x4xf32>, %y: {plain}")) as module,
        expected,
    ):
        device_lowering.reject_copies_of_views(module)


def test_a_launch_is_left_only_of_types_that_llvm_knows_and_no_cast_is() -> None:
    of_memref = text_beside(__file__, "LEFT").replace("TYPE", "memref<16xf32>")
    of_pointer = re.sub(r" *%a = .*\n", "", of_memref).replace("%a : memref<16xf32>", "%p : !llvm.ptr")
    with parsed(of_pointer) as module:
        device_lowering.reject_what_was_not_converted(module)
    refused = {of_memref: r"gpu\.launch_func, allowed what lowers to LLVM"}
    refused[text_beside(__file__, "CAST")] = r"builtin\.unrealized_conversion_"
    for text, reason in refused.items():
        with parsed(text) as module, pytest.raises(CandidateError, match=f"found {reason}"):
            device_lowering.reject_what_was_not_converted(module)
