"""Programs whose threads wait for one another and share memory, and what numpy says of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

SPACE = "#gpu.address_space<workgroup>"
NUMBERS = (0, 1, 2, 3, 4, 8, 16, 32, 33, 64)
INDICES = "\n".join(f"%c{n} = arith.constant {n} : index" for n in NUMBERS)


@dataclass(frozen=True)
class SharedProgram:
    """A program of arrays; the last ones are written."""

    name: str
    text: str
    shapes: tuple[tuple[int, ...], ...]
    expected: Callable[..., Any]  # of the arrays before: the last of them after
    mutations: tuple[tuple[str, str], ...]  # (text, what stands there instead) that change what it computes

    def arrays(self) -> tuple[Any, ...]:
        """Returns small whole numbers, whose sums are exact."""
        rng = np.random.default_rng(0)
        return tuple(rng.integers(1, 8, shape).astype(np.float32) for shape in self.shapes)


def launched(arguments: str, grid: str, block: str, body: str, own: str = "") -> str:
    """Returns a function with one launch."""
    gx, gy = grid.split()
    bx, by = block.split()
    text = f"""func.func @f({arguments}) {{
      {INDICES}
      %zero = arith.constant 0.0 : f32
      gpu.launch blocks(%bx, %by, %bz) in (%gx = {gx}, %gy = {gy}, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = {bx}, %sy = {by}, %sz = %c1) {own} {{
        {body}
        gpu.terminator
      }}
      return
    }}"""
    return text.replace("WORKGROUP", SPACE)


MATMUL = SharedProgram(
    "matmul with two tiles",
    launched(
        "%a: memref<32x48xf32>, %b: memref<48x32xf32>, %c: memref<32x32xf32>",
        "%c2 %c2",
        "%c16 %c16",
        """%row0 = arith.muli %by, %c16 : index
        %col0 = arith.muli %bx, %c16 : index
        %row = arith.addi %row0, %ty : index
        %col = arith.addi %col0, %tx : index
        %n = memref.dim %a, %c1 : memref<32x48xf32>
        %sum = scf.for %k = %c0 to %n step %c16 iter_args(%acc = %zero) -> (f32) {
          %ka = arith.addi %k, %tx : index
          %kb = arith.addi %k, %ty : index
          %x = memref.load %a[%row, %ka] : memref<32x48xf32>
          %y = memref.load %b[%kb, %col] : memref<48x32xf32>
          memref.store %x, %s[%ty, %tx] : memref<16x16xf32, WORKGROUP>
          memref.store %y, %t[%ty, %tx] : memref<16x16xf32, WORKGROUP>
          gpu.barrier
          %part = scf.for %p = %c0 to %c16 step %c1 iter_args(%u = %acc) -> (f32) {
            %v = memref.load %s[%ty, %p] : memref<16x16xf32, WORKGROUP>
            %w = memref.load %t[%p, %tx] : memref<16x16xf32, WORKGROUP>
            %m = arith.mulf %v, %w : f32
            %q = arith.addf %u, %m : f32
            scf.yield %q : f32
          }
          gpu.barrier
          scf.yield %part : f32
        }
        memref.store %sum, %c[%row, %col] : memref<32x32xf32>""",
        "workgroup(%s : memref<16x16xf32, WORKGROUP>, %t : memref<16x16xf32, WORKGROUP>)",
    ),
    ((32, 48), (48, 32), (32, 32)),
    lambda a, b, _: a @ b,
    (
        ("%t[%p, %tx] : memref", "%t[%tx, %p] : memref"),
        ("%s[%ty, %p]", "%s[%tx, %p]"),
        ("arith.mulf %v, %w", "arith.addf %v, %w"),
        ("%n step %c16", "%c32 step %c16"),
        ("%a[%row, %ka]", "%a[%row, %k]"),
        ("%c[%row, %col]", "%c[%col, %row]"),
    ),
)
TRANSPOSE = SharedProgram(
    "transpose with a padded tile",
    launched(
        "%a: memref<64x32xf32>, %b: memref<32x64xf32>",
        "%c2 %c4",
        "%c16 %c8",
        f"""%m = gpu.dynamic_shared_memory : memref<?xi8, {SPACE}>
        %s = memref.view %m[%c0][] : memref<?xi8, {SPACE}> to memref<16x17xf32, {SPACE}>
        %row0 = arith.muli %by, %c16 : index
        %col0 = arith.muli %bx, %c16 : index
        scf.for %i = %ty to %c16 step %c8 {{
          %row = arith.addi %row0, %i : index
          %col = arith.addi %col0, %tx : index
          %x = memref.load %a[%row, %col] : memref<64x32xf32>
          memref.store %x, %s[%i, %tx] : memref<16x17xf32, {SPACE}>
        }}
        gpu.barrier
        scf.for %i = %ty to %c16 step %c8 {{
          %row = arith.addi %col0, %i : index
          %col = arith.addi %row0, %tx : index
          %x = memref.load %s[%tx, %i] : memref<16x17xf32, {SPACE}>
          memref.store %x, %b[%row, %col] : memref<32x64xf32>
        }}""",
        "dynamic_shared_memory_size %bytes",
    ).replace("gpu.launch", "%bytes = arith.constant 1088 : i32 gpu.launch", 1),
    ((64, 32), (32, 64)),
    lambda a, _: a.T,
    (("%s[%tx, %i]", "%s[%i, %tx]"), ("%b[%row, %col]", "%b[%i, %col]")),
)
TREE = SharedProgram(
    "sum of rows as a tree",
    launched(
        "%a: memref<8x64xf32>, %b: memref<8xf32>",
        "%c8 %c1",
        "%c64 %c1",
        """%x = memref.load %a[%bx, %tx] : memref<8x64xf32>
        memref.store %x, %s[%tx] : memref<64xf32, WORKGROUP>
        gpu.barrier
        %last = scf.while (%half = %c32) : (index) -> index {
          %goes = arith.cmpi ugt, %half, %c0 : index
          scf.condition(%goes) %half : index
        } do {
        ^bb0(%half: index):
          %adds = arith.cmpi ult, %tx, %half : index
          scf.if %adds {
            %o = arith.addi %tx, %half : index
            %y = memref.load %s[%tx] : memref<64xf32, WORKGROUP>
            %z = memref.load %s[%o] : memref<64xf32, WORKGROUP>
            %w = arith.addf %y, %z : f32
            memref.store %w, %s[%tx] : memref<64xf32, WORKGROUP>
          }
          gpu.barrier
          %less = arith.divui %half, %c2 : index
          scf.yield %less : index
        }
        %is_first = arith.cmpi eq, %tx, %c0 : index
        scf.if %is_first {
          %sum = memref.load %s[%c0] : memref<64xf32, WORKGROUP>
          memref.store %sum, %b[%bx] : memref<8xf32>
        }""",
        "workgroup(%s : memref<64xf32, WORKGROUP>)",
    ),
    ((8, 64), (8,)),
    lambda a, _: a.sum(1),
    (
        ("arith.addf %y, %z", "arith.maximumf %y, %z"),
        ("(%half = %c32)", "(%half = %c16)"),
        ("%s[%c0] : memref", "%s[%c1] : memref"),
    ),
)
REDUCTIONS = SharedProgram(
    "reductions over blocks in a loop and a branch",
    launched(
        "%a: memref<4x33xf32>, %b: memref<4x33xf32>",
        "%c4 %c1",
        "%c33 %c1",
        """%x = memref.load %a[%bx, %tx] : memref<4x33xf32>
        %s = scf.for %i = %c0 to %bx step %c1 iter_args(%acc = %x) -> (f32) {
          %y = gpu.all_reduce maximumf %acc {} : (f32) -> (f32)
          %u = arith.addf %acc, %y : f32
          scf.yield %u : f32
        }
        %p = arith.cmpi uge, %bx, %c2 : index
        %r = scf.if %p -> f32 {
          %m = gpu.all_reduce add %s {} : (f32) -> (f32)
          scf.yield %m : f32
        } else {
          scf.yield %s : f32
        }
        memref.store %r, %b[%bx, %tx] : memref<4x33xf32>""",
    ),
    ((4, 33), (4, 33)),
    lambda a, _: np.stack([_reduced(row, number) for number, row in enumerate(a)]),
    (("maximumf %acc", "minimumf %acc"), ("add %s", "mul %s"), ("uge, %bx, %c2", "ugt, %bx, %c2")),
)
SHUFFLES = SharedProgram(
    "sums by shuffles",
    launched(
        "%a: memref<2x64xf32>, %b: memref<2x64xf32>",
        "%c2 %c1",
        "%c64 %c1",
        """%w = arith.constant 32 : i32
        %o16 = arith.constant 16 : i32 %o8 = arith.constant 8 : i32 %o4 = arith.constant 4 : i32
        %o2 = arith.constant 2 : i32 %o1 = arith.constant 1 : i32
        %x = memref.load %a[%bx, %tx] : memref<2x64xf32>
        %y0, %k0 = gpu.shuffle xor %x, %o16, %w : f32
        %s0 = arith.addf %x, %y0 : f32
        %y1, %k1 = gpu.shuffle xor %s0, %o8, %w : f32
        %s1 = arith.addf %s0, %y1 : f32
        %y2, %k2 = gpu.shuffle xor %s1, %o4, %w : f32
        %s2 = arith.addf %s1, %y2 : f32
        %y3, %k3 = gpu.shuffle xor %s2, %o2, %w : f32
        %s3 = arith.addf %s2, %y3 : f32
        %y4, %k4 = gpu.shuffle xor %s3, %o1, %w : f32
        %s4 = arith.addf %s3, %y4 : f32
        %up, %ok = gpu.shuffle up %x, %o1, %w : f32
        %before = arith.select %ok, %up, %zero : f32
        %r = arith.subf %s4, %before : f32
        memref.store %r, %b[%bx, %tx] : memref<2x64xf32>""",
    ),
    ((2, 64), (2, 64)),
    lambda a, _: a.reshape(2, 2, 32).sum(-1).repeat(32, 1) - _before(a),
    (("xor %s2, %o2", "xor %s2, %o1"), ("up %x, %o1", "down %x, %o1"), ("%up, %zero", "%up, %x")),
)
HISTOGRAM = SharedProgram(
    "histogram by atomic updates of shared memory",
    launched(
        "%a: memref<4x64xf32>, %b: memref<4x8xi32>",
        "%c4 %c1",
        "%c64 %c1",
        """%one = arith.constant 1 : i32 %none = arith.constant 0 : i32
        %p = arith.cmpi ult, %tx, %c8 : index
        scf.if %p { memref.store %none, %s[%tx] : memref<8xi32, WORKGROUP> }
        gpu.barrier
        %x = memref.load %a[%bx, %tx] : memref<4x64xf32>
        %n = arith.fptosi %x : f32 to i32
        %i = arith.index_cast %n : i32 to index
        %old = memref.atomic_rmw addi %one, %s[%i] : (i32, memref<8xi32, WORKGROUP>) -> i32
        gpu.barrier
        scf.if %p {
          %y = memref.load %s[%tx] : memref<8xi32, WORKGROUP>
          memref.store %y, %b[%bx, %tx] : memref<4x8xi32>
        }""",
        "workgroup(%s : memref<8xi32, WORKGROUP>)",
    ),
    ((4, 64), (4, 8)),
    lambda a, _: np.stack([np.bincount(row.astype(int), minlength=8) for row in a]),
    (("addi %one, %s[%i]", "addi %n, %s[%i]"), ("%y = memref.load %s[%tx]", "%y = memref.load %s[%c1]")),
)
PROGRAMS = (MATMUL, TRANSPOSE, TREE, REDUCTIONS, SHUFFLES, HISTOGRAM)


def _reduced(row: Any, times: int) -> Any:
    for _ in range(times):
        row = row + row.max()
    return np.broadcast_to(row.sum(), row.shape) if times >= 2 else row


def _before(a: Any) -> Any:
    """Returns the value of the lane before, 0 in the first of a subgroup."""
    shifted = np.roll(a, 1, 1)
    shifted[:, ::32] = 0
    return shifted
