import re
from typing import Any

import numpy as np
import pytest

from tests.mlir.kernels import parsed
from tests.programs.lowering.device_programs import TWO_CHAINS, host_function, launch, store
from tests.programs.streams.test_gpux import CALLERS_STREAM, OWN_STREAM
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.gpu import KernelLaunch, chip_of
from tuner.core.gpu_code import BufferType, DeviceProgram, ScalarType
from tuner.programs.request import FORMS, DeviceOptions
from tuner.programs.run.runner_functions import HostHeap
from tuner.simulator.device.simulated_device import SimulatedDevice

pytestmark = pytest.mark.mlir

bindings = pytest.importorskip("tuner.mlir.bindings")
device_lowering = pytest.importorskip("tuner.programs.lowering.device")
gpux_ops = pytest.importorskip("tuner.programs.streams.gpux_ops")
interpreter = pytest.importorskip("tuner.mlir.transform")
device_function = pytest.importorskip("tuner.programs.run.device_function")

# Two products on buffers of their own, and their sum: a constant is uploaded, a result handed out.
TWO_PRODUCTS = text_beside(__file__, "TWO_PRODUCTS")
# Asynchronous already, by tokens; and the caller's memory is page-locked.
BY_TOKENS = text_beside(__file__, "BY_TOKENS")
REGISTERED = text_beside(__file__, "REGISTERED")
# Each iteration has memory of its own, on the host alone.
IN_ITERATIONS = text_beside(__file__, "IN_ITERATIONS")
# The kernel's sizes are known at run time only.
DYNAMIC = text_beside(__file__, "DYNAMIC")


def lowered(text: str, assemble: Any = None, **options: Any) -> DeviceProgram:
    with interpreter.new_context(), bindings.ir.Location.unknown():
        module = gpux_ops.parse_with_gpux(text, "test")
        program = device_lowering.lower_device_program(
            module, "main", chip_of("sm_90"), DeviceOptions(**options), assemble
        )
    assert isinstance(program, DeviceProgram)
    return program


def called(program: DeviceProgram, *arguments: Any) -> tuple[Any, SimulatedDevice]:
    """Calls twice, the second time counts; closes, and asks that nothing was reported or left over."""
    device = SimulatedDevice("sm_90", "lifo")
    loaded = device_function.DeviceFunction(program, device)
    loaded(*[argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments])
    result = loaded(*arguments)
    loaded.close()
    counts = device.counts
    assert device.reports == ()
    assert counts.streams_created == counts.streams_destroyed
    assert counts.events_created == counts.events_destroyed
    assert counts.allocations == counts.frees
    assert (counts.modules_loaded, counts.modules_unloaded) == (1, 1)
    return result, device


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", FORMS)
def test_two_products_and_their_sum(form: str) -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(-4, 5, (16, 16)).astype(np.float32) for _ in range(2))
    result, _ = called(lowered(TWO_PRODUCTS, form=form), a, b)
    np.testing.assert_array_equal(result, 2 * (a @ b) + 0.5)


def test_the_products_are_on_two_streams_and_the_sum_waits_for_both() -> None:
    lines = lowered(TWO_PRODUCTS).llvm.splitlines()
    launches = [number for number, line in enumerate(lines) if "gpu.launch_func" in line]
    streams = [re.findall(r"<(%arg\d+) : !llvm\.ptr>", lines[number])[0] for number in launches]
    first, second, last = streams
    assert first != second
    other = next(stream for stream in (first, second) if stream != last)
    recorded = re.findall(rf"EventRecord\((%\d+), {other}\)", "\n".join(lines[: launches[2]]))[-1]
    assert any(f"StreamWaitEvent({last}, {recorded})" in line for line in lines[launches[1] : launches[2]])


def test_the_signature_is_the_functions_without_the_streams() -> None:
    program = lowered(DYNAMIC, device_arguments=False)
    assert program.arguments == (BufferType("f32", (None,)), ScalarType("f32"))
    assert (program.entry, program.results, program.written) == ("main", (), (True, False))
    assert program.stream_slots == 1
    two = lowered(TWO_PRODUCTS, form="tokens", pinned=True)
    assert two.results == (BufferType("f32", (16, 16)),)
    assert (two.written, two.stream_slots, two.device_arguments) == ((False, False), 0, False)


@pytest.mark.parametrize("form", FORMS)
def test_kernels_of_sizes_known_at_run_time_take_descriptors(form: str) -> None:
    array = np.arange(5, dtype=np.float32)
    called(lowered(DYNAMIC, form=form), array, 3.0)
    assert array.tolist() == [0, 3, 6, 9, 12]


def test_kernels_of_static_sizes_take_addresses() -> None:
    assert "args(%7 : !llvm.ptr)" in re.sub(r"%\d+ :", "%7 :", lowered(TWO_CHAINS).llvm)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", FORMS)
def test_memory_that_a_program_manages_itself_is_left_to_it(form: str) -> None:
    a, b = (np.full(16, number, np.float32) for number in (1, 10))
    _, device = called(lowered(TWO_CHAINS, form=form), a, b)
    assert a[0] == 1 + 10 + 4
    assert device.counts.copies == 2 * 3


def test_a_thread_may_copy_views() -> None:
    a, b = np.arange(8, dtype=np.float32).reshape(2, 4), np.zeros((2, 4), np.float32)
    program = lowered(text_beside(__file__, "VIEWS"))
    assert program.written == (False, True)
    called(program, a, b)
    np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_memory_of_an_iteration_is_freed_with_it(
    iterations: int, pinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    heaps: list[HostHeap] = []

    def heap(watch: Any) -> HostHeap:
        heaps.append(HostHeap(watch))
        return heaps[-1]

    monkeypatch.setattr(device_function, "HostHeap", heap)
    array = np.ones(16, np.float32)
    called(lowered(IN_ITERATIONS, pinned=pinned), array, iterations)
    assert array[0] == 2**iterations
    assert [each.in_use for each in heaps] == [0]


def test_launches_in_a_loop_take_the_same_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def launched(_: Any, launch: KernelLaunch, stream: int) -> None:
        seen.append(launch.parameters)

    monkeypatch.setattr(SimulatedDevice, "launch", launched)
    text = DYNAMIC.replace("  gpu.launch", "  scf.for %i = %c0 to %n step %c1 {\n  gpu.launch")
    text = text.replace("  return", "  }\n  return")
    loaded = device_function.DeviceFunction(lowered(text), SimulatedDevice())
    loaded(np.zeros(5, np.float32), 3.0)
    loaded.close()
    assert len(seen) == 5
    assert len(set(seen)) == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_program_that_has_tokens_gets_its_own(form: str) -> None:
    a, b = (np.full(16, number, np.float32) for number in (3, 0))
    program = lowered(BY_TOKENS, form=form)
    assert program.written == (False, True)
    called(program, a, b)
    assert (a[0], b.tolist()) == (3, [6.0] * 16)


def test_registered_host_memory_is_copied_like_any_other() -> None:
    array = np.full(16, 3, np.float32)
    _, device = called(lowered(REGISTERED), array)
    assert array.tolist() == [6.0] * 16
    assert device.counts.copies == 2 * 2


@pytest.mark.parametrize(("text", "slots"), [(OWN_STREAM, 2), (CALLERS_STREAM, 1)])
def test_gpux_runs_on_its_streams(text: str, slots: int) -> None:
    array = np.zeros(16, np.float32)
    program = lowered(text)
    assert program.stream_slots == slots
    _, device = called(program, array)
    assert array.tolist() == [1.0] * 16
    assert device.counts.streams_created == slots  # not again for the second call


def test_the_same_program_gives_the_same_text() -> None:
    assert lowered(TWO_PRODUCTS) == lowered(TWO_PRODUCTS)


def test_code_of_an_assembler_takes_the_place_of_ptx() -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []

    def assemble(ptx: str, kernels: tuple[str, ...]) -> bytes:
        asked.append((ptx, kernels))
        return b"machine code"

    program = lowered(TWO_CHAINS, assemble)
    assert [kernels for _, kernels in asked] == [("add", "inc")]
    assert ".visible .entry inc(" in asked[0][0]
    assert 'bin = "machine code"' in program.llvm
    assert ".entry" not in program.llvm


def test_a_call_on_streams_can_be_captured_and_launched_again() -> None:
    device = SimulatedDevice("sm_90", "lifo")
    loaded = device_function.DeviceFunction(lowered(TWO_CHAINS), device)
    a, b = (np.full(16, number, np.float32) for number in (1, 10))
    graph = loaded.as_graph(a, b)
    graph.launch()
    graph.launch()
    graph.close()
    loaded.close()
    assert a[0] == (1 + 10 + 4) + 10 + 4
    assert device.reports == ()
    assert device.counts.graph_launches == 2


def test_a_limit_of_streams_is_kept() -> None:
    assert lowered(TWO_PRODUCTS, max_streams=1).stream_slots == 1
    assert "mgpuEvent" not in lowered(TWO_PRODUCTS, max_streams=1).llvm


@pytest.mark.parametrize("form", FORMS)
def test_a_function_without_kernels_is_a_program_too(form: str) -> None:
    array = np.ones(16, np.float32)
    program = lowered(host_function(*store("a"), buffers="a"), form=form)
    loaded = device_function.DeviceFunction(program, SimulatedDevice("sm_90"))
    loaded(array)
    loaded.close()
    assert array[:3].tolist() == [1, 2, 1]


def test_a_function_that_is_not_there_is_refused() -> None:
    with (
        parsed(TWO_CHAINS) as module,
        pytest.raises(CandidateError, match=r"^host program: function run is missing, it has main$"),
    ):
        device_lowering.lower_device_program(module, "run", chip_of("sm_90"))


def copy_of_a_view(where: str, layout: str) -> str:
    part = f"memref<8xf32, {layout}>"
    lines = (
        "%d = gpu.alloc () : memref<8xf32>",
        f"%v = memref.subview %a{where} : memref<16xf32> to {part}",
        f"gpu.memcpy %d, %v : memref<8xf32>, {part}",
        "gpu.memcpy %c, %d : memref<8xf32>, memref<8xf32>",
        "gpu.dealloc %d : memref<8xf32>",
    )
    return host_function(*lines, buffers="a", others="%c: memref<8xf32>")


@pytest.mark.parametrize("form", FORMS)
def test_a_copy_that_upstream_would_take_from_the_wrong_place_is_taken_from_the_right_one(form: str) -> None:
    a, c = np.arange(16, dtype=np.float32), np.zeros(8, np.float32)
    program = lowered(copy_of_a_view("[4] [8] [1]", "strided<[1], offset: 4>"), form=form)
    loaded = device_function.DeviceFunction(program, SimulatedDevice("sm_90"))
    loaded(a, c)
    loaded.close()
    assert c.tolist() == a[4:12].tolist()


def test_a_copy_with_gaps_is_refused_here() -> None:
    with pytest.raises(CandidateError, match=r"^host program: found gpu\.memcpy of memref<8xf32, strided"):
        lowered(copy_of_a_view("[0] [8] [2]", "strided<[2]>"))


def test_work_on_the_host_that_is_no_llvm_is_refused() -> None:
    text = host_function('%t = "tensor.empty"() : () -> tensor<4xf32>', launch("inc", "a"), "util.use %t")
    text = text.replace(
        "util.use %t",
        "%e = tensor.extract %t[%c0] : tensor<4xf32>\n memref.store %e, %a[%c0] : memref<16xf32>",
    )
    with pytest.raises(
        CandidateError, match=r"^host program: found tensor\.empty, allowed what lowers to LLVM"
    ):
        lowered(text)
