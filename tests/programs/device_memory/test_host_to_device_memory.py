import struct
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from benchmarks.fuzzing.host_program_writer import ProgramFeatures
from benchmarks.fuzzing.host_programs import RandomProgram, host_programs
from benchmarks.fuzzing.program_check import SIMULATOR, check_calls
from benchmarks.program_compiler import compiler_of
from tests.examples import costly
from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.programs.request import DeviceOptions
from tuner.programs.run.device_function import DeviceFunction
from tuner.programs.run.marshalling import PassedArgument
from tuner.runtime.arrays import MemRef
from tuner.simulator.device.simulated_device import SimulatedDevice

pytestmark = pytest.mark.mlir

memory = pytest.importorskip("tuner.programs.device_memory.conversion")
bindings = pytest.importorskip("tuner.mlir.bindings")

OUTLINE = "builtin.module(gpu-launch-sink-index-computations,gpu-kernel-outlining,canonicalize,cse)"
PINNED: dict[str, Any] = {"pinned": True}
ON_DEVICE: dict[str, Any] = {"device_arguments": True}
M = "memref<4x4xf32>"
A = np.arange(16, dtype=np.float32).reshape(4, 4)
B = A[::-1].copy()


def launch(body: str) -> str:
    """Returns a kernel with one thread for each element of 4 by 4."""
    return f"""gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
        threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {{
      {body}
      gpu.terminator
    }}"""


def doubled(source: str, target: str) -> str:
    """Returns a kernel that writes twice the source to the target, both of 4 by 4."""
    return launch(f"""%once = memref.load {source}[%bx, %tx] : {M}
      %twice = arith.addf %once, %once : f32
      memref.store %twice, {target}[%bx, %tx] : {M}""")


def program(*body: str, arguments: str = f"%a: {M}, %b: {M}", results: str = "", extra: str = "") -> str:
    lines = "\n    ".join(body)
    return f"""module attributes {{gpu.container_module}} {{
  memref.global constant @table : {M} = dense<3.0>
  memref.global @state : {M} = dense<1.0>
  {extra}
  func.func @main({arguments}) {f"-> ({results})" if results else ""} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %one = arith.constant 1.0 : f32
    {lines}
    {"" if "return" in lines else "return"}
  }}
}}"""


def rewritten(text: str, **options: Any) -> str:
    with parsed(text) as module:
        bindings.passmanager.PassManager.parse(OUTLINE).run(module.operation)
        memory.host_to_device_memory(module, DeviceOptions(**options))
        assert module.operation.verify()
        bindings.passmanager.PassManager.parse("builtin.module(canonicalize,cse)").run(module.operation)
        return str(module)


def main_of(text: str) -> str:
    """Returns the text of @main alone."""
    return "  func.func @main" + text.split("func.func @main")[1].split("  gpu.module")[0]


def check(text: str, *arguments: Any, copies: int | None = None, **options: Any) -> None:
    """Compares calls on the simulated GPU with loops on the host; ``copies`` is what each call makes."""
    counts = check_calls(text, arguments, DeviceOptions(form="sync", **options))
    if copies is not None:
        assert counts.copies == copies


def test_arguments_go_in_and_out_once(golden: Callable[[str, str], None]) -> None:
    text = program(doubled("%a", "%b"), doubled("%b", "%a"), doubled("%a", "%b"))
    golden("host_to_device_memory_arguments.mlir", main_of(rewritten(text)))
    check(text, A, B, copies=3)


def test_a_buffer_that_only_kernels_touch_has_no_host_memory(golden: Callable[[str, str], None]) -> None:
    text = program(
        f"%t = memref.alloc() : {M}", doubled("%a", "%t"), doubled("%t", "%b"), f"memref.dealloc %t : {M}"
    )
    after = rewritten(text)
    assert "memref.alloc" not in after
    golden("host_to_device_memory_scratch.mlir", main_of(after))
    check(text, A, B, copies=2)


def test_a_constant_is_uploaded_once_for_many_kernels(golden: Callable[[str, str], None]) -> None:
    get = f"memref.get_global @table : {M}"
    text = program(
        f"%g = {get}", doubled("%g", "%a"), f"%h = {get}", doubled("%h", "%b"), doubled("%g", "%b")
    )
    after = rewritten(text)
    golden("host_to_device_memory_global.mlir", main_of(after))
    assert after.count("gpu.memcpy") == 3
    check(text, A, B)


def test_a_global_that_kernels_write_is_written_back() -> None:
    """The next call reads it: @main leaves in %b what the one before put there."""
    get = f"%g = memref.get_global @state : {M}"
    check(program(get, f"memref.copy %g, %b : {M} to {M}", doubled("%a", "%g")), A, B, copies=2)


def test_results_are_host_memory(golden: Callable[[str, str], None]) -> None:
    body = (f"%t = memref.alloc() : {M}", doubled("%a", "%t"), f"return %t, %t, %a : {M}, {M}, {M}")
    text = program(*body, results=f"{M}, {M}, {M}")
    golden("host_to_device_memory_results.mlir", main_of(rewritten(text)))
    check(text, A, B, copies=2)


def test_copies_go_the_direct_way_between_all_memories(golden: Callable[[str, str], None]) -> None:
    text = program(
        f"%t = memref.alloc() : {M}",
        f"%h = memref.alloc() : {M}",  # no kernel takes it: stays on the host
        f"memref.copy %a, %t : {M} to {M}",  # host to device
        doubled("%t", "%b"),
        f"memref.copy %b, %t : {M} to {M}",  # device to device
        doubled("%t", "%b"),
        f"memref.copy %t, %h : {M} to {M}",  # device to host
        f"memref.copy %h, %a : {M} to {M}",  # host to host
    )
    golden("host_to_device_memory_copies.mlir", main_of(rewritten(text)))
    check(text, A, B)


def test_parts_of_buffers_are_copied_as_they_are() -> None:
    part = "memref<4x2xf32, strided<[4, 1]>>"
    right = "memref<4x2xf32, strided<[4, 1], offset: 2>>"
    text = program(
        f"%left = memref.subview %b[0, 0] [4, 2] [1, 1] : {M} to {part}",
        f"%right = memref.subview %b[0, 2] [4, 2] [1, 1] : {M} to {right}",
        doubled("%a", "%b"),
        f"memref.copy %left, %right : {part} to {right}",
        doubled("%b", "%a"),
    )
    check(text, A, B)


def test_rows_that_are_not_adjacent_go_through_memory_where_they_are(
    golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "memref<?x4xf32, strided<[?, 1], offset: ?>>"
    body = launch(f"""%x = memref.load %a[%bx, %tx] : {kind}
      %y = arith.addf %x, %one : f32
      memref.store %y, %a[%bx, %tx] : {kind}""")
    text = program(body, arguments=f"%a: {kind}")
    golden("host_to_device_memory_strided.mlir", main_of(rewritten(text)))
    wide = np.arange(48, dtype=np.float32).reshape(4, 12)
    expected = wide.copy()
    expected[:, 5:9] += 1
    rows = MemRef(wide.ctypes.data, wide.ctypes.data, 5, (4, 4), (12, 1))
    passed = PassedArgument(struct.pack("7q", *rows.words), True, wide, wide)
    # of Python's callers only arrays without gaps are taken
    monkeypatch.setattr("tuner.programs.run.device_function.pass_arguments", lambda *_: (passed,))
    device = SimulatedDevice("sm_90")
    code = compiler_of(SIMULATOR).compile(text, "main", None, DeviceOptions(form="sync")).code
    with closing(DeviceFunction(code, device)) as loaded:
        loaded(wide)
    np.testing.assert_array_equal(wide, expected)
    assert device.reports == ()


def test_a_loop_copies_before_and_after_it(golden: Callable[[str, str], None]) -> None:
    text = program(f"scf.for %i = %c0 to %c4 step %c1 {{ {doubled('%a', '%b')} {doubled('%b', '%a')} }}")
    golden("host_to_device_memory_loop.mlir", main_of(rewritten(text)))
    check(text, A, B, copies=4)


def test_host_code_in_a_loop_sees_each_turn() -> None:
    text = program(
        f"""scf.for %i = %c0 to %c4 step %c1 {{
          {doubled("%a", "%b")}
          %x = memref.load %b[%i, %i] : {M}
          memref.store %x, %a[%i, %c0] : {M}
        }}"""
    )
    check(text, A, B)


def test_two_buffers_that_a_loop_swaps_stay_on_the_device(golden: Callable[[str, str], None]) -> None:
    text = program(
        f"""%r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %a, %y = %b) -> ({M}, {M}) {{
          {doubled("%x", "%y")}
          scf.yield %y, %x : {M}, {M}
        }}"""
    )
    golden("host_to_device_memory_swap.mlir", main_of(rewritten(text)))
    check(text, A, B, copies=4)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("iterations", [0, 1, 2])
def test_a_while_loop_tests_on_the_host_what_kernels_write(iterations: int) -> None:
    text = program(
        f"""scf.while : () -> () {{
          %x = memref.load %a[%c0, %c0] : {M}
          %go = arith.cmpf olt, %x, %limit : f32
          scf.condition(%go)
        }} do {{
          {doubled("%a", "%a")}
          scf.yield
        }}""",
        arguments=f"%a: {M}, %limit: f32",
    )
    check(text, np.ones((4, 4), np.float32), 2.0**iterations - 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("flag", [True, False])
def test_branches_leave_buffers_in_one_place(flag: bool) -> None:
    for then, otherwise in (
        (doubled("%a", "%b"), f"memref.store %one, %b[%c0, %c0] : {M}"),
        (f"memref.store %one, %b[%c0, %c0] : {M}", ""),
        (doubled("%a", "%b"), ""),
    ):
        branch = f"scf.if %flag {{ {then} }}" + (f" else {{ {otherwise} }}" if otherwise else "")
        text = program(
            doubled("%b", "%a"), branch, doubled("%b", "%a"), arguments=f"%a: {M}, %b: {M}, %flag: i1"
        )
        check(text, A, B, flag)


@pytest.mark.parametrize("flag", [True, False])
def test_a_buffer_that_is_freed_in_a_branch_is_freed_once(flag: bool) -> None:
    text = program(
        f"%t = memref.alloc() : {M}",
        doubled("%a", "%t"),
        f"%x = memref.load %t[%c0, %c1] : {M} memref.store %x, %b[%c0, %c0] : {M}",
        f"scf.if %flag {{ memref.dealloc %t : {M} }} else {{ memref.dealloc %t : {M} }}",
        arguments=f"%a: {M}, %b: {M}, %flag: i1",
    )
    check(text, A, B, flag)


def test_sizes_may_be_known_at_run_time_only() -> None:
    kind = "memref<?x4xf32>"
    text = program(
        f"%n = memref.dim %a, %c0 : {kind}",
        f"%t = memref.alloc(%n) : {kind}",
        doubled("%a", "%t").replace(M, kind),
        doubled("%t", "%a").replace(M, kind),
        arguments=f"%a: {kind}",
    )
    check(text, A, copies=2)


def test_numbers_stay_operands_of_kernels() -> None:
    text = program(launch(f"memref.store %s, %a[%bx, %tx] : {M}"), arguments=f"%a: {M}, %s: f32")
    assert "%arg1 : f32" in rewritten(text)
    check(text, A, 2.5)


def test_a_fill_on_the_host_needs_nothing_from_the_device() -> None:
    text = program(doubled("%a", "%b"), f"linalg.fill ins(%one : f32) outs(%b : {M})")
    assert rewritten(text).count("gpu.memcpy") == 1
    check(text, A, B)


CALLEE = text_beside(__file__, "CALLEE")


def test_functions_that_are_called_see_host_memory_and_globals() -> None:
    text = program(
        f"%g = memref.get_global @state : {M}",
        doubled("%a", "%g"),
        doubled("%g", "%b"),
        f"func.call @add(%b) : ({M}) -> ()",
        doubled("%g", "%b"),
        extra=CALLEE,
    )
    check(text, A, B)


def test_arguments_in_device_memory_are_not_copied(golden: Callable[[str, str], None]) -> None:
    text = program(doubled("%a", "%b"), f"%t = memref.alloc() : {M}", doubled("%b", "%t"))
    golden("host_to_device_memory_device_arguments.mlir", main_of(rewritten(text, **ON_DEVICE)))
    check(text, A, B, copies=0, **ON_DEVICE)


def test_a_marked_argument_is_device_memory() -> None:
    text = program(doubled("%a", "%b"), arguments=f"%a: {M} {{tuner.device, llvm.noalias}}, %b: {M}")
    assert "tuner.device" not in rewritten(text)
    assert "llvm.noalias" in rewritten(text)
    assert rewritten(text).count("gpu.memcpy") == 1


def test_host_code_reads_device_arguments_through_memory_of_its_own() -> None:
    text = program(
        doubled("%a", "%b"),
        f"%x = memref.load %b[%c1, %c1] : {M} memref.store %x, %a[%c0, %c0] : {M}",
        f"return %b : {M}",
        results=M,
    )
    check(text, A, B, copies=3, **ON_DEVICE)


def test_pinned_memory_takes_the_place_of_allocations_that_are_copied(
    golden: Callable[[str, str], None],
) -> None:
    text = program(
        f"%t = memref.alloc() : {M}",
        f"%kept = memref.alloc() : {M}",
        f"memref.store %one, %t[%c0, %c0] : {M}",
        doubled("%t", "%kept"),
        f"memref.dealloc %t : {M}",
        f"return %kept : {M}",
        results=M,
    )
    golden("host_to_device_memory_pinned.mlir", main_of(rewritten(text, **PINNED)))
    write = "memref.store %one, %t"  # of one element, while the kernel reads all
    check(text.replace(write, f"memref.copy %a, %t : {M} to {M} {write}"), A, B, **PINNED)


def test_a_function_without_kernels_stays_as_it_is() -> None:
    text = program(f"memref.copy %a, %b : {M} to {M}")
    assert "gpu.memcpy" not in rewritten(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            program(
                f"cf.cond_br %flag, ^one, ^other ^one: {doubled('%a', '%b')} return ^other:",
                arguments=f"%a: {M}, %b: {M}, %flag: i1",
            ).replace("^other:\n    \n", "^other: return\n"),
            r"^@main: found 3 blocks, allowed scf\.for, scf\.while, scf\.if$",
        ),
        (
            program(
                f"""%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %a) -> ({M}) {{
                  %t = memref.alloc() : {M} {doubled("%p", "%t")} scf.yield %t : {M}
                }}"""
            ),
            r"^scf\.yield: %alloc of memref\.alloc, allocated in this block, cannot leave the block$",
        ),
        (
            program(
                f"%t = memref.alloc() : {M}",
                doubled("%a", "%t"),
                f"%r = arith.select %flag, %t, %b : {M} memref.dealloc %r : {M}",
                arguments=f"%a: {M}, %b: {M}, %flag: i1",
            ),
            r"^memref\.dealloc: found %alloc of memref\.alloc or argument %arg1, allowed one allocation$",
        ),
        (
            program(
                f"%t = memref.alloc() : {M}",
                doubled("%a", "%t"),
                f"scf.if %flag {{ memref.dealloc %t : {M} }}",
                f"return %t : {M}",
                arguments=f"%a: {M}, %flag: i1",
                results=M,
            ),
            r"^memref\.dealloc in an inner block: %alloc of memref\.alloc is freed and returned$",
        ),
        (
            program(f"%t = memref.alloc() : {M}", doubled("%a", "%t"), *[f"memref.dealloc %t : {M}"] * 2),
            r"^memref\.dealloc: %alloc of memref\.alloc is freed twice$",
        ),
        (
            program(
                f"%x = func.call @make() : () -> {M}",
                doubled("%a", "%x"),
                extra=f"func.func private @make() -> {M}",
            ),
            r"found a buffer of unknown origin, allowed allocations and views$",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(text: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason) as failure:
        rewritten(text)
    assert failure.value.stage is Stage.COMPILE


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            program(
                f"%g = memref.get_global @state : {M}",
                f"%r = arith.select %flag, %g, %a : {M}",
                doubled("%r", "%b"),
                arguments=f"%a: {M}, %b: {M}, %flag: i1",
            ),
            r"memref\.get_global in host memory and arguments in device memory cannot be combined",
        ),
        (
            program(
                "func.call @inner(%a) : (" + M + ") -> ()", extra=f"func.func @inner(%a: {M}) {{ return }}"
            ),
            r"^host program: @inner takes device memory, so it cannot be called$",
        ),
        (
            program(
                "%x = memref.load %a[%c0, %c0] : memref<4x4xf32, strided<[8, 1]>>",
                "memref.store %x, %b[%c0, %c0] : " + M,
                arguments=f"%a: memref<4x4xf32, strided<[8, 1]>>, %b: {M}",
            ),
            r"^argument %arg0: found memref<4x4xf32, strided<\[8, 1\]>> in device memory, used on the host",
        ),
    ],
)
def test_device_arguments_have_limits(text: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason):
        rewritten(text, **ON_DEVICE)


WITHOUT_GLOBALS = ProgramFeatures(globals=False)
FEW = settings(costly(8, 40), suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@FEW
@given(host_programs())
def test_random_programs_do_the_same_with_pinned_memory(case: RandomProgram) -> None:
    check(case.text, *case.arguments, **PINNED)


@pytest.mark.slow
@FEW
@given(host_programs(WITHOUT_GLOBALS))
def test_random_programs_do_the_same_on_arguments_in_device_memory(case: RandomProgram) -> None:
    check(case.text, *case.arguments, **ON_DEVICE)
