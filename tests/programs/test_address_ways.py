"""Memory that nobody frees lives as long as something holds its address, and all work on it is ordered."""

import pytest

from tests.programs.payload_rows import one_order
from tuner.core.candidate import TargetName
from tuner.programs.request import ProgramOptions, ProgramReport, ProgramRequest

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

PROGRAM = """
func.func private @printMemrefF32(memref<*xf32>)
func.func @main() {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<4xf32>
  %out = memref.alloc() : memref<4xf32>
  %flag = memref.alloc() : memref<i1>
  %t = arith.constant true
  memref.store %t, %flag[] : memref<i1>
  %true = memref.load %flag[] : memref<i1>
  scf.for %i = %c0 to %c4 step %c1 {{
    %n = arith.index_cast %i : index to i32
    %x = arith.sitofp %n : i32 to f32
    memref.store %x, %a[%i] : memref<4xf32>
  }}
  %o = gpu.alloc () : memref<4xf32>
  %d = gpu.alloc () : memref<4xf32>
  gpu.memcpy %d, %a : memref<4xf32>, memref<4xf32>
  {way}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {{
    {load}
    memref.store %v, %o[%tx] : memref<4xf32>
    gpu.terminator
  }}
  gpu.memcpy %out, %o : memref<4xf32>, memref<4xf32>
  %u = memref.cast %out : memref<4xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}}
"""
OF_MEMREF = "%v = memref.load %r[%tx] : memref<4xf32>"
OF_POINTER = """%at = arith.index_cast %tx : index to i64
    %q = llvm.getelementptr %p[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %q : !llvm.ptr -> f32"""
OF_NUMBER = (
    "%w = arith.index_cast %r : index to i64 %p = llvm.inttoptr %w : i64 to !llvm.ptr\n    " + OF_POINTER
)
ADDRESS = "%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index"
DESCRIPTOR = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>"
PAIR = "!llvm.struct<(i64, i64)>"
FROM_KEPT = "%r = memref.load %kept[%c0] : memref<1xindex>\n    " + OF_NUMBER
# Another kernel stores where the memory %d is.
ADDRESS_OF_KERNEL = f"""%kept = gpu.alloc () : memref<1xindex>
  gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%t0, %t1, %t2) in (%s0 = %c1, %s1 = %c1, %s2 = %c1) {{
    {ADDRESS}
    memref.store %n, %kept[%c0] : memref<1xindex>
    gpu.terminator
  }}"""
ADDRESS_OF_COPY = ADDRESS.replace("%d", "%e")
COPY = "%e = gpu.alloc () : memref<4xf32> gpu.memcpy %e, %d : memref<4xf32>, memref<4xf32>"
# Way of the address -> what makes %r or %p of the memory %d, and how the kernel loads from there.
WAYS = {
    "unranked": (
        (
            "%q = memref.cast %d : memref<4xf32> to memref<*xf32>"
            " %r = memref.cast %q : memref<*xf32> to memref<4xf32>"
        ),
        OF_MEMREF,
    ),
    "metadata": (
        (
            "%base, %o0, %n0, %s0 = memref.extract_strided_metadata %d"
            " : memref<4xf32> -> memref<f32>, index, index, index"
            " %r = memref.reinterpret_cast %base to offset: [%o0], sizes: [4], strides: [1]"
            " : memref<f32> to memref<4xf32, strided<[1], offset: ?>>"
        ),
        OF_MEMREF.replace("memref<4xf32>", "memref<4xf32, strided<[1], offset: ?>>"),
    ),
    "arithmetic": (f"{ADDRESS} %r = arith.addi %n, %c0 : index", OF_NUMBER),
    "vector": (
        (
            f"{ADDRESS} %b = vector.broadcast %n : index to vector<2xindex>"
            " %r = vector.extract %b[0] : index from vector<2xindex>"
        ),
        OF_NUMBER,
    ),
    "double": (
        (
            f"{ADDRESS} %m = arith.index_cast %n : index to i64 %f = arith.sitofp %m : i64 to f64"
            " %g = arith.select %true, %f, %f : f64 %x = arith.fptosi %g : f64 to i64"
            " %r = arith.index_cast %x : i64 to index"
        ),
        OF_NUMBER,
    ),
    "struct": (
        (
            f"{ADDRESS} %m = arith.index_cast %n : index to i64 %none = llvm.mlir.undef : {PAIR}"
            f" %pair = llvm.insertvalue %m, %none[1] : {PAIR} %x = llvm.extractvalue %pair[1] : {PAIR}"
            " %r = arith.index_cast %x : i64 to index"
        ),
        OF_NUMBER,
    ),
    "descriptor": (
        (
            f"%s = builtin.unrealized_conversion_cast %d : memref<4xf32> to {DESCRIPTOR}"
            f" %p = llvm.extractvalue %s[1] : {DESCRIPTOR}"
        ),
        OF_POINTER,
    ),
    "branch": (
        (
            f"%r = scf.if %true -> (index) {{ {COPY} {ADDRESS_OF_COPY} scf.yield %n : index }}"
            " else { scf.yield %c0 : index }"
        ),
        OF_NUMBER,
    ),
    "loop": (
        (
            f"{ADDRESS} %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%k = %n) -> (index)"
            " { %s = arith.addi %k, %c0 : index scf.yield %s : index }"
        ),
        OF_NUMBER,
    ),
    "while": (
        (
            f"{ADDRESS} %r = scf.while (%k = %n) : (index) -> index {{ %go = arith.cmpi eq, %k, %c0 : index"
            " scf.condition(%go) %k : index } do { ^bb0(%k: index): scf.yield %k : index }"
        ),
        OF_NUMBER,
    ),
    "blocks": (
        (
            f"%r = scf.execute_region -> index {{ {ADDRESS} cf.cond_br %true, ^bb1(%n : index),"
            " ^bb1(%c0 : index) ^bb1(%z: index): scf.yield %z : index }"
        ),
        OF_NUMBER,
    ),
    "memory": (
        (
            f"{ADDRESS} %box = memref.alloc() : memref<2xindex> memref.store %n, %box[%c1] : memref<2xindex>"
            " %r = memref.load %box[%c1] : memref<2xindex>"
        ),
        OF_NUMBER,
    ),
    "device memory": (
        (
            f"{ADDRESS} %box = memref.alloc() : memref<1xindex> memref.store %n, %box[%c0] : memref<1xindex>"
            " %kept = gpu.alloc () : memref<1xindex>"
            " gpu.memcpy %kept, %box : memref<1xindex>, memref<1xindex>"
        ),
        FROM_KEPT,
    ),
    "kernel": (ADDRESS_OF_KERNEL, FROM_KEPT),
    "yielded": (
        (
            f"{ADDRESS} %box = memref.alloc() : memref<2xindex> %other = memref.alloc() : memref<2xindex>"
            " linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],"
            ' iterator_types = ["reduction"]} outs(%other, %box : memref<2xindex>, memref<2xindex>)'
            " { ^bb0(%old: index, %older: index): linalg.yield %c0, %n : index, index }"
            " %r = memref.load %box[%c1] : memref<2xindex>"
        ),
        OF_NUMBER,
    ),
    "token": (
        (
            "%t0 = gpu.wait async %r, %t1 = gpu.alloc async [%t0] () : memref<4xf32>"
            " %t2 = gpu.memcpy async [%t1] %r, %d : memref<4xf32>, memref<4xf32> gpu.wait [%t2]"
        ),
        OF_MEMREF,
    ),
}
LOOP = PROGRAM.format(
    way=f"scf.for %i = %c0 to %c2 step %c1 {{ {COPY} {ADDRESS_OF_COPY} %r = arith.addi %n, %c0 : index",
    load=OF_NUMBER,
).replace("  gpu.memcpy %out", "  }\n  gpu.memcpy %out")


def ran(text: str, order: str) -> ProgramReport:
    from tuner.programs.service import run_program

    options = ProgramOptions(order=order, seed=3)
    target = TargetName.parse("simulator:sm_90")
    return run_program(ProgramRequest(text, target, is_timed=False, options=options))


def require_right(report: ProgramReport) -> None:
    assert report.printed.endswith("data = \n[0,  1,  2,  3]\n")
    assert not report.reports


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("way", "order"), [(way, order) for way in WAYS for order in one_order(way)])
def test_memory_lives_until_the_kernel_has_read_it(way: str, order: str) -> None:
    before, load = WAYS[way]
    require_right(ran(PROGRAM.format(way=before, load=load), order))


def test_memory_of_each_iteration_lives_until_its_kernel_has_ended() -> None:
    require_right(ran(LOOP, "lifo"))


def test_memory_that_the_program_frees_too_early_is_found_by_its_stored_address() -> None:
    freed = f"{ADDRESS_OF_KERNEL} gpu.dealloc %d : memref<4xf32>"
    report = ran(PROGRAM.format(way=freed, load=FROM_KEPT), "fifo")
    assert ["d1 is freed before" in each for each in report.reports] == [True]
