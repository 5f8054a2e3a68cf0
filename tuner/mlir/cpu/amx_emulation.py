"""Replaces AMX tiles by vectors, so that code with tiles runs on a processor that has none.

Takes functions on buffers with tiles of up to 16 rows of 64 bytes, as scripts leave them. Gives the same
functions with a tile as a 2-D vector, and a product of tiles as loops over rows: slow, meant to verify. Sums
are made in the order of the processor's manual: for bf16, even and odd elements of K are summed apart.
Subnormal numbers are kept, which AMX takes as 0. Source: Intel 64 and IA-32 architectures software
developer's manual, volume 2, TDPBF16PS and TDPBSSD.

    %a = x86.amx.tile_load %m[%i, %j] : memref<64x32xbf16> into !x86.amx.tile<16x32xbf16>
  becomes, with one load and one insertion for each of the 16 rows
    %row = vector.load %m[%i, %j] : memref<64x32xbf16>, vector<32xbf16>
    %a = vector.insert %row, %empty [0] : vector<32xbf16> into vector<16x32xbf16>
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import (
    create,
    deinterleaved,
    index,
    line_of,
    loop,
    plus,
    times,
    value,
    with_line,
    zero,
)
from tuner.mlir.ir.reading import arguments_in, walk, walk_where

TILE = "!x86.amx.tile<"
ZERO = "x86.amx.tile_zero"
LOAD = "x86.amx.tile_load"
STORE = "x86.amx.tile_store"
MULTIPLY_FLOATS = "x86.amx.tile_mulf"
MULTIPLY_INTEGERS = "x86.amx.tile_muli"
K_GROUP_BITS = 32  # of adjacent elements along K, two bf16 or four i8: a K group, as in cpu_ops.vnni_packing


def tiles_as_vectors(module: ir.Module) -> None:
    """Replaces AMX tiles in the functions of a module by 2-D vectors, and their ops by vector code, in place.

    Products of tiles are of bf16 into f32, or of signed i8 into i32.
    """
    for op in module.body.operations:
        if walk(op.operation, MULTIPLY_FLOATS, MULTIPLY_INTEGERS, ZERO, LOAD, STORE):
            _replace(op.operation)


def _replace(function: Op) -> None:
    for op in walk_where(function, lambda _: True):
        # first all types of tiles become vector types, then the ops on them are replaced
        for carried in (*op.results, *arguments_in(op)):
            if str(carried.type).startswith(TILE):
                carried.set_type(ir.Type.parse(str(carried.type).replace(TILE, "vector<")))
    scratch: dict[str, Value] = {}
    for op in walk(function, ZERO, LOAD, STORE, MULTIPLY_FLOATS, MULTIPLY_INTEGERS):
        with ir.InsertionPoint(op), op.location:
            if op.name == ZERO:
                op.results[0].replace_all_uses_with(zero(op.results[0].type))
            elif op.name == LOAD:
                buffer, row, column = op.operands[:3]
                op.results[0].replace_all_uses_with(_read(op.results[0].type, buffer, row, column))
            elif op.name == STORE:
                buffer, row, column, tile = op.operands[:4]
                _write(tile, buffer, row, column)
            else:
                op.results[0].replace_all_uses_with(_product(op, _Scratch(function, scratch)))
        op.erase()


def _read(type_: Type, buffer: Value, row: Value, column: Value) -> Value:
    tile = zero(type_)
    line = _line_kind(type_)
    for number in range(ir.VectorType(type_).shape[0]):
        element = ir.MemRefType(buffer.type).element_type
        bits = line.shape[0] * _bits(line.element_type)
        k_groups = value(
            "vector.load",
            ir.VectorType.get([bits // _bits(element)], element),
            buffer,
            plus(row, number),
            column,
        )
        # a packed panel holds whole K groups as i32; the tile's lines are of bf16 or i8
        k_groups = k_groups if k_groups.type == line else value("vector.bitcast", line, k_groups)
        tile = with_line(tile, number, k_groups)
    return tile


def _bits(element: Type) -> int:
    return int(element.width)


def _write(tile: Value, buffer: Value, row: Value, column: Value) -> None:
    for number in range(ir.VectorType(tile.type).shape[0]):
        create("vector.store", [], [line_of(tile, number), buffer, plus(row, number), column])


@dataclass(frozen=True)
class _Scratch:
    """Memory on the stack of a function: one tile for each role (A, B or C) and type."""

    function: Op
    made: dict[str, Value]  # role and type -> memref

    def filled(self, role: str, tile: Value) -> Value:
        type_ = ir.VectorType(tile.type)
        name = f"{role} {type_}"
        if name not in self.made:
            memory = ir.MemRefType.get(list(type_.shape), type_.element_type)
            with ir.InsertionPoint.at_block_begin(self.function.regions[0].blocks[0]):
                segments = ir.DenseI32ArrayAttr.get([0, 0])
                self.made[name] = value("memref.alloca", memory, operandSegmentSizes=segments)
        _write(tile, self.made[name], index(0), index(0))
        return self.made[name]


def _product(op: Op, scratch: _Scratch) -> Value:
    a, b, c = (scratch.filled(role, tile) for role, tile in zip("abc", op.operands, strict=True))
    sums = ir.VectorType(op.operands[2].type)
    line = _line_kind(sums)
    left = ir.VectorType(op.operands[0].type)
    per_k_group = K_GROUP_BITS // _bits(left.element_type)
    is_float = op.name == MULTIPLY_FLOATS
    parts = per_k_group if is_float else 1  # sums that are kept apart until the last K group

    def one_row(row: Value) -> tuple[()]:
        def one_k_group(k_group: Value, *totals: Value) -> list[Value]:
            k_groups = value("vector.load", _line_kind(b.type), b, k_group, index(0))
            type_ = ir.VectorType(line)
            # per element of a K group: one element of each column of B
            of_b = deinterleaved(_widened(k_groups, type_.element_type), type_.shape[0])
            totals_now = list(totals)
            for position, elements in enumerate(of_b):
                number = value(
                    "memref.load",
                    ir.MemRefType(a.type).element_type,
                    a,
                    row,
                    plus(times(k_group, per_k_group), position),
                )
                of_a = value("vector.broadcast", line, _widened(number, line.element_type))
                totals_now[position % parts] = _added(of_a, elements, totals_now[position % parts])
            return totals_now

        totals = loop(0, left.shape[1] // per_k_group, one_k_group, [zero(line)] * parts)
        while len(totals) > 1:
            totals = [_sum(totals[0], totals[1]), *totals[2:]]
        before = value("vector.load", line, c, row, index(0))
        create("vector.store", [], [_sum(before, totals[0]), c, row, index(0)])
        return ()

    loop(0, sums.shape[0], one_row)
    return _read(sums, c, index(0), index(0))


def _line_kind(type_: Type) -> Type:
    shaped = ir.ShapedType(type_)
    return ir.VectorType.get(shaped.shape[1:], shaped.element_type)


def _widened(number: Value, element: Type) -> Value:
    type_ = number.type
    is_vector = isinstance(type_, ir.VectorType)
    wide = ir.VectorType.get(type_.shape, element) if is_vector else element
    return value("arith.extsi" if isinstance(element, ir.IntegerType) else "arith.extf", wide, number)


def _added(left: Value, right: Value, total: Value) -> Value:
    if isinstance(ir.VectorType(total.type).element_type, ir.IntegerType):
        return _sum(total, value("arith.muli", total.type, left, right))
    return value("vector.fma", total.type, left, right, total)


def _sum(left: Value, right: Value) -> Value:
    is_integer = isinstance(ir.VectorType(left.type).element_type, ir.IntegerType)
    return value("arith.addi" if is_integer else "arith.addf", left.type, left, right)
