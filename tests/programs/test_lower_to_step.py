"""Lowering up to a step, and programs of many operations: an answer in seconds, or one line."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tuner
from tests.mlir.kernels import parsed
from tests.programs.test_export_constructs import TARGETS
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.ir.reading import walk
from tuner.mlir.transform import new_context
from tuner.programs.fusions.formation import OPS_LIMIT
from tuner.programs.lowering.entry import OPERATIONS_LIMIT, require_few_operations
from tuner.programs.lowering.read_program import read_program
from tuner.programs.request import STEPS, DeviceOptions, LoweringStep, ProgramOptions, ProgramRequest
from tuner.programs.run.device_function import DeviceFunction
from tuner.programs.run.fused_program import FusedFunction
from tuner.programs.service import INDEXED, compile_and_check, lower, run_program
from tuner.programs.streams.gpux_ops import parse_with_gpux
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir


EXAMPLES = Path(__file__).parents[2] / "examples"
# A loop in which the host reads what a kernel wrote, and a branch.
HOST_READS = text_beside(__file__, "HOST_READS")


@cache
def lowered(text: str, step: LoweringStep, chip: str = "sm_90", **arguments: object) -> str:
    options = ProgramOptions(DeviceOptions(**arguments))  # type: ignore[arg-type]
    request = ProgramRequest(text, TargetName("simulator", chip), None, options)
    return lower(request, step).text


def reads_again(text: str) -> bool:
    with new_context(), ir.Location.unknown():
        return bool(parse_with_gpux(text, "lowered").operation.verify())


@pytest.mark.drawn(1)
@pytest.mark.parametrize("step", [step for step in STEPS if step != "ptx"])
@pytest.mark.parametrize("name", ["two_matmuls", "softmax"])
def test_each_step_reads_again(name: str, step: LoweringStep) -> None:
    assert reads_again(lowered((EXAMPLES / f"{name}.mlir").read_text(), step))


@pytest.mark.parametrize("step", ["async", "streams", "gpux", "llvm"])
def test_a_program_that_names_its_streams_is_lowered_too(step: LoweringStep) -> None:
    assert reads_again(lowered((EXAMPLES / "gpux_own_streams.mlir").read_text(), step))


def test_the_steps_say_what_they_are_for_the_chip_and_in_the_form_that_is_chosen() -> None:
    of = {step: lowered(HOST_READS, step) for step in STEPS}
    assert "gpu.memcpy  %" in of["device-memory"]
    assert "async" not in of["device-memory"]
    assert "gpu.launch_func async" in of["async"]
    assert "mgpuStreamSynchronize" in of["streams"]
    assert of["gpux"].count('"gpux.create_stream"') == of["gpux"].count('"gpux.destroy_stream"') == 1
    assert "mgpu" not in of["gpux"]
    assert "gpu.binary" in of["llvm"]
    assert of["ptx"].lstrip().startswith("//")
    assert ".entry main_kernel" in of["ptx"]
    assert ".target sm_80" in lowered(HOST_READS, "ptx", "sm_80")
    assert "mgpuStreamCreate" in lowered(HOST_READS, "llvm", form="tokens")
    assert "mgpuStreamCreate" not in of["llvm"]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("step", ["device-memory", "async", "gpux"])
def test_what_was_lowered_runs_to_the_same_results(step: LoweringStep) -> None:
    texts = (HOST_READS, lowered(HOST_READS, step))
    functions = [tuner.compile_program(text, "simulator") for text in texts]
    programs = [each.program for each in functions if isinstance(each, DeviceFunction)]
    assert len(programs) == len(texts)
    for order in ORDERS:
        for program in programs:
            array = np.arange(4, dtype=np.float32) + 1
            assert DeviceFunction(program, SimulatedDevice("sm_90", order))(array, 3) == 14.0
            assert array.tolist() == [8.0, 16.0, 24.0, 32.0]


@pytest.mark.slow
def test_gpux_of_matmuls_runs_to_the_same_results() -> None:
    source = (EXAMPLES / "async_matmul.mlir").read_text()
    rng = np.random.default_rng(0)
    a, b = rng.random((84, 32), np.float32), rng.random((32, 84), np.float32)
    found, expected = np.zeros((84, 84), np.float32), np.zeros((84, 84), np.float32)
    tuner.compile_program(source, "simulator")(a, b, expected)
    tuner.compile_program(lowered(source, "gpux"), "simulator")(a, b, found)
    assert np.array_equal(found, expected)
    assert np.allclose(found, a @ b, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "step", "reason"),
    [
        (
            *("gpux_own_streams.mlir", "device-memory"),
            "found device-memory for a program that names its streams",
        ),
        ("func.func @f() { return }", "ptx", "no kernel: nothing in it runs on a device"),
        ("func.func @f( {", "async", "payload"),
    ],
)
def test_what_has_no_such_step_is_refused(text: str, step: LoweringStep, reason: str) -> None:
    if text.endswith(".mlir"):  # not read where tests are collected: the wheel's have no examples
        text = (EXAMPLES / text).read_text()
    with pytest.raises((UsageError, CandidateError), match=reason):
        lowered(text, step)


KIND = "tensor<8x16xf32>"


def chain(count: int) -> str:
    """Returns a program that adds ``%one`` ``count`` times, with one empty tensor for all additions."""
    ops = "".join(
        text_beside(__file__, "ADDITION").replace("TO", f"v{at + 1}").replace("FIRST", f"v{at}")
        for at in range(count)
    )
    return (
        "#m = affine_map<(i, j) -> (i, j)>\n"
        f"func.func @main(%v0: {KIND}, %one: {KIND}) -> {KIND} {{\n"
        f"  %empty = tensor.empty() : {KIND}\n{ops}  return %v{count} : {KIND}\n}}"
    )


@pytest.mark.slow
def test_a_chain_of_a_thousand_operations_becomes_fusions_and_is_right() -> None:
    compiled = compile_and_check(ProgramRequest(chain(1000), TARGETS["cpu"]))
    assert compiled.image is not None
    assert len(compiled.image.code.fusions) == 1000 // OPS_LIMIT
    program = FusedFunction(compiled.image.code, compiled.image.weights)
    start = np.arange(128, dtype=np.float32).reshape(8, 16)
    assert np.array_equal(program(start, np.ones((8, 16), np.float32)), start + 1000)


def test_operations_that_read_no_reshape_are_not_traced_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trace is up to 100 operations long."""
    traced: list[object] = []
    monkeypatch.setattr("tuner.programs.fusions.producer_shapes._ends_contraction", traced.append)
    request = ProgramRequest(text_beside(__file__, "ARITHMETIC"), TARGETS["cpu"])
    assert compile_and_check(request).image is not None
    assert traced == []


def test_as_a_whole_an_empty_tensor_that_many_operations_share_becomes_several_buffers() -> None:
    with transform.new_context(), ir.Location.unknown():
        payload = read_program(chain(100))
        assert 1 < len(walk(payload.function, "memref.alloc")) < 10


def test_a_chain_of_slices_has_an_answer() -> None:
    """Longer than Python's stack: each is a view of the one before it."""
    lines = []
    for size in range(2500, 1000, -1):
        slices = f"[0] [{size - 1}] [1] : tensor<{size}xf32> to tensor<{size - 1}xf32>"
        lines.append(f"  %v{size - 1} = tensor.extract_slice %v{size}{slices}")
    text = "\n".join(
        (
            "func.func @main(%v2500: tensor<2500xf32>) -> tensor<1000xf32> {",
            *(*lines, "  %r = math.absf %v1000 : tensor<1000xf32>", "  return %r : tensor<1000xf32>", "}"),
        )
    )
    assert run_program(ProgramRequest(text, TARGETS["cpu"], is_timed=False)).is_right


def test_a_program_of_too_many_operations_is_refused_in_one_line() -> None:
    lines = "".join(f"  %v{at + 1} = arith.addf %v{at}, %v{at} : f32\n" for at in range(OPERATIONS_LIMIT + 1))
    text = f"func.func @main(%v0: f32) -> f32 {{\n{lines}  return %v{OPERATIONS_LIMIT + 1} : f32\n}}"
    with pytest.raises(CandidateError) as caught:
        compile_and_check(ProgramRequest(text, TARGETS["cpu"]))
    assert caught.value.stage is Stage.BIND
    assert caught.value.reason == (
        "payload: found 20001 operations, allowed 20000: divide it into several programs"
    )


def test_operations_in_a_linalg_operation_do_not_count() -> None:
    with parsed(chain(3)) as module:
        require_few_operations(module, 4)  # an empty tensor, three additions
        with pytest.raises(CandidateError, match="found 4 operations, allowed 3"):
            require_few_operations(module, 3)


def test_as_a_whole_fewer_operations_are_allowed() -> None:
    found = "found 3 operations on tensors in a program that is compiled as a whole, allowed 2"
    with transform.new_context(), ir.Location.unknown():
        read_program(chain(3), limit=3)
        with pytest.raises(CandidateError, match=found):
            read_program(chain(3), limit=2)


STATIC = (
    "%y = tensor.extract_slice %x[0] [4] [1] : tensor<9xf32> to tensor<4xf32>",
    "%y = tensor.insert_slice %x into %z[5] [4] [1] : tensor<4xf32> into tensor<9xf32>",
    "%y = tensor.expand_shape %x [[0, 1]] output_shape [3, 3] : tensor<9xf32> into tensor<3x3xf32>",
)
BY_VALUES = (
    "%y = tensor.extract_slice %x[%i] [4] [1] : tensor<9xf32> to tensor<4xf32>",
    "%y = tensor.insert_slice %x into %z[%i]\n [4] [1] : tensor<4xf32> into tensor<9xf32>",
    "%y = tensor.extract %x[%i] : tensor<9xf32>",
    '%y = "tensor.extract_slice"(%x, %i) : (tensor<9xf32>, index) -> tensor<4xf32>',
)


def test_accesses_by_values_are_told_from_static_ones() -> None:
    assert [bool(INDEXED.search(op)) for op in (*STATIC, *BY_VALUES)] == [False] * 3 + [True] * 4
