"""Programs on the host: kernels that are interpreted, tuned code instead of matmuls, streams, math."""

from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

from tests.models.file_check import cases, filled
from tests.models.lowering.compiled import cpu_function, host_function
from tests.models.payload_runs import listed
from tests.support.fuzzing.host_programs import RandomProgram, host_programs
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Script
from tuner.core.machine import variables_of
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.interpreter import kernels_on_host
from tuner.models.execution import copies
from tuner.payload.partitions import partition, partitions_comment
from tuner.runtime.cpu.host import describe_machine
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.strategy import Binder, load_strategy

pytestmark = pytest.mark.mlir
SCALARS = {"f16": 1.5, "bf16": -2.0, "f32": 0.25, "f64": 3.0, "i8": -7, "i16": 300, "i32": -70000}
EXAMPLES = Path(__file__).parents[3] / "examples"
NUMBERS = np.arange(128, dtype=np.float32)
PROBLEM, OTHER = Matmul(40, 24, 16), Matmul(40, 24, 8)
BOUND = {"both": ([PROBLEM, OTHER], 1), "one": ([OTHER], 1), "threads": ([OTHER], 2)}
TEXT = text_beside(__file__, "TEXT")


def launched(body: str, arguments: str = "%a: memref<2x64xf32>", sizes: str = "") -> str:
    return filled(__file__, "LAUNCHED", arguments=arguments, sizes=sizes, body=body)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


REVERSE = launched(text_beside(__file__, "REVERSE"), sizes="workgroup(%m : memref<64xf32, 3>)")  # of rows


def test_threads_that_share_memory_are_interpreted_and_what_is_only_read_is_not_written() -> None:
    a = numbers(2, 64)
    before = a.copy()
    function = host_function(REVERSE)
    function(a)
    np.testing.assert_array_equal(a, before[:, ::-1])
    assert function.program.interpreted
    assert not host_function(launched(text_beside(__file__, "INDEPENDENT"))).program.interpreted
    arguments = "%a: memref<2x64xf32>, %b: memref<2xf32>"
    function = host_function(launched(text_beside(__file__, "READS"), arguments))
    assert function.program.written == (False, True)
    a, b = numbers(2, 64), numbers(2)
    a.setflags(write=False)
    function(a, b)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-5)


def test_numbers_of_every_kind_and_vectors_cross() -> None:
    lines = []
    for number, kind in enumerate(SCALARS):
        widen = "extf" if kind in ("f16", "bf16", "f32") else "sitofp"
        lines.append(f"%p{number} = arith.constant {number} : index")
        lines += [f"%w{kind} = arith.{widen} %{kind} : {kind} to f64"] if kind != "f64" else []
        lines.append(f"memref.store %{'w' * (kind != 'f64')}{kind}, %a[%p{number}] : memref<7xf64>")
    arguments = ", ".join(["%a: memref<7xf64>", *(f"%{kind}: {kind}" for kind in SCALARS)])
    a = np.zeros(7)
    host_function(launched("\n".join([*lines, "gpu.barrier"]), arguments))(a, *SCALARS.values())
    np.testing.assert_array_equal(a, list(SCALARS.values()))
    constant = "%v = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : vector<2x3xf32>"
    a = numbers(2, 64)
    host_function(launched(text_beside(__file__, "VECTOR")).replace("%c0 = ", f"{constant}\n%c0 = ", 1))(a)
    assert (a == 6).all()


def test_launches_in_a_loop_see_what_is_left_and_shared_memory_has_the_size_of_the_run() -> None:
    text = REVERSE.replace("gpu.launch", "scf.for %i = %c0 to %n step %c1 { gpu.launch").replace(
        "return", "} return"
    )
    function = host_function(text.replace("(%a: memref<2x64xf32>)", "(%a: memref<2x64xf32>, %n: index)"))
    for times in (2, 3):
        a = numbers(2, 64)
        function(a, times)
        np.testing.assert_array_equal(a, numbers(2, 64)[:, :: 1 if times == 2 else -1])
    arguments, sizes = "%a: memref<2x64xf32>, %n: i32", "dynamic_shared_memory_size %n"
    function = host_function(launched(text_beside(__file__, "REPORTED_SIZE"), arguments, sizes))
    function(numbers(2, 64), 256)
    place = r"in block \(0, 0, 0\), thread \(63, 0, 0\)"
    with pytest.raises(CandidateError, match=f"memref.store at .*outside of its buffer {place}") as caught:
        function(numbers(2, 64), 255)
    assert caught.value.stage is Stage.RUN
    function(numbers(2, 64), 256)  # an error is told once


@pytest.mark.parametrize(("options", "body"), cases(text_beside(__file__, "FAULTS")))
def test_what_a_device_faults_at_and_what_has_no_meaning_is_reported(
    options: dict[str, str], body: str
) -> None:
    with pytest.raises(CandidateError, match=options["fault"]) as caught:
        host_function(launched(body))(numbers(2, 64))
    assert caught.value.stage is Stage[options["stage"]]


@pytest.mark.slow
@hypothesis.given(host_programs())
@hypothesis.settings(max_examples=15, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
def test_the_interpretation_of_independent_threads_is_what_loops_give(program: RandomProgram) -> None:
    loops = host_function(program.text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels_on_host, "has_independent_threads", lambda _kernel: False)
        threads = host_function(program.text)
    own, other = copies(program.arguments), copies(program.arguments)
    for found, expected in zip((*listed(threads(*own)), *own), (*listed(loops(*other)), *other), strict=True):
        np.testing.assert_array_equal(found, expected, program.text)
    assert threads.program.written == loops.program.written


def test_every_thread_runs_once_and_sizes_and_global_indices_are_those_of_the_launch() -> None:
    a = np.zeros((2, 3, 5, 2), np.float32)
    host_function(text_beside(__file__, "SIZES"))(a)
    np.testing.assert_array_equal(a, np.broadcast_to(15 + np.arange(10).reshape(2, 1, 5, 1), a.shape))


def test_device_memory_becomes_host_memory_and_kernels_of_one_name_stay_two() -> None:
    for name, before, after in (("TWO_OF_ONE_NAME", 4, 14), ("OWN_MEMORY", [0, 1, 2, 3], [3, 2, 1, 0])):
        a = np.array(before, np.float32)
        host_function(text_beside(__file__, name))(a)
        np.testing.assert_array_equal(a, after)
    function = host_function(text_beside(__file__, "TOKENS"))
    b = np.zeros(4, np.float32)
    function(np.ones(4, np.float32), b)
    assert (b == 2).all()
    assert function.allocations == 0


@pytest.mark.parametrize("segments", ["operandSegmentSizes", "operand_segment_sizes"])  # as they once were
def test_a_stream_of_the_caller_is_no_argument_on_the_host(segments: str) -> None:
    text = (EXAMPLES / "gpux_users_stream.mlir").read_text()
    function = host_function(text.replace("operandSegmentSizes", segments))
    doubled = np.zeros(128, np.float32)
    function(NUMBERS, doubled)
    np.testing.assert_array_equal(doubled, 2 * NUMBERS)


def test_an_op_that_gpux_does_not_have_is_refused_and_a_chosen_stream_forgotten() -> None:
    text = (EXAMPLES / "gpux_users_stream.mlir").read_text().replace('"gpux.wait"', '"gpux.flush"')
    refused = r"^gpux\.flush at .*: found gpux\.flush, allowed gpux\.alloc, gpux\."
    with pytest.raises(CandidateError, match=refused):
        host_function(text)
    source, target = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    host_function(text_beside(__file__, "CHOSEN"))(source, target, True)
    assert np.array_equal(target, source)


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_the_magnitude_of_integers_is_numpys(bits: int) -> None:
    kind, least = f"tensor<5xi{bits}>", -(2 ** (bits - 1))
    x = np.array([least, least + 1, -3, 0, 7], f"int{bits}")
    text = f"func.func @main(%x: {kind}) -> {kind} {{ %y = math.absi %x : {kind} return %y : {kind} }}"
    np.testing.assert_array_equal(cpu_function(text)(x), np.abs(x))


def script(problem: Problem, threads: int = 1) -> Script:
    machine, names = describe_machine(), ("matmul_cpu_packed", "matmul_cpu_direct")
    variables = variables_of(problem, machine, threads)
    file = load_space_file(default_space_file())
    feasible = FeasibleSet.of(spaces_for(file, problem, machine.isa, variables, names))
    point = feasible.part(feasible.is_preferred).candidate(0)
    return Binder(tuple(map(load_strategy, names)), problem, variables, threads).bind(point)


@pytest.mark.parametrize(("problems", "threads"), BOUND.values(), ids=BOUND)
def test_kernels_are_linked_and_other_matmuls_stay_loops(problems: list[Problem], threads: int) -> None:
    scripts = {problem: script(problem, threads) for problem in problems}
    assert ("// panels: " in scripts[OTHER].text) == (threads > 1)
    function = host_function(TEXT, scripts=scripts)
    llvm = function.program.llvm
    if threads == 1:
        assert llvm.count("call @matmul_0(") == len(problems)
        assert ("llvm.func @matmul_1(" in llvm) == (len(problems) == 2)
    else:  # panel by panel
        assert len([line for line in llvm.splitlines() if "llvm.call @matmul_" in line]) >= 2
    a, b, u, v, c = map(numbers, (40, 16, 40, 8, 40), (16, 24, 8, 24, 24))
    np.testing.assert_allclose(function(a, b, u, v, c), u @ v - c, rtol=0, atol=2e-5)
    assert function.allocations == 0


TENSORS_LEFT = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %product = transform.structured.match ops{["linalg.matmul"]} in %root
      : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_for %product tile_sizes [4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
"""


def test_a_script_that_leaves_tensors_is_bufferized_in_a_program_as_in_its_trial() -> None:
    function = host_function(TEXT, scripts={OTHER: Script.of(TENSORS_LEFT)})
    assert "call @matmul_0(" in function.program.llvm
    a, b, u, v, c = map(numbers, (40, 16, 40, 8, 40), (16, 24, 8, 24, 24))
    np.testing.assert_allclose(function(a, b, u, v, c), u @ v - c, rtol=0, atol=2e-5)


def test_only_the_product_of_a_kernel_is_written_and_a_script_for_another_problem_refused() -> None:
    program = host_function(text_beside(__file__, "ON_BUFFERS"), scripts={OTHER: script(OTHER)}).program
    assert program.llvm.count("call @matmul_0(") == 1
    assert program.written == (False, False, True)
    bound = Script.of(partitions_comment(partition(PROBLEM, 2, "m", 30)) + "\n" + script(OTHER).text)
    with pytest.raises(CandidateError, match="script: panels") as caught:
        host_function(TEXT.replace("40x", "44x"), scripts={Matmul(44, 24, 8): bound})
    assert caught.value.stage is Stage.BIND
