"""Programs whose kernels are interpreted, called on the host as ``--compare`` calls them."""

from typing import Any

import hypothesis
import numpy as np
import pytest

from benchmarks.fuzzing.host_programs import RandomProgram, host_programs
from tests.programs.lowering.compiled import host_function
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.programs.execution import copies

pytest.importorskip("tuner.programs.lowering.host")
pytestmark = pytest.mark.mlir
WORKGROUP = "#gpu.address_space<workgroup>"


def launched(body: str, arguments: str = "%a: memref<2x64xf32>", sizes: str = "") -> str:
    """Returns a program that launches 2 blocks of 64 threads."""
    return f"""func.func @f({arguments}) {{
      %c0 = arith.constant 0 : index %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index %c64 = arith.constant 64 : index
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {sizes} {{
        {body}
        gpu.terminator
      }}
      return
    }}"""


SHARED = "workgroup(%m : memref<64xf32, 3>)"
REVERSE = text_beside(__file__, "REVERSE")


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def reverse(looped: str = "{}") -> str:
    """Returns a program that reverses rows; the launch stands where ``{}`` does."""
    head, launch = launched(REVERSE, sizes=SHARED).split("gpu.launch", 1)
    body, end = launch.rsplit("return", 1)
    return head + looped.format("gpu.launch" + body) + "return" + end


def test_threads_that_share_memory_give_what_numpy_gives() -> None:
    a = numbers(2, 64)
    before = a.copy()
    function = host_function(reverse())
    function(a)
    np.testing.assert_array_equal(a, before[:, ::-1])
    assert function.program.interpreted


def test_a_kernel_of_independent_threads_stays_loops() -> None:
    assert not host_function(launched(text_beside(__file__, "INDEPENDENT"))).program.interpreted


def test_what_an_interpreted_kernel_only_reads_is_not_written() -> None:
    arguments = "%a: memref<2x64xf32>, %b: memref<2xf32>"
    function = host_function(launched(text_beside(__file__, "READS"), arguments))
    assert function.program.written == (False, True)
    a, b = numbers(2, 64), numbers(2)
    a.setflags(write=False)
    function(a, b)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-5)


SCALARS = {"f16": 1.5, "bf16": -2.0, "f32": 0.25, "f64": 3.0, "i8": -7, "i16": 300, "i32": -70000}


def test_numbers_of_every_kind_cross() -> None:
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


def test_a_vector_crosses_as_compiled_code_lays_it_out() -> None:
    constant = "%v = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : vector<2x3xf32>"
    a = numbers(2, 64)
    host_function(launched(text_beside(__file__, "VECTOR")).replace("%c0 = ", f"{constant}\n%c0 = ", 1))(a)
    assert (a == 6).all()


def test_launches_in_a_loop_see_what_those_before_have_left() -> None:
    text = reverse("scf.for %i = %c0 to %n step %c1 {{ {} }}")
    function = host_function(text.replace("(%a: memref<2x64xf32>)", "(%a: memref<2x64xf32>, %n: index)"))
    for times in (2, 3):
        a = numbers(2, 64)
        function(a, times)
        np.testing.assert_array_equal(a, numbers(2, 64)[:, :: 1 if times == 2 else -1])


def test_shared_memory_that_is_reported_at_run_time_has_that_size() -> None:
    arguments, sizes = "%a: memref<2x64xf32>, %n: i32", "dynamic_shared_memory_size %n"
    function = host_function(launched(text_beside(__file__, "REPORTED_SIZE"), arguments, sizes))
    function(numbers(2, 64), 256)
    place = r"in block \(0, 0, 0\), thread \(63, 0, 0\)"
    with pytest.raises(CandidateError, match=f"memref.store at .*outside of its buffer {place}") as caught:
        function(numbers(2, 64), 255)
    assert caught.value.stage is Stage.RUN
    function(numbers(2, 64), 256)  # an error is told once


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%p = arith.cmpi ult, %tx, %c2 : index scf.if %p { gpu.barrier }",
            r"gpu.barrier at .*some of the threads of a block only, not block \(0, 0, 0\), thread \(2,",
        ),
        (
            """%x = memref.load %a[%c2, %tx] : memref<2x64xf32> gpu.barrier
            memref.store %x, %a[%c0, %tx] : memref<2x64xf32>""",
            r"memref.load at .*found index 2 of dimension 0, allowed 0 to 1, in block \(0, 0, 0\)",
        ),
        (
            f"""%m = gpu.dynamic_shared_memory : memref<?xi8, {WORKGROUP}>
            %s = memref.view %m[%c1][] : memref<?xi8, {WORKGROUP}> to memref<4xf32, {WORKGROUP}>
            %v = memref.load %s[%c1] : memref<4xf32, {WORKGROUP}>
            memref.store %v, %a[%c0, %tx] : memref<2x64xf32>""",
            "memref.load at .*found an address that is no multiple of 4",
        ),
    ],
)
def test_what_a_device_faults_at_is_reported(body: str, message: str) -> None:
    with pytest.raises(CandidateError, match=f"kernel f_kernel: {message}") as caught:
        host_function(launched(body))(numbers(2, 64))
    assert caught.value.stage is Stage.RUN


def test_what_is_not_known_is_refused_with_its_name_and_place() -> None:
    message = r"nvvm.fence.mbarrier.init at .*: found no meaning on the host"
    with pytest.raises(CandidateError, match=message) as caught:
        host_function(launched("nvvm.fence.mbarrier.init"))
    assert caught.value.stage is Stage.COMPILE


def test_a_kernel_that_a_program_brings_may_have_memory_of_its_own() -> None:
    a = np.arange(4, dtype=np.float32)
    host_function(text_beside(__file__, "OWN_MEMORY"))(a)
    np.testing.assert_array_equal(a, [3, 2, 1, 0])


def listed(results: Any) -> tuple[Any, ...]:
    return () if results is None else results if isinstance(results, tuple) else (results,)


@pytest.mark.slow
@hypothesis.given(host_programs())
@hypothesis.settings(max_examples=15, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
def test_the_interpretation_of_independent_threads_is_what_loops_give(program: RandomProgram) -> None:
    from tuner.programs.lowering import host

    loops = host_function(program.text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "has_independent_threads", lambda _kernel: False)
        threads = host_function(program.text)
    own, other = copies(program.arguments), copies(program.arguments)
    for found, expected in zip((*listed(threads(*own)), *own), (*listed(loops(*other)), *other), strict=True):
        np.testing.assert_array_equal(found, expected, program.text)
    assert threads.program.written == loops.program.written


HEAD = """%c1 = arith.constant 1 : index %c2 = arith.constant 2 : index %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index %one = arith.constant 1.0 : f32"""


def program(body: str, grid: str = "%c2, %c3, %c1", block: str = "%c5, %c1, %c2") -> str:
    """Returns a launch of 2 x 3 blocks of 5 x 1 x 2 threads unless told otherwise."""
    blocks = ", ".join(f"%g{axis} = {size}" for axis, size in zip("xyz", grid.split(", "), strict=True))
    sizes = ", ".join(f"%s{axis} = {size}" for axis, size in zip("xyz", block.split(", "), strict=True))
    return f"""func.func @f(%a: memref<2x3x5x2xf32>) {{
      {HEAD}
      gpu.launch blocks(%bx, %by, %bz) in ({blocks}) threads(%tx, %ty, %tz) in ({sizes}) {{
        {body}
        gpu.terminator
      }}
      return
    }}"""


@pytest.mark.slow
def test_every_thread_of_every_block_runs_once() -> None:
    a = np.zeros((2, 3, 5, 2), np.float32)
    host_function(program(text_beside(__file__, "ONCE")))(a)
    assert (a == 1).all()


def test_sizes_and_global_indices_are_those_of_the_launch() -> None:
    a = np.zeros((2, 3, 5, 2), np.float32)
    host_function(program(text_beside(__file__, "SIZES")))(a)
    np.testing.assert_array_equal(a[:, 0, :, 0], 15 + np.arange(10).reshape(2, 5))


def test_two_kernels_of_one_name_stay_two() -> None:
    launch = (
        "gpu.launch_func @{0}::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<f32>)"
    )
    kernel = """gpu.module @{0} {{ gpu.func @k(%a: memref<f32>) kernel {{
        %x = memref.load %a[] : memref<f32>
        %c = arith.constant {1} : f32
        %y = arith.{2} %x, %c : f32
        memref.store %y, %a[] : memref<f32>
        gpu.return }} }}"""
    text = f"""module attributes {{gpu.container_module}} {{
      {kernel.format("m", "3.0", "addf")} {kernel.format("n", "2.0", "mulf")}
      func.func @f(%a: memref<f32>) {{ {HEAD} {launch.format("m")} {launch.format("n")} return }} }}"""
    a = np.array(4, np.float32)
    host_function(text)(a)
    assert a == 14


def test_device_memory_becomes_host_memory_and_tokens_vanish() -> None:
    function = host_function(text_beside(__file__, "TOKENS"))
    b = np.zeros(4, np.float32)
    function(np.ones(4, np.float32), b)
    assert (b == 2).all()
    assert function.allocations == 0
