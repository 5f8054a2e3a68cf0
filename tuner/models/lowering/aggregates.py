"""Decomposes softmax, winograd transforms and tensor.bitcast, which upstream does not bufferize."""

from tuner.mlir.bindings import Op, Value, interpreter, ir
from tuner.mlir.ir.building import PARALLEL, dimensions, generic, index, value
from tuner.mlir.ir.reading import unsupported, walk
from tuner.mlir.programs.row_writes import require_row_writes
from tuner.mlir.transform import entry_sequence, parse

SOFTMAX = "linalg.softmax"
WINOGRAD = tuple(f"linalg.winograd_{part}_transform" for part in ("filter", "input", "output"))
BITCAST = "tensor.bitcast"
GATHER = "tensor.gather"
SCHEDULE = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %softmax = transform.structured.match ops{["linalg.softmax"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.structured.decompose_interface %softmax : (!transform.any_op) -> !transform.any_op
    %transforms = transform.structured.match ops{[
        "linalg.winograd_filter_transform", "linalg.winograd_input_transform",
        "linalg.winograd_output_transform"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.structured.decompose_winograd_op %transforms : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
"""


def decompose_aggregates(module: ir.Module) -> None:
    """Replaces linalg.softmax, winograd transforms and tensor.bitcast by the linalg ops that they stand for.

    In place, by upstream's transform ops. A winograd transform becomes loops over tiles with two small
    matmuls in each. Raises CandidateError(COMPILE) for operations on memrefs, for winograd transforms of
    dynamic shape, which upstream does not decompose, for tensor.gather, and for a tensor.scatter that does
    not write rows.

        %r = linalg.softmax dimension(1) ins(%x : tensor<6x100xf32>) outs(%e : tensor<6x100xf32>)
      becomes
        %max = linalg.generic ins(%x) outs(%least : tensor<6xf32>) { arith.maxnumf }
        %exp = linalg.generic ins(%x, %max) outs(%e) { math.exp of arith.subf }
        %sum = linalg.generic ins(%exp) outs(%zeros : tensor<6xf32>) { arith.addf }
        %r = linalg.generic ins(%exp, %sum) outs(%e) { arith.divf }
    """
    for op in walk(module, GATHER):
        raise unsupported(op, "no lowering for it", "tensor.extract and tensor.insert in loops")
    require_row_writes(module)
    for op in walk(module, BITCAST):
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(_bits_of_elements(op))
        op.erase()
    aggregates = walk(module, SOFTMAX, *WINOGRAD)
    if not aggregates:
        return
    for op in aggregates:
        _require_tensors(op)
    schedule = parse(SCHEDULE, "aggregates")
    interpreter.apply_named_sequence(module, entry_sequence(schedule), schedule)


def _require_tensors(op: Op) -> None:
    for operand in op.operands:
        if not isinstance(operand.type, ir.RankedTensorType):
            raise unsupported(op, str(operand.type), "tensors")
        if op.name in WINOGRAD and not operand.type.has_static_shape:
            raise unsupported(op, str(operand.type), "tensors of static shape")


def _bits_of_elements(op: Op) -> Value:
    (source,) = op.operands
    type_ = op.results[0].type
    loops = dimensions(type_.rank)
    dynamic = filter(type_.is_dynamic_dim, range(type_.rank))
    sizes = [value("tensor.dim", ir.IndexType.get(), source, index(axis)) for axis in dynamic]
    place = value("tensor.empty", type_, *sizes)

    def body(element: Value, _: Value) -> Value:
        return value("arith.bitcast", type_.element_type, element)

    return generic([source], place, [loops, loops], [PARALLEL] * type_.rank, body).results[0]
