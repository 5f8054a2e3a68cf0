"""Indices of ``tensor.extract`` that are data: each gets an assertion that it is in bounds."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import compared, create, index, value
from tuner.mlir.ir.reading import walk

EXTRACT = "tensor.extract"
LOOPS = ("scf.for", "scf.forall", "scf.parallel")  # whose first block arguments are iteration numbers


def assert_indirect_indices(function: Op) -> None:
    """Inserts a ``cf.assert`` before each ``tensor.extract`` with an index that is data, in place.

    An index is data if it depends on a tensor's elements or on an argument, such as an index of a gather. A
    wrong one is an error of the call, on the host and in kernels, as in PyTorch.
          %i = arith.index_cast %row : i64 to index
          %x = tensor.extract %table[%i] : tensor<9xf32>
      becomes
          %i = arith.index_cast %row : i64 to index
          %inside = arith.cmpi ult, %i, %c9 : index          // false for a negative index, too
          cf.assert %inside, "an index into tensor<9xf32> is outside of dimension 0"
          %x = tensor.extract %table[%i] : tensor<9xf32>
    """
    for access in walk(function, EXTRACT):
        tensor = access.operands[0]
        for dimension, number in enumerate(list(access.operands)[1:]):
            if not _is_data(number):
                continue
            with access.location, ir.InsertionPoint(access):
                if tensor.type.is_dynamic_dim(dimension):
                    size = value("tensor.dim", ir.IndexType.get(), tensor, index(dimension))
                else:
                    size = index(tensor.type.shape[dimension])
                inside = compared("ult", number, size)
                message = f"an index into {tensor.type} is outside of dimension {dimension}"
                create("cf.assert", (), [inside], msg=ir.StringAttr.get(message))


def _is_data(number: Value) -> bool:
    """Returns whether an index may depend on an argument, on a tensor's elements, or an op with regions."""
    waiting = [number]
    seen = set[Value]()
    while waiting:
        source = waiting.pop()
        if source in seen:
            continue
        seen.add(source)
        if isinstance(source.owner, ir.Block):
            if not _is_iteration(source):
                return True
            continue
        op = source.owner.operation
        if op.name == EXTRACT or op.regions:
            return True
        waiting += list(op.operands) if op.name != "tensor.dim" else []
    return False


def _is_iteration(argument: Value) -> bool:
    loop = argument.owner.owner.operation
    is_first = loop.name != LOOPS[0] or argument.arg_number == 0
    return loop.name in LOOPS and isinstance(argument.type, ir.IndexType) and is_first
