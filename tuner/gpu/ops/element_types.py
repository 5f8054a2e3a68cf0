"""Transform ops that change element types: ``tuner.element_types``, ``tuner.use_tf32``, ``use_fp8``."""

from tuner.core.errors import Refusal
from tuner.gpu.ir.warps import movable_assembly
from tuner.mlir.bindings import Attribute, Op, Type, Value, WalkResult, ir
from tuner.mlir.dialect import InPlaceOp, text
from tuner.mlir.ir.building import value
from tuner.mlir.ir.reading import types_of, walk, walk_ops

KINDS = ("e4m3", "e5m2")  # element types, as PTX spells them
SHAPE = "m16n8k32"
REGISTERS = (4, 2, 4)  # of A, B and C; D as C. PTX ISA, "Matrix Fragments for mma.m16n8k32"
# Dialects whose result depends on the element type; linalg ops and nvgpu.mma.sync adopt the new type.
ARITHMETIC = ("arith.", "math.")
HARMLESS = frozenset({"arith.constant", "arith.select"})
NUMBERS = (ir.FloatType, ir.IntegerType)


class UseFp8Op(InPlaceOp, name="use_fp8"):
    """``tuner.use_fp8``: products of i8 become products of 8-bit floats, which upstream's ``mma.sync`` lacks.

    Takes a function with ``nvgpu.mma.sync`` of i8 fragments and f32 sums, in which the bytes were only moved
    (``tuner.element_types`` made them i8); gives each product as inline PTX, which needs sm_89.

        %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 32]} : (vector<4x4xi8>, vector<2x4xi8>, ...
      with kind = "e4m3" becomes
        %words = vector.bitcast %a : vector<4x4xi8> to vector<4x1xi32>
        %a0 = vector.extract %words[0, 0] : i32 from vector<4x1xi32>
        %sums = llvm.inline_asm asm_dialect = att "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 ...
        %d0 = llvm.extractvalue %sums[0] : !llvm.struct<(f32, f32, f32, f32)>
        %d = vector.from_elements %d0, %d1, %d2, %d3 : vector<2x2xf32>

    Attribute ``kind`` (string, required): ``"e4m3"`` or ``"e5m2"``. The handle (a func.func) stays valid.
    Silenceable failure, with nothing changed: another kind, no such ``nvgpu.mma.sync``, a shape other than
    16 x 8 x 32.
    """

    def change(self, function: Op) -> Refusal | None:
        kind = text(self, "kind", "")
        if kind not in KINDS:
            return Refusal(f"kind: found {kind!r}, allowed {', '.join(KINDS)}")
        products = list(filter(_is_of_bytes, walk(function, "nvgpu.mma.sync")))
        if not products:
            return Refusal("found no nvgpu.mma.sync of i8 fragments and f32 sums")
        for product in products:
            if _registers(product) != REGISTERS:
                return Refusal(
                    f"found an nvgpu.mma.sync of {_registers(product)} registers, allowed {REGISTERS}"
                )
        for product in products:
            a, b, c = product.operands
            sums = ir.VectorType(c.type)
            with product.location, ir.InsertionPoint(product):
                operands = [*_packed_registers(a), *_packed_registers(b), *_elements(c, sums)]
                result = value(
                    "llvm.inline_asm",
                    ir.Type.parse(f"!llvm.struct<({', '.join(['f32'] * REGISTERS[2])})>"),
                    *operands,
                    **movable_assembly(_instruction(kind), _constraints()),
                )
                parts = [
                    value(
                        "llvm.extractvalue",
                        sums.element_type,
                        result,
                        position=ir.DenseI64ArrayAttr.get([number]),
                    )
                    for number in range(REGISTERS[2])
                ]
                whole = value("vector.from_elements", sums, *parts)
            product.results[0].replace_all_uses_with(whole)
            product.erase()
        return None


def _is_of_bytes(product: Op) -> bool:
    fragment, sums = (ir.VectorType(product.operands[number].type) for number in (0, 2))
    is_byte = isinstance(fragment.element_type, ir.IntegerType) and fragment.element_type.width == 8
    return is_byte and isinstance(sums.element_type, ir.F32Type)


def _registers(product: Op) -> tuple[int, ...]:
    a, b, c = (ir.VectorType(operand.type).shape for operand in product.operands)
    return (a[0], b[0], c[0] * c[1])


def _packed_registers(fragment: Value) -> list[Value]:
    word = ir.IntegerType.get_signless(32)
    type_ = ir.VectorType.get([ir.VectorType(fragment.type).shape[0], 1], word)
    return _elements(value("vector.bitcast", type_, fragment), type_)


def _elements(vector: Value, type_: ir.VectorType) -> list[Value]:
    elements = []
    rows, columns = type_.shape
    for row in range(rows):
        for column in range(columns):
            position = ir.DenseI64ArrayAttr.get([row, column])
            elements.append(value("vector.extract", type_.element_type, vector, static_position=position))
    return elements


def _instruction(format_: str) -> str:
    a, b, c = REGISTERS
    groups = []
    first = 0
    for count in (c, a, b, c):
        groups.append("{" + ", ".join(f"${number}" for number in range(first, first + count)) + "}")
        first += count
    return f"mma.sync.aligned.{SHAPE}.row.col.f32.{format_}.{format_}.f32 {', '.join(groups)};"


def _constraints() -> str:
    """Returns the constraint of each operand: sums are f32 registers, fragments 32-bit registers."""
    a, b, c = REGISTERS
    return ",".join(["=f"] * c + ["r"] * (a + b) + ["f"] * c)


class UseTf32Op(InPlaceOp, name="use_tf32"):
    """``tuner.use_tf32``: tensor cores use f32 operands as tf32.

    A tensor core ignores the low 13 bits of the mantissa; inputs of dtype tf32 have zeros there.

        %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, ...
      becomes
        %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, ...

    The handle (a func.func) stays valid. Silenceable failure: no ``nvgpu.mma.sync`` of f32 operands.
    """

    def change(self, function: Op) -> Refusal | None:
        products = [
            op
            for op in walk(function, "nvgpu.mma.sync")
            if isinstance(ir.VectorType(op.operands[0].type).element_type, ir.F32Type)
        ]
        if not products:
            return Refusal("found no nvgpu.mma.sync of f32 operands")
        for product in products:
            product.attributes["tf32Enabled"] = ir.UnitAttr.get()
        return None


class Retyping:
    """The replacement, in IR, of the float or integer type ``old`` by a type ``new`` of the same width."""

    def __init__(self, old: Type, new: Type) -> None:
        self.old = old
        self.new = new

    @property
    def is_same_width(self) -> bool:
        both = (self.old, self.new)
        return all(isinstance(type_, NUMBERS) for type_ in both) and self.old.width == self.new.width

    @property
    def converts_constants(self) -> bool:
        """Returns whether nonzero constants can be converted: both types are floats, or both are integers."""
        both = (self.old, self.new)
        return any(all(isinstance(type_, class_) for type_ in both) for class_ in NUMBERS)

    def change(self, root: Op) -> None:
        def visit(op: Op) -> WalkResult:
            for result in op.results:
                result.set_type(self.of(result.type))
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        argument.set_type(self.of(argument.type))
            for name in list(op.attributes):
                changed = self._attribute(op.attributes[name])
                if changed is not None:
                    op.attributes[name] = changed
            return WalkResult.ADVANCE

        walk_ops(root, visit)

    def of(self, type_: Type) -> Type:
        """Returns a type with the old type replaced in memrefs, vectors, tensors and functions."""
        if type_ == self.old:
            return self.new
        if isinstance(type_, ir.MemRefType):
            return ir.MemRefType.get(
                type_.shape, self.of(type_.element_type), type_.layout, type_.memory_space
            )
        if isinstance(type_, ir.VectorType):
            return ir.VectorType.get(type_.shape, self.of(type_.element_type))
        if isinstance(type_, ir.RankedTensorType):
            return ir.RankedTensorType.get(type_.shape, self.of(type_.element_type), type_.encoding)
        if isinstance(type_, ir.FunctionType):
            return ir.FunctionType.get(*(list(map(self.of, part)) for part in (type_.inputs, type_.results)))
        return type_

    def _attribute(self, attribute: Attribute) -> Attribute | None:
        if isinstance(attribute, ir.TypeAttr):
            return ir.TypeAttr.get(self.of(attribute.value))
        if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr) and attribute.type == self.old:
            if isinstance(self.new, ir.IntegerType):
                return ir.IntegerAttr.get(self.new, int(attribute.value))
            return ir.FloatAttr.get(self.new, float(attribute.value))
        if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
            type_ = self.of(attribute.type)
            splat = self._attribute(attribute.get_splat_value())
            if splat is None:
                return None
            return ir.DenseElementsAttr.get_splat(type_, splat)
        return None


def first_arithmetic_op(root: Op, element: Type) -> str | None:
    """Returns the name of the first ``arith`` or ``math`` op on ``element`` outside of linalg.

    None if there is none. Constants and ``arith.select`` do not count: they only move elements.
    """
    names: list[str] = []

    def visit(op: Op) -> WalkResult:
        if op.name.startswith("linalg."):
            return WalkResult.SKIP
        types = types_of((*op.operands, *op.results))
        if op.name.startswith(ARITHMETIC) and op.name not in HARMLESS and element in map(_element, types):
            names.append(op.name)
        return WalkResult.ADVANCE

    walk_ops(root, visit, is_pre_order=True)
    if names:
        return names[0]
    return None


def _element(type_: Type) -> Type:
    if isinstance(type_, ir.ShapedType):
        return type_.element_type
    return type_


def has_nonzero_constant(root: Op, element: Type) -> bool:
    """Returns whether ``root`` has a constant of the element type that is neither 0 nor a splat of zeros."""
    constants = (op.attributes["value"] for op in walk(root, "arith.constant"))
    return any(_element(constant.type) == element and _is_nonzero(constant) for constant in constants)


def _is_nonzero(number: Attribute) -> bool:
    if isinstance(number, ir.DenseElementsAttr):
        return not number.is_splat or bool(number.get_splat_value().value != 0)
    return bool(number.value != 0)


class ElementTypesOp(InPlaceOp, name="element_types"):
    """``tuner.element_types``: replaces an element type by another one of the same width.

    Takes a function whose arithmetic on the type, if any, is inside of linalg ops. ``convert-vector-to-gpu``
    supports f16 but not bf16, and both are 16 bits that are only moved and passed to ``nvgpu.mma.sync``: a
    script uses f16 during that pass, and bf16 before and after. In the same way i8 stands for 8-bit floats.
    Not handled: the type inside of types such as gpu.mma_matrix, and in dense constants of unequal elements.

        %x = vector.load %a[%i, %i] : memref<8x8xbf16, strided<[9, 1]>>, vector<2xbf16>
      with from = "bf16", to = "f16" becomes
        %x = vector.load %a[%i, %i] : memref<8x8xf16, strided<[9, 1]>>, vector<2xf16>

    Attributes ``from`` and ``to`` (strings): MLIR types, such as "bf16" and "f16". The handle (a func.func)
    stays valid. Silenceable failure, with nothing changed: types of different widths, ``arith`` or ``math``
    ops on ``from`` outside of ``linalg`` ops, whose meaning would change, or a nonzero constant where one
    type is a float and the other an integer.
    """

    def change(self, function: Op) -> Refusal | None:
        retyping = Retyping(ir.Type.parse(text(self, "from", "")), ir.Type.parse(text(self, "to", "")))
        if not retyping.is_same_width:
            return Refusal(f"found {retyping.old} to {retyping.new}, allowed types of one width")
        reason = first_arithmetic_op(function, retyping.old)
        if reason is not None:
            return Refusal(f"found {reason} on {retyping.old}, allowed moves and products")
        if not retyping.converts_constants and has_nonzero_constant(function, retyping.old):
            return Refusal(f"found a number of {retyping.old}, allowed zeros to become {retyping.new}")
        retyping.change(function)
        return None
