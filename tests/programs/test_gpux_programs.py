"""GPUX with regions in functions of their own and streams that the program chooses, run in all orders."""

import numpy as np
import pytest

from tuner.core.errors import TunerError
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

STREAM, BUFFER = "!gpux.StreamType", "memref<16xf32>"
KERNEL = """gpu.module @m {
  gpu.func @add(%a: memref<16xf32>, %x: f32) kernel {
    %i = gpu.thread_id x
    %v = memref.load %a[%i] : memref<16xf32>
    %w = arith.addf %v, %x : f32
    memref.store %w, %a[%i] : memref<16xf32>
    gpu.return
  }
}"""
REGION = f"""func.func private @region(%s: {STREAM}, %d: {BUFFER}, %x: f32) -> {BUFFER} {{
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpux.launch_func %s @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%d : {BUFFER}, %x : f32)
  return %d : {BUFFER}
}}
func.func private @twice(%s: {STREAM}, %d: {BUFFER}, %x: f32) -> {BUFFER} {{
  %once = call @region(%s, %d, %x) : ({STREAM}, {BUFFER}, f32) -> {BUFFER}
  %both = call @region(%s, %once, %x) : ({STREAM}, {BUFFER}, f32) -> {BUFFER}
  return %both : {BUFFER}
}}"""
CHOICES = f"""
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %s = arith.select %first, %p, %q : {STREAM}
  %d = gpux.alloc (%s) : memref<16xf32, 1>
  %e = memref.memory_space_cast %d : memref<16xf32, 1> to {BUFFER}
  gpux.memcpy %s, %e, %a : {BUFFER}, {BUFFER}
  %f = func.call @twice(%s, %e, %one) : ({STREAM}, {BUFFER}, f32) -> {BUFFER}
  gpux.wait %s
  %t = scf.if %first -> {STREAM} {{
    scf.yield %q : {STREAM}
  }} else {{
    scf.yield %p : {STREAM}
  }}
  %g = func.call @region(%t, %f, %two) : ({STREAM}, {BUFFER}, f32) -> {BUFFER}
  gpux.memcpy %t, %a, %g : {BUFFER}, {BUFFER}
  gpux.dealloc %t, %g : {BUFFER}
  gpux.wait %t
  return"""
OWN = f"""
  %device = "gpux.create_device"() : () -> !gpux.DeviceType
  %context = "gpux.create_context"(%device) : (!gpux.DeviceType) -> !gpux.ContextType
  %p = "gpux.create_stream"(%device, %context) : (!gpux.DeviceType, !gpux.ContextType) -> {STREAM}
  %q = gpux.create_stream : {STREAM}"""


def module(arguments: str, *parts: str) -> str:
    body = "\n".join(parts)
    main = f"func.func @main({arguments}) {{{body}\n}}"
    return f"module attributes {{gpu.container_module}} {{ {KERNEL}\n{REGION}\n{main} }}"


PROGRAMS = {
    "own streams": module(f"%a: {BUFFER}, %first: i1", OWN, CHOICES),
    "streams as arguments": module(f"%p: {STREAM}, %a: {BUFFER}, %first: i1, %q: {STREAM}", CHOICES),
}
TARGETS = [("cpu", "fifo"), *(("simulator", order) for order in ORDERS)]


@pytest.mark.parametrize(("target", "order"), TARGETS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_regions_run_on_the_stream_that_was_chosen(name: str, first: bool, target: str, order: str) -> None:
    import tuner

    program = tuner.compile_program(PROGRAMS[name], target, order=order)
    a = np.arange(16, dtype=np.float32)
    program(a, first)
    assert np.array_equal(a, np.arange(16) + 4)
    assert not getattr(getattr(program, "device", None), "reports", ())


def test_work_that_the_program_leaves_unordered_on_two_streams_is_found() -> None:
    import tuner

    text = PROGRAMS["own streams"].replace("gpux.wait %s\n", "\n")
    program = tuner.compile_program(text, "simulator", order="lifo")
    program(np.arange(16, dtype=np.float32), True)
    assert any("nothing orders" in str(report) for report in program.device.reports)  # type: ignore[union-attr]


@pytest.mark.parametrize("options", [{"form": "tokens"}, {"form": "sync"}, {"pinned": True}])
def test_words_that_say_nothing_to_gpux_are_refused(options: dict[str, object]) -> None:
    import tuner

    with pytest.raises(
        TunerError, match=rf"{next(iter(options))}.* cannot be combined with a program that .*\(GPUX\)"
    ):
        tuner.compile_program(PROGRAMS["own streams"], "simulator", **options)  # type: ignore[arg-type]


def test_a_region_of_several_blocks_is_refused() -> None:
    import tuner

    blocks = REGION.replace("  gpux.launch_func", "  cf.br ^next\n^next:\n  gpux.launch_func", 1)
    text = PROGRAMS["own streams"].replace(REGION, blocks)
    with pytest.raises(TunerError, match="found @region with several blocks and streams, allowed one block"):
        tuner.compile_program(text, "simulator")
