"""Makes a program assert that indices which are data, such as those of a gather, are inside their tensor.

Takes functions on tensors. An index of ``tensor.extract`` that depends on a tensor's elements or on an
argument is checked before the access, so that a wrong one is an error of the call, on the host and in
kernels. torch does the same on its devices. Indices that only depend on the iteration are not checked: they
are the compiler's, not the user's data.

    ^bb0(%row: i64, %out: f32):
      %i = arith.index_cast %row : i64 to index
      %x = tensor.extract %table[%i] : tensor<9xf32>
  becomes
    ^bb0(%row: i64, %out: f32):
      %i = arith.index_cast %row : i64 to index
      %inside = arith.cmpi ult, %i, %c9 : index          // false for a negative index, too
      cf.assert %inside, "an index into tensor<9xf32> is outside of dimension 0"
      %x = tensor.extract %table[%i] : tensor<9xf32>
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import create, index, value
from tuner.mlir.rewrite.walking import walk

EXTRACT = "tensor.extract"
LOOPS = ("scf.for", "scf.forall", "scf.parallel")  # whose first block arguments are iteration numbers
UNSIGNED_LESS = 6  # arith.cmpi's ult
PREDICATE_BITS = 64


def assert_indirect_indices(function: Op) -> None:
    """Inserts a ``cf.assert`` before each ``tensor.extract`` of a function for each index that is data."""
    for access in walk(function, EXTRACT):
        tensor = access.operands[0]
        for dimension, number in enumerate(list(access.operands)[1:]):
            if _is_data(number):
                _assert_inside(access, tensor, dimension, number)


def _assert_inside(access: Op, tensor: Value, dimension: int, number: Value) -> None:
    with access.location, ir.InsertionPoint(access):
        if tensor.type.is_dynamic_dim(dimension):
            size = value("tensor.dim", ir.IndexType.get(), tensor, index(dimension))
        else:
            size = index(tensor.type.shape[dimension])
        kind = ir.IntegerType.get_signless(1)
        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(PREDICATE_BITS), UNSIGNED_LESS)
        inside = value("arith.cmpi", kind, number, size, predicate=predicate)
        said = f"an index into {tensor.type} is outside of dimension {dimension}"
        create("cf.assert", (), [inside], msg=ir.StringAttr.get(said))


def _is_data(number: Value) -> bool:
    """Returns whether an index depends on an argument or on elements of a tensor."""
    waiting, seen = [number], set[Value]()
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        if isinstance(each.owner, ir.Block):
            if not _is_iteration(each):
                return True
            continue
        op = each.owner.operation
        if op.name == EXTRACT or op.regions:
            return True
        waiting += list(op.operands) if op.name != "tensor.dim" else []
    return False


def _is_iteration(argument: Value) -> bool:
    """Returns whether a block argument is the iteration number of a loop."""
    loop = argument.owner.owner.operation
    if loop.name not in LOOPS:
        return False
    return isinstance(argument.type, ir.IndexType) and (loop.name != LOOPS[0] or argument.arg_number == 0)
