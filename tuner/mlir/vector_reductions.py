"""Replaces reductions of vectors, and masked transfers, that upstream refuses or compiles wrongly."""

import math

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import line_of, value
from tuner.mlir.ir.reading import attributes_of, replace_results, types_of, walk

REDUCTION = "vector.multi_reduction"
MASK = "vector.mask"
TRANSFERS = ("vector.transfer_read", "vector.transfer_write")
# combining kind -> the op of arith for integers and for floats
COMBINATIONS = {
    "add": ("addi", "addf"),
    "mul": ("muli", "mulf"),
    **{name: (name, "") for name in ("minsi", "minui", "maxsi", "maxui")},
    **{name: (f"{name}i", "") for name in ("and", "or", "xor")},
    **{name: ("", name) for name in ("minimumf", "maximumf", "minnumf", "maxnumf")},
}


def unroll_reductions(module: ir.Module, *, of_no_dimension: bool = False) -> None:
    """Replaces each ``vector.multi_reduction``, also one in a ``vector.mask``, by ops on its rows, in place.

    Upstream replaces one that reduces no dimension by its source, so that the accumulator is lost
    (https://github.com/llvm/llvm-project/issues/129415), and lowers no other to LLVM. With
    ``of_no_dimension``, only those that reduce no dimension are replaced.

        %r = vector.mask %m { vector.multi_reduction <add>, %v, %acc [0] : vector<2x4xi32> to vector<4xi32> }
      becomes, with %row0 and %mask0 the first rows of %v and of %m
        %sum0 = arith.addi %acc, %row0 : vector<4xi32>
        %r0 = arith.select %mask0, %sum0, %acc : vector<4xi1>, vector<4xi32>
        ...                                                                     // the same of the second rows
    """
    for op in walk(module, REDUCTION):
        if of_no_dimension and list(ir.DenseI64ArrayAttr(op.attributes["reduction_dims"])):
            continue
        holder = op.parent if op.parent.name == MASK else op
        mask = holder.operands[0] if holder != op else None
        with op.location, ir.InsertionPoint(holder):
            result = _reduced(op, mask)
        holder.results[0].replace_all_uses_with(result)
        holder.erase()


def _reduced(op: Op, mask: Value | None) -> Value:
    source, accumulator = op.operands
    reduced = list(ir.DenseI64ArrayAttr(op.attributes["reduction_dims"]))
    kept = [axis for axis in range(source.type.rank) if axis not in reduced]
    rows = _as_rows(source, reduced, kept)
    mask_rows = None if mask is None else _as_rows(mask, reduced, kept)
    if not kept:
        return _reduced_to_number(op, rows, mask_rows)
    result = accumulator
    for number in range(rows.type.shape[0]):
        combined = _combined(op, result, line_of(rows, number))
        if mask_rows is not None:
            combined = value("arith.select", result.type, line_of(mask_rows, number), combined, result)
        result = combined
    return result


def _as_rows(vector: Value, reduced: list[int], kept: list[int]) -> Value:
    """Returns a vector with its reduced dimensions, in front, as one: vector<rows x kept x type>."""
    type_ = ir.VectorType(vector.type)
    order = [*reduced, *kept]
    if order != sorted(order):
        permuted = ir.VectorType.get([type_.shape[axis] for axis in order], type_.element_type)
        vector = value("vector.transpose", permuted, vector, permutation=ir.DenseI64ArrayAttr.get(order))
    count = math.prod(type_.shape[axis] for axis in reduced)
    rows = ir.VectorType.get([count, *(type_.shape[axis] for axis in kept)], type_.element_type)
    if vector.type == rows:
        return vector
    return value("vector.shape_cast", rows, vector)


def _reduced_to_number(op: Op, numbers: Value, mask: Value | None) -> Value:
    accumulator = op.operands[1]
    combining = op.attributes["kind"]
    if mask is None:
        return value("vector.reduction", accumulator.type, numbers, accumulator, kind=combining)
    holder = ir.Operation.create(MASK, results=[accumulator.type], operands=[mask], regions=1)
    with ir.InsertionPoint(holder.regions[0].blocks.append()):
        result = value("vector.reduction", accumulator.type, numbers, accumulator, kind=combining)
        ir.Operation.create("vector.yield", operands=[result])
    return holder.results[0]


def _combined(op: Op, accumulator: Value, row: Value) -> Value:
    combining = str(op.attributes["kind"]).removeprefix("#vector.kind<").removesuffix(">")
    of_integers, of_floats = COMBINATIONS[combining]
    is_float = isinstance(ir.VectorType(row.type).element_type, ir.FloatType)
    return value(f"arith.{of_floats if is_float else of_integers}", row.type, accumulator, row)


def apply_masks(module: ir.Module) -> None:
    """Replaces each vector.mask of a transfer by a transfer that takes the mask itself, in place.

    Upstream's canonicalization may forward what was stored to a read in vector.mask, which is then invalid.

        %r = vector.mask %m, %other { vector.transfer_read %a[%i], %pad : memref<4xf32>, vector<4xf32> } : ...
      becomes
        %x = vector.transfer_read %a[%i], %pad, %m : memref<4xf32>, vector<4xf32>
        %r = arith.select %m, %x, %other : vector<4xi1>, vector<4xf32>
    """
    for op in walk(module, *TRANSFERS):
        if op.parent.name != MASK:
            continue
        holder = op.parent
        mask, *other = holder.operands
        attributes = attributes_of(op)
        sizes = list(ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"]))
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([*sizes[:-1], 1])
        with op.location, ir.InsertionPoint(holder):
            types = types_of(op.results)
            operands = [*op.operands, mask]
            new = ir.Operation.create(op.name, results=types, operands=operands, attributes=attributes)
            results = list(new.results)
            if other:
                results = [value("arith.select", types[0], mask, results[0], other[0])]
        replace_results(holder, results)
        holder.erase()
