"""Replaces matmuls of a program by code that takes contiguous row-major arrays and overwrites C.

Takes the matches of ``find_matmuls.py``. Non-contiguous factors are copied first (``packed_views.py``). Where
the matmul accumulates into C, the product goes to a separate buffer, which is added to C afterwards.

    linalg.generic ... ins(%a, %b : ...) outs(%c : memref<4x16xf32>)    // C += A B
  becomes
    %product = memref.alloc() : memref<4x16xf32>
    <multiply %a, %b, %product>
    scf.parallel (%i, %j) = ... { <%c[%i, %j] += %product[%i, %j]> }
    memref.dealloc %product : memref<4x16xf32>
"""

from collections.abc import Callable, Sequence

from tuner.mlir.bindings import Value, ir
from tuner.mlir.rewrite import parallel_loops
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.type_sizes import is_row_major
from tuner.programs.lower.matmuls.find_matmuls import MatmulMatch
from tuner.programs.lower.matmuls.packed_views import PackedViews, allocate

Multiply = Callable[[Value, Value, Value], None]  # creates ``C = A B`` of three contiguous row-major memrefs


def replace_matmuls(matches: Sequence[MatmulMatch], multiply: Callable[[MatmulMatch], Multiply]) -> None:
    """Replaces matmuls of a program, in place, by code that tuned kernels or other functions create.

    ``multiply(match)`` returns a function that creates ``C = A B`` for three contiguous row-major memrefs at
    the insertion point. Non-contiguous factors are copied before; the product is added to C afterwards unless
    C was filled with zeros.
    """
    views = PackedViews(matches)
    for number, match in enumerate(matches):
        _replace(match, number, views, multiply(match))


def _replace(match: MatmulMatch, number: int, views: PackedViews, multiply: Multiply) -> None:
    is_added = match.zero_fill is None
    is_own = is_added or not is_row_major(match.c.type)
    with match.op.location, ir.InsertionPoint(match.op):
        a, b = (views.take(number, factor, each) for factor, each in enumerate((match.a, match.b)))
        kind = match.c.type
        c = allocate(ir.MemRefType.get(kind.shape, kind.element_type)) if is_own else match.c
        multiply(a, b, c)
        if is_added:
            parallel_loops.add_to(match.c, c)
        elif is_own:
            parallel_loops.copy(c, match.c)
        if is_own:
            create("memref.dealloc", [], [c])
        views.free_unused()
    match.op.erase()
    if match.zero_fill is not None:
        match.zero_fill.erase()
