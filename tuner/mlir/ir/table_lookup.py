"""Lookups in a table of 16 numbers that a register holds, as calls (vpermw, vpermps of AVX-512)."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import compared, element_of, splat, value, zero
from tuner.mlir.ir.reading import name_of, ops_in, private_function, walk

ENTRIES = 16  # of a table
PREFIX = "lookup_"  # of the names of the functions that are called


@dataclass(frozen=True)
class Lookup:
    """An instruction that replaces each index in a register by the table's entry at its lowest 4 bits."""

    name: str
    element: str  # of the table
    index: str  # of the indices, as wide
    lanes: int  # a table of fewer entries than 32 lanes stands twice in its register
    intrinsic: str


WORDS = Lookup(PREFIX + "words", "i16", "i16", 32, "llvm.x86.avx512.permvar.hi.512")
FLOATS = Lookup(PREFIX + "floats", "f32", "i32", 16, "llvm.x86.avx512.permvar.sf.512")
LOOKUPS = {instruction.name: instruction for instruction in (WORDS, FLOATS)}


def declare_lookup(module: Op, lookup: Lookup) -> None:
    """Declares the private function by which ``looked_up`` calls a lookup in a module, unless it is there."""
    block = module.regions[0].blocks[0]
    if any(name_of(op.operation) == lookup.name for op in block if "sym_name" in op.attributes):
        return
    table, indices = (f"vector<{lookup.lanes}x{element}>" for element in (lookup.element, lookup.index))
    with ir.InsertionPoint.at_block_begin(block), module.location:
        private_function(lookup.name, ir.Type.parse(f"({table}, {indices}) -> {table}"))


def table_of(lookup: Lookup, entries: Sequence[ir.Attribute]) -> Value:
    """Creates the constant vector of ``lookup.lanes`` lanes that repeats a table of 16 entries."""
    type_ = ir.VectorType.get([lookup.lanes], ir.Type.parse(lookup.element))
    every = list(entries) * (lookup.lanes // ENTRIES)
    return value("arith.constant", type_, value=ir.DenseElementsAttr.get(every, type_))


def looked_up(lookup: Lookup, table: Value, indices: Value) -> Value:
    """Creates a call of a lookup; returns a vector of the table's entries at the lowest 4 bits of each index.

    ``table``: a value of ``table_of``. ``indices``: a vector of ``lookup.lanes`` integers. The module must
    have the function that ``declare_lookup`` declares.
    """
    callee = ir.FlatSymbolRefAttr.get(lookup.name)
    return value("func.call", table.type, table, indices, callee=callee)


def lower_lookups(module: ir.Module, *, emulates: bool) -> None:
    """Replaces the calls of lookups by their instruction, or by selections if ``emulates``, in place.

      %b = call @lookup_words(%table, %indices) : (vector<32xi16>, vector<32xi16>) -> vector<32xi16>
    becomes
      %b = llvm.call_intrinsic "llvm.x86.avx512.permvar.hi.512"(%table, %indices) : ...
    """
    for call in walk(module, "func.call"):
        lookup = LOOKUPS.get(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
        if lookup is not None:
            with ir.InsertionPoint(call), call.location:
                entries = _selected(call) if emulates else _instruction(call, lookup)
            call.results[0].replace_all_uses_with(entries)
            call.erase()
    for function in ops_in(module.body):
        if function.name == "func.func" and name_of(function) in LOOKUPS:
            function.erase()


def _instruction(call: Op, lookup: Lookup) -> Value:
    return value(
        "llvm.call_intrinsic",
        call.results[0].type,
        *call.operands,
        intrin=ir.StringAttr.get(lookup.intrinsic),
        op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([2, 0]),
    )


def _selected(call: Op) -> Value:
    """Creates a lookup by four levels of selections: by bit 0 of the index between neighbours, and so on."""
    table, indices = call.operands
    type_ = ir.VectorType(table.type)
    level = [_everywhere(table, type_, number) for number in range(ENTRIES)]
    for bit in range(ENTRIES.bit_length() - 1):
        mask = _bit(indices, bit)
        pairs = zip(level[::2], level[1::2], strict=True)
        level = [value("arith.select", type_, mask, odd, even) for even, odd in pairs]
    return level[0]


def _everywhere(table: Value, type_: Type, number: int) -> Value:
    return value("vector.broadcast", type_, element_of(table, number))


def _bit(indices: Value, bit: int) -> Value:
    type_ = ir.VectorType(indices.type)
    of_bit = value("arith.andi", type_, indices, splat(type_, 1 << bit))
    return compared("ne", of_bit, zero(type_))
