"""Replaces an element type throughout a function: in types of values, type attributes and constants."""

from tuner.mlir.bindings import Attribute, Op, Type, WalkResult, ir
from tuner.mlir.rewrite.walking import walk, walk_ops

# Dialects whose result depends on the element type; linalg ops and nvgpu.mma.sync adopt the new type.
ARITHMETIC = ("arith.", "math.")
HARMLESS = frozenset({"arith.constant", "arith.select"})
NUMBERS = (ir.FloatType, ir.IntegerType)


class Retyping:
    """The replacement, in IR, of the float or integer type ``old`` by a type ``new`` of the same width."""

    def __init__(self, old: Type, new: Type) -> None:
        self.old, self.new = old, new

    @property
    def is_same_width(self) -> bool:
        """Returns whether old and new type are floats or integers of the same width, so that layouts stay."""
        both = (self.old, self.new)
        return all(isinstance(each, NUMBERS) for each in both) and self.old.width == self.new.width

    @property
    def converts_constants(self) -> bool:
        """Returns whether nonzero constants can be converted: both types are floats, or both are integers."""
        both = (self.old, self.new)
        return any(all(isinstance(each, kind) for each in both) for kind in NUMBERS)

    def change(self, root: Op) -> None:
        """Replaces the old type in ``root`` and all ops in it, in place; of dense constants only splats."""

        def visit(op: Op) -> WalkResult:
            self._change_op(op)
            return WalkResult.ADVANCE

        walk_ops(root, visit)

    def of(self, kind: Type) -> Type:
        """Returns ``kind`` with the old type replaced by the new one.

        ``kind``: the old type, or a memref, vector, ranked tensor or function type of it; any other type is
        returned as it is.
        """
        if kind == self.old:
            return self.new
        if isinstance(kind, ir.MemRefType):
            return ir.MemRefType.get(kind.shape, self.of(kind.element_type), kind.layout, kind.memory_space)
        if isinstance(kind, ir.VectorType):
            return ir.VectorType.get(kind.shape, self.of(kind.element_type))
        if isinstance(kind, ir.RankedTensorType):
            return ir.RankedTensorType.get(kind.shape, self.of(kind.element_type), kind.encoding)
        if isinstance(kind, ir.FunctionType):
            return ir.FunctionType.get(
                *([self.of(each) for each in part] for part in (kind.inputs, kind.results))
            )
        return kind

    def _change_op(self, op: Op) -> None:
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

    def _attribute(self, attribute: Attribute) -> Attribute | None:
        if isinstance(attribute, ir.TypeAttr):
            return ir.TypeAttr.get(self.of(attribute.value))
        if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr) and attribute.type == self.old:
            return self._number(attribute.value)
        if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
            kind = self.of(attribute.type)
            splat = self._attribute(attribute.get_splat_value())
            return None if splat is None else ir.DenseElementsAttr.get_splat(kind, splat)
        return None

    def _number(self, number: float) -> Attribute:
        if isinstance(self.new, ir.IntegerType):
            return ir.IntegerAttr.get(self.new, int(number))
        return ir.FloatAttr.get(self.new, float(number))


def first_arithmetic_op(root: Op, element: Type) -> str | None:
    """Returns the name of the first ``arith`` or ``math`` op in ``root`` on the type ``element``, or None.

    Ops inside of ``linalg`` ops, ``arith.constant`` and ``arith.select`` do not count.
    """
    found: list[str] = []

    def visit(op: Op) -> WalkResult:
        if op.name.startswith("linalg."):
            return WalkResult.SKIP
        kinds = [each.type for each in (*op.operands, *op.results)]
        if op.name.startswith(ARITHMETIC) and op.name not in HARMLESS and element in map(_element, kinds):
            found.append(op.name)
        return WalkResult.ADVANCE

    walk_ops(root, visit, is_pre_order=True)
    return found[0] if found else None


def _element(kind: Type) -> Type:
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind


def has_nonzero_constant(root: Op, element: Type) -> bool:
    """Returns whether ``root`` has an ``arith.constant`` of the element type that is not all zeros.

    A constant of several elements that are not all equal counts as nonzero.
    """
    constants = (each.attributes["value"] for each in walk(root, "arith.constant"))
    return any(_is_number(each, element) for each in constants)


def _is_number(attribute: Attribute, element: Type) -> bool:
    if _element(attribute.type) != element:
        return False
    if isinstance(attribute, ir.DenseElementsAttr):
        return not attribute.is_splat or bool(attribute.get_splat_value().value != 0)
    return bool(attribute.value != 0)
