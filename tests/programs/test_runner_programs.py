"""Programs that print by MLIR's runner functions, as those of upstream's integration tests do."""

import re
from collections.abc import Iterator

import pytest

from tuner.core.candidate import TargetName
from tuner.programs.request import DeviceOptions, ProgramOptions, ProgramReport, ProgramRequest
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

SQUARES = """
module attributes {{gpu.container_module}} {{
  gpu.module @kernels {{
    gpu.func @squares(%a: memref<2x3xf32>, %first: i32) kernel {{
      %i = gpu.block_id x
      %j = gpu.thread_id x
      %s = arith.addi %i, %j : index
      %n = arith.index_cast %s : index to i32
      %m = arith.addi %n, %first : i32
      %x = arith.sitofp %m : i32 to f32
      %y = arith.mulf %x, %x : f32
      memref.store %y, %a[%i, %j] : memref<2x3xf32>
      gpu.return
    }}
  }}
  func.func private @printMemrefF32(memref<*xf32>) {interface}
  func.func private @printI64(i64)
  func.func private @printNewline()
  func.func @main() {{
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %first = arith.constant 1 : i32
    %n = arith.constant 42 : i64
    %a = memref.alloc() : memref<2x3xf32>
    gpu.launch_func @kernels::@squares blocks in (%c2, %c1, %c1) threads in (%c3, %c1, %c1)
      args(%a : memref<2x3xf32>, %first : i32)
    %u = memref.cast %a : memref<2x3xf32> to memref<*xf32>
    call @printMemrefF32(%u) : (memref<*xf32>) -> ()
    call @printI64(%n) : (i64) -> ()
    call @printNewline() : () -> ()
    memref.dealloc %a : memref<2x3xf32>
    return
  }}
}}
"""
ROWS = "[[1,   4,   9], \n [4,   9,   16]]\n42\n"


def ran(text: str, target: str, **arguments: object) -> ProgramReport:
    from tuner.programs.service import run_program

    return run_program(ProgramRequest(text, TargetName.parse(target), **arguments))  # type: ignore[arg-type]


def targets() -> Iterator[tuple[str, dict[str, object]]]:
    yield "cpu", {"is_timed": False}
    for order in ORDERS:
        yield "simulator:sm_90", {"options": ProgramOptions(order=order)}
    for form in ("tokens", "sync"):
        yield "simulator:sm_90", {"options": ProgramOptions(DeviceOptions(form=form))}


@pytest.mark.parametrize(("target", "arguments"), [*targets()])
@pytest.mark.parametrize("interface", ["", "attributes {llvm.emit_c_interface}"])
def test_what_a_kernel_wrote_is_printed(target: str, arguments: dict[str, object], interface: str) -> None:
    report = ran(SQUARES.format(interface=interface), target, **arguments)
    head, _, printed = report.printed.partition(" data = \n")
    assert re.fullmatch(r"Unranked Memref base@ = 0x[0-9a-f]+ rank = 2 offset = 0 sizes.*strides.*", head)
    assert printed == ROWS
    assert report.is_right


def test_a_program_that_prints_is_compared_without_printing_twice() -> None:
    report = ran(SQUARES.format(interface=""), "simulator:sm_90", is_compared=True)
    assert report.printed.count("Unranked") == 1
    assert [(one.name, one.verdict) for one in report.comparisons] == [("printed", "equal")]


def test_vectors_are_printed() -> None:
    text = """
    func.func @main() {
      %v = arith.constant dense<[[1.5, 2.0], [3.0, -4.0]]> : vector<2x2xf32>
      vector.print %v : vector<2x2xf32>
      %n = arith.constant 7 : index
      vector.print %n : index
      vector.print str "end\\0A"
      return
    }"""
    assert ran(text, "cpu", is_timed=False).printed == "( ( 1.5, 2 ), ( 3, -4 ) )\n7\nend\n"


def test_another_function_without_a_body_is_refused() -> None:
    from tuner.core.errors import CandidateError

    text = "func.func private @other()\nfunc.func @main() {\n  call @other() : () -> ()\n  return\n}"
    with pytest.raises(
        CandidateError, match=r"found a call of @other, which has no body, allowed .*@printMemref"
    ):
        ran(text, "cpu")
