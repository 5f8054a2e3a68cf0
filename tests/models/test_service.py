"""Lowering up to a step, many operations, and indices out of range: an answer in seconds, or one line."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.mlir.kernels import parsed
from tests.models.file_check import cases, filled
from tests.models.kernel_programs import called
from tests.models.test_export_constructs import TARGETS
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.device import STREAM_ORDERS
from tuner.core.device_programs import STEPS, DeviceOptions, LoweringStep
from tuner.core.errors import CandidateError, IndexOutOfRange, Stage, UsageError
from tuner.gpu.streams.gpux_ops import parse_with_gpux
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.ir.reading import walk
from tuner.mlir.programs.entry import OPERATIONS_LIMIT, require_few_operations
from tuner.mlir.transform import new_context
from tuner.models.compile_work import compile_and_check, lower
from tuner.models.fusions.formation import OPS_LIMIT
from tuner.models.lowering.read_program import read_program
from tuner.models.request import ProgramOptions, ProgramRequest
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.host_function import HostFunction
from tuner.models.run_work import INDEXED, run_program

pytestmark = pytest.mark.mlir
EXAMPLES = Path(__file__).parents[2] / "examples"
# A loop in which the host reads what a kernel wrote, and a branch.
HOST_READS = text_beside(__file__, "HOST_READS")
KIND, OWN_STREAMS = "tensor<8x16xf32>", "gpux_own_streams.mlir"


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
    assert reads_again(lowered((EXAMPLES / OWN_STREAMS).read_text(), step))


def test_the_steps_say_what_they_are_for_the_chip_and_in_the_form_that_is_chosen() -> None:
    of = {step: lowered(HOST_READS, step) for step in STEPS}
    said: dict[LoweringStep, str] = {"device-memory": "gpu.memcpy  %", "async": "gpu.launch_func async"}
    said |= {"streams": "mgpuStreamSynchronize", "llvm": "gpu.binary", "ptx": ".entry main_kernel"}
    assert [step for step, text in said.items() if text not in of[step]] == []
    assert "async" not in of["device-memory"]
    assert of["gpux"].count('"gpux.create_stream"') == of["gpux"].count('"gpux.destroy_stream"') == 1
    assert "mgpu" not in of["gpux"]
    assert of["ptx"].lstrip().startswith("//")
    assert ".target sm_80" in lowered(HOST_READS, "ptx", "sm_80")
    assert "mgpuStreamCreate" in lowered(HOST_READS, "llvm", form="tokens")
    assert "mgpuStreamCreate" not in of["llvm"]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("step", ["device-memory", "async", "gpux"])
def test_what_was_lowered_runs_to_the_same_results(step: LoweringStep) -> None:
    for text in (HOST_READS, lowered(HOST_READS, step)):
        code = compiler_of(TARGETS["simulator"]).compile(text).code
        for order in STREAM_ORDERS:
            array = np.arange(4, dtype=np.float32) + 1
            assert called(code, array, 3, order=order) == 14.0
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
        (OWN_STREAMS, "device-memory", "found device-memory for a program that names its streams"),
        ("func.func @f() { return }", "ptx", "no kernel: nothing in it runs on a device"),
        ("func.func @f( {", "async", "payload"),
    ],
)
def test_what_has_no_such_step_is_refused(text: str, step: LoweringStep, reason: str) -> None:
    if text.endswith(".mlir"):  # not read where tests are collected: the wheel's have no examples
        text = (EXAMPLES / text).read_text()
    with pytest.raises((UsageError, CandidateError), match=reason):
        lowered(text, step)


def chain(count: int) -> str:
    """Returns a program that adds ``%one`` ``count`` times, with one empty tensor for all additions."""
    ops = "".join(filled(__file__, "ADDITION", to=f"v{at + 1}", first=f"v{at}") for at in range(count))
    head = f"#m = affine_map<(i, j) -> (i, j)>\nfunc.func @main(%v0: {KIND}, %one: {KIND}) -> {KIND} {{"
    return f"{head}\n  %empty = tensor.empty() : {KIND}\n{ops}  return %v{count} : {KIND}\n}}"


@pytest.mark.slow
def test_a_chain_of_a_thousand_operations_becomes_fusions_and_is_right() -> None:
    compiled = compile_and_check(ProgramRequest(chain(1000), TARGETS["cpu"]))
    assert compiled.image is not None
    assert len(compiled.image.code.fusions) == 1000 // OPS_LIMIT
    program = FusedFunction(compiled.image.code, compiled.image.weights)
    start = np.arange(128, dtype=np.float32).reshape(8, 16)
    assert np.array_equal(program(start, np.ones((8, 16), np.float32)), start + 1000)


def test_operations_that_read_no_reshape_are_not_traced_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each trace is up to 100 operations long."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    traced: list[object] = []
    monkeypatch.setattr("tuner.models.fusions.producer_shapes._ends_contraction", traced.append)
    request = ProgramRequest(text_beside(__file__, "ARITHMETIC"), TARGETS["cpu"])
    assert compile_and_check(request).image is not None
    assert traced == []


def test_chains_of_slices_shared_empty_tensors_and_operations_without_reshapes_have_answers() -> None:
    with transform.new_context(), ir.Location.unknown():
        payload = read_program(chain(100))
        assert 1 < len(walk(payload.function, "memref.alloc")) < 10
    lines = ["func.func @main(%v2500: tensor<2500xf32>) -> tensor<1000xf32> {"]
    for size in range(2500, 1000, -1):
        slices = f"[0] [{size - 1}] [1] : tensor<{size}xf32> to tensor<{size - 1}xf32>"
        lines.append(f"  %v{size - 1} = tensor.extract_slice %v{size}{slices}")
    lines += ["%r = math.absf %v1000 : tensor<1000xf32>", "return %r : tensor<1000xf32>", "}"]
    text = "\n".join(lines)
    assert run_program(ProgramRequest(text, TARGETS["cpu"], is_timed=False)).is_right


def test_a_program_of_too_many_operations_is_refused_in_one_line_and_inner_ones_do_not_count() -> None:
    lines = "".join(f"  %v{at + 1} = arith.addf %v{at}, %v{at} : f32\n" for at in range(OPERATIONS_LIMIT + 1))
    text = f"func.func @main(%v0: f32) -> f32 {{\n{lines}  return %v{OPERATIONS_LIMIT + 1} : f32\n}}"
    with pytest.raises(CandidateError) as caught:
        compile_and_check(ProgramRequest(text, TARGETS["cpu"]))
    assert caught.value.stage is Stage.BIND
    reason = "payload: found 20001 operations, allowed 20000: divide it into several programs"
    assert caught.value.reason == reason
    with parsed(chain(3)) as module:
        require_few_operations(module, 4)  # an empty tensor, three additions
        with pytest.raises(CandidateError, match="found 4 operations, allowed 3"):
            require_few_operations(module, 3)
    found = "found 3 operations on tensors in a program that is compiled as a whole, allowed 2"
    with transform.new_context(), ir.Location.unknown():
        read_program(chain(3), limit=3)
        with pytest.raises(CandidateError, match=found):
            read_program(chain(3), limit=2)


def test_accesses_by_values_are_told_from_static_ones() -> None:
    for name, is_found in (("STATIC", False), ("BY_VALUES", True)):
        for _, op in cases(text_beside(__file__, name)):
            assert bool(INDEXED.search(op)) == is_found, op


ROWS, COLUMNS, COUNT = 9, 256, 64
# Rows of a table, then a product that several threads share, then a division by what was gathered.
LOOKUP = text_beside(__file__, "LOOKUP")
TABLE = np.repeat(np.arange(1, ROWS + 1, dtype=np.float32)[:, None], COLUMNS, axis=1)
GOOD = np.arange(COUNT, dtype=np.int64) % ROWS


def with_row(number: int) -> Any:
    wrong = GOOD.copy()
    wrong[COUNT // 2] = number
    return wrong


def require_errors(function: Any, *more: int) -> None:
    """Calls a program with wrong indices, at first before any other call, and with right ones after each."""
    for wrong in (ROWS, -1, 2**62, -(2**63)):
        outside = "index into tensor<9x256xf32> is outside of dimension 0"
        with pytest.raises(IndexError, match=outside) as error:
            function(with_row(wrong), TABLE, *more)
        assert isinstance(error.value, CandidateError)
        assert error.value.stage is Stage.RUN
        sums, parts = function(GOOD, TABLE, *more)
        assert np.array_equal(sums, TABLE[GOOD] * COLUMNS)
        assert np.array_equal(parts, 84 // TABLE[GOOD].astype(np.int64))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_of_fusions_goes_on_after_an_index_out_of_range(threads: int, tmp_path: Path) -> None:
    function = tuner.compile_program(LOOKUP.replace("MORE", ""), target="cpu", threads=threads)
    assert isinstance(function, FusedFunction)
    assert function.code.threads == threads
    assert function.code.asserts
    require_errors(function)
    function.export(tmp_path / "lookup")
    for loaded_threads in {1, threads}:
        require_errors(tuner.load(tmp_path / "lookup", threads=loaded_threads))


def test_calls_of_several_threads_do_not_get_errors_of_others() -> None:
    function: Any = tuner.compile_program(LOOKUP.replace("MORE", ""), target="cpu")

    def outcome(rows: Any) -> str:
        try:
            return "right" if np.array_equal(function(rows, TABLE)[0], TABLE[GOOD] * COLUMNS) else "wrong"
        except IndexOutOfRange:
            return "error"

    wrong = with_row(ROWS)
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda rows: {outcome(rows) for _ in range(50)}, (GOOD, wrong, GOOD, wrong))
        assert list(found) == [{"right"}, {"error"}, {"right"}, {"error"}]


def test_a_program_as_a_whole_goes_on_too() -> None:
    function: Any = tuner.compile_program(LOOKUP.replace("MORE", ", %unused: index"), target="cpu")
    assert isinstance(function, HostFunction)
    require_errors(function, 1)
    threads = set(threading.enumerate())
    for _ in range(20):
        with pytest.raises(IndexError):
            function(with_row(ROWS), TABLE, 1)
    assert function.allocations == 0
    assert set(threading.enumerate()) <= threads  # one of another test may have ended


def test_an_assertion_in_a_loop_or_a_function_is_an_error_and_leaves_nothing_behind() -> None:
    function: Any = tuner.compile_program(text_beside(__file__, "IN_LOOP"), target="cpu")
    function(5)
    threads = set(threading.enumerate())
    for _ in range(20):
        with pytest.raises(CandidateError, match="too many"):
            function(9)
    assert set(threading.enumerate()) <= threads  # one of another test may have ended
    assert function.allocations == 0
    assert np.array_equal(function(5), np.ones(4, np.float32))
    function = tuner.compile_program(text_beside(__file__, "IN_ANOTHER"), target="cpu")
    function(5)
    with pytest.raises(CandidateError, match="too many"):
        function(6)
    function(5)


def run(target: str, name: str, *arguments: str) -> tuple[str, ...]:
    text = text_beside(__file__, name)
    request = ProgramRequest(text, TARGETS[target], arguments=arguments, is_compared=True, is_timed=False)
    return tuple(each.verdict for each in run_program(request).comparisons)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count", [9, 2000, 2000000])
def test_a_write_beyond_an_argument_is_refused_with_its_line(target: str, count: int) -> None:
    found = r"^host: memref\.store at line 6:5: found out-of-bounds access"
    with pytest.raises(CandidateError, match=found) as caught:
        run(target, "FILL", f"1={count}")
    assert caught.value.stage is Stage.RUN


@pytest.mark.parametrize("target", TARGETS)
def test_all_of_an_argument_may_be_accessed_and_an_assertion_is_reported_with_its_text(target: str) -> None:
    assert run(target, "FILL", "1=8") == ("equal",)
    assert run(target, "READ", "0=[8]zeros", "1=[8]range") == ("equal",)
    with pytest.raises(CandidateError, match=r"^host: memref\.load at line 3:8: "):
        run(target, "READ", "0=[8]zeros", "1=[7]range")
    with pytest.raises(CandidateError, match=r"^host: memref\.store at line 4:3: "):
        run(target, "READ", "0=[7]zeros", "1=[8]range")
    with pytest.raises(CandidateError, match=r"^the program's assertion fails: n is too large$"):
        run(target, "ASSERT", "1=9")
