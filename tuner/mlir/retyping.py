"""Changes an element type all over a function: types of values, of arguments, and constants."""

from typing import Any

from tuner.mlir.bindings import ir

# Computes with elements: its meaning depends on their type. That of linalg and mma.sync is meant to change.
ARITHMETIC = ("arith.", "math.")
HARMLESS = frozenset({"arith.constant", "arith.select"})


class Retyping:
    """Replaces a float type by another one of the same width."""

    def __init__(self, old: Any, new: Any) -> None:
        self.old, self.new = old, new

    @property
    def is_same_width(self) -> bool:
        """Tells whether both are floats of one size, so that memory keeps its shape."""
        both = (self.old, self.new)
        return all(isinstance(each, ir.FloatType) for each in both) and self.old.width == self.new.width

    def change(self, root: Any) -> None:
        """Changes the op and everything in it."""

        def visit(op: Any) -> Any:
            self._change_op(op)
            return ir.WalkResult.ADVANCE

        root.walk(visit)

    def of(self, kind: Any) -> Any:
        """Returns the type with the element type replaced."""
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

    def _change_op(self, op: Any) -> None:
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

    def _attribute(self, attribute: Any) -> Any | None:
        if isinstance(attribute, ir.TypeAttr):
            return ir.TypeAttr.get(self.of(attribute.value))
        if isinstance(attribute, ir.FloatAttr) and attribute.type == self.old:
            return ir.FloatAttr.get(self.new, attribute.value)
        if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
            kind = self.of(attribute.type)
            splat = self._attribute(attribute.get_splat_value())
            return None if splat is None else ir.DenseElementsAttr.get_splat(kind, splat)
        return None


def has_arithmetic(root: Any, element: Any) -> str | None:
    """Returns the name of an op outside of linalg bodies that computes with elements of that type, if any."""
    found: list[str] = []

    def visit(op: Any) -> Any:
        if op.name.startswith("linalg."):
            return ir.WalkResult.SKIP
        kinds = [each.type for each in (*op.operands, *op.results)]
        if op.name.startswith(ARITHMETIC) and op.name not in HARMLESS and element in map(_element, kinds):
            found.append(op.name)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[0] if found else None


def _element(kind: Any) -> Any:
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind
