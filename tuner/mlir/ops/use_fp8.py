"""``tuner.use_fp8``: products of i8 become products of 8-bit floats, which upstream's ``mma.sync`` lacks.

Takes a function with ``nvgpu.mma.sync`` of i8 fragments and f32 sums, in which the bytes were only moved
(``tuner.element_types`` made them i8); gives each product as inline PTX, which needs sm_89. Fragments are
registers of four bytes for both types. Not handled: shapes other than 16 x 8 x 32; sums in f16.

    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 32]} : (vector<4x4xi8>, vector<2x4xi8>, ...
  with kind = "e4m3" becomes
    %words = vector.bitcast %a : vector<4x4xi8> to vector<4x1xi32>
    %a0 = vector.extract %words[0, 0] : i32 from vector<4x1xi32>
    %sums = llvm.inline_asm asm_dialect = att "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 ...;", ...
    %d0 = llvm.extractvalue %sums[0] : !llvm.struct<(f32, f32, f32, f32)>
    %d = vector.from_elements %d0, %d1, %d2, %d3 : vector<2x2xf32>
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.dialect import InPlaceOp, text
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.walking import walk

KINDS = ("e4m3", "e5m2")  # element types, as PTX spells them
SHAPE = "m16n8k32"
REGISTERS = (4, 2, 4)  # of A, B and C; D as C. PTX ISA, "Matrix Fragments for mma.m16n8k32"
ATT_DIALECT = 0  # LLVM's number of the assembler dialect; PTX has only one


class UseFp8Op(InPlaceOp, name="use_fp8"):
    """The transform op ``tuner.use_fp8``: products of i8 fragments become products of 8-bit floats.

    Each ``nvgpu.mma.sync`` of i8 fragments and f32 sums becomes inline PTX. Attribute ``kind`` (string,
    required): ``"e4m3"`` or ``"e5m2"``. The handle (a func.func) stays valid. Silenceable failure: another
    kind, no such ``nvgpu.mma.sync``, a shape other than 16 x 8 x 32.
    """

    def change(self, function: Op) -> str | None:
        """Replaces each ``nvgpu.mma.sync`` of i8 fragments and f32 sums by PTX for 8-bit floats.

        Changes one function in place. Returns None, or a message on an attribute or a product that is not
        supported; nothing is changed then.
        """
        kind = text(self, "kind", "")
        if kind not in KINDS:
            return f"kind: found {kind!r}, allowed {', '.join(KINDS)}"
        products = [each for each in walk(function, "nvgpu.mma.sync") if _is_of_bytes(each)]
        if not products:
            return "found no nvgpu.mma.sync of i8 fragments and f32 sums"
        for product in products:
            if _registers(product) != REGISTERS:
                return f"found an nvgpu.mma.sync of {_registers(product)} registers, allowed {REGISTERS}"
        for product in products:
            _replace(product, kind)
        return None


def _is_of_bytes(product: Op) -> bool:
    fragment, sums = (ir.VectorType(product.operands[number].type) for number in (0, 2))
    is_byte = isinstance(fragment.element_type, ir.IntegerType) and fragment.element_type.width == 8
    return is_byte and isinstance(sums.element_type, ir.F32Type)


def _registers(product: Op) -> tuple[int, ...]:
    a, b, c = (ir.VectorType(operand.type).shape for operand in product.operands)
    return (a[0], b[0], c[0] * c[1])


def _replace(product: Op, kind: str) -> None:
    a, b, c = product.operands
    sums = ir.VectorType(c.type)
    with product.location, ir.InsertionPoint(product):
        operands = [*_text(a), *_text(b), *_elements(c, sums)]
        result = value(
            "llvm.inline_asm",
            ir.Type.parse(f"!llvm.struct<({', '.join(['f32'] * REGISTERS[2])})>"),
            *operands,
            asm_string=ir.StringAttr.get(_instruction(kind)),
            constraints=ir.StringAttr.get(_constraints()),
            asm_dialect=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ATT_DIALECT),
        )
        parts = [
            value("llvm.extractvalue", sums.element_type, result, position=ir.DenseI64ArrayAttr.get([number]))
            for number in range(REGISTERS[2])
        ]
        whole = value("vector.from_elements", sums, *parts)
    product.results[0].replace_all_uses_with(whole)
    product.erase()


def _text(fragment: Value) -> list[Value]:
    """Creates the 32-bit registers of a fragment of bytes."""
    word = ir.IntegerType.get_signless(32)
    kind = ir.VectorType.get([ir.VectorType(fragment.type).shape[0], 1], word)
    return _elements(value("vector.bitcast", kind, fragment), kind)


def _elements(vector: Value, kind: ir.VectorType) -> list[Value]:
    rows, columns = kind.shape
    return [
        value(
            "vector.extract",
            kind.element_type,
            vector,
            static_position=ir.DenseI64ArrayAttr.get([row, column]),
        )
        for row in range(rows)
        for column in range(columns)
    ]


def _instruction(kind: str) -> str:
    """Returns the PTX instruction, with an operand per register."""
    a, b, c = REGISTERS
    groups, first = [], 0
    for count in (c, a, b, c):
        groups.append("{" + ", ".join(f"${number}" for number in range(first, first + count)) + "}")
        first += count
    return f"mma.sync.aligned.{SHAPE}.row.col.f32.{kind}.{kind}.f32 {', '.join(groups)};"


def _constraints() -> str:
    """Returns the constraint of each operand: sums are f32 registers, fragments 32-bit registers."""
    a, b, c = REGISTERS
    return ",".join(["=f"] * c + ["r"] * (a + b) + ["f"] * c)
