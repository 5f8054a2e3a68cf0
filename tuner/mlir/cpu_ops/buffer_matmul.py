"""A ``linalg.matmul`` of buffers: its sizes, its layout, and the fill of its output before it."""

from collections.abc import Mapping
from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu_ops.vnni_packing import BlockExtent
from tuner.mlir.dialect import attribute
from tuner.mlir.ir.building import size_of
from tuner.mlir.ir.linalg import is_unsigned
from tuner.mlir.ir.reading import is_zero, types_of, users_of, walk

MATMUL = "linalg.matmul"
FILL = "linalg.fill"
OVER_MNK = {"nn": ("(d0, d2)", "(d2, d1)"), "nt": ("(d0, d2)", "(d1, d2)"), "tn": ("(d2, d0)", "(d2, d1)")}


@dataclass(frozen=True, eq=False)
class BufferMatmul:
    """A ``linalg.matmul`` of memrefs, m and k static: C += A B, or C = A B after a ``linalg.fill`` of C."""

    op: Op
    m: int
    n: int  # columns of C; where they are dynamic, those of a whole block
    last_n: int  # columns of the last block; ``n`` where they are static
    k: int
    layout: str  # "nn", "nt" (B is stored as n x k) or "tn" (A is stored as k x m)
    fill: Op | None  # the linalg.fill of C just before it; None: C is added to

    @property
    def a(self) -> Value:
        return self.op.operands[0]

    @property
    def b(self) -> Value:
        return self.op.operands[1]

    @property
    def c(self) -> Value:
        return self.op.operands[2]

    def columns(self) -> BlockExtent:
        """Returns the extent of the columns of C; creates its dynamic size at the insertion point."""
        if ir.MemRefType(self.c.type).is_dynamic_dim(1):
            return BlockExtent(self.n, self.last_n, size_of(self.c, 1))
        return BlockExtent(self.n)

    @property
    def element(self) -> str:
        """Returns the element type of A and B as MLIR text: "bf16"."""
        return str(ir.MemRefType(self.a.type).element_type)

    @property
    def accumulator_element(self) -> str:
        """Returns the element type of C as MLIR text: "f32"."""
        return str(ir.MemRefType(self.c.type).element_type)

    def erase(self) -> None:
        self.op.erase()
        if self.fill is not None:
            self.fill.erase()


def buffer_matmuls(block_op: Op, function: Op, sums: Mapping[str, str]) -> list[BufferMatmul] | Refusal:
    """Returns all ``linalg.matmul`` of ``function``, in order; a Refusal for the first that is not allowed.

    Allowed are memrefs with static sizes, rows of adjacent elements, layout nn, nt or tn, signed integers,
    and types in ``sums``: element type of A and B -> that of C, {"bf16": "f32"}. ``block_op``: the transform
    op that is applied. Columns of B and C may be dynamic where its attributes ``columns`` and
    ``last_columns`` have the sizes of whole blocks and of the last one.
    """
    columns = (attribute(block_op, "columns", 0), attribute(block_op, "last_columns", 0))
    allowed = "allowed memrefs of static sizes with adjacent elements"
    matmuls: list[BufferMatmul] = []
    for op in walk(function, MATMUL):
        types = types_of(op.operands)
        layout = _layout_of(op)
        if not all(map(_is_of_rows, types)) or not layout or not _is_static(types, layout, columns):
            return Refusal(f"found a matmul of {' x '.join(map(str, types))}, {allowed}")
        if is_unsigned(op):
            return Refusal(f"found a matmul of unsigned integers, {allowed}")
        m, n = types[2].shape
        k = types[0].shape[0 if layout == "tn" else 1]
        whole, last = columns if types[2].is_dynamic_dim(1) else (n, n)
        matmul = BufferMatmul(op, m, whole, last, k, layout, fill_before(op))
        if sums.get(matmul.element) != matmul.accumulator_element:
            pairs = " or ".join(f"{element} into {total}" for element, total in sums.items())
            return Refusal(
                f"found a matmul of {matmul.element} into {matmul.accumulator_element}, allowed {pairs}"
            )
        matmuls.append(matmul)
    return matmuls


def _is_of_rows(type_: ir.Type) -> bool:
    if not isinstance(type_, ir.MemRefType) or type_.rank != 2:
        return False
    strides, _ = type_.get_strides_and_offset()
    return bool(strides[-1] == 1)


def _is_static(types: list[ir.MemRefType], layout: str, columns: tuple[int, int]) -> bool:
    """Returns whether the sizes of A, B and C are static, but for n of B and C where ``columns`` has it."""
    a, b, c = map(_dynamic_sides, types)
    if not any(a + b + c):
        return True
    along_n = [False, True]
    along_n_of_b = along_n[::-1] if layout == "nt" else along_n
    return min(columns) > 0 and not any(a) and b == along_n_of_b and c == along_n


def _dynamic_sides(type_: ir.MemRefType) -> list[bool]:
    return [type_.is_dynamic_dim(0), type_.is_dynamic_dim(1)]


def _layout_of(op: Op) -> str:
    """Returns the layout that the indexing maps of a matmul stand for; "" for other maps."""
    if "indexing_maps" not in op.attributes:
        return "nn"
    texts = [
        str(mapping).rstrip(">").rpartition("-> ")[2]
        for mapping in ir.ArrayAttr(op.attributes["indexing_maps"])
    ]
    pairs = [layout for layout, maps in OVER_MNK.items() if tuple(texts[:2]) == maps]
    if pairs and texts[2] == "(d0, d1)":
        return pairs[0]
    return ""


def fill_before(contraction: Op) -> Op | None:
    """Returns the ``linalg.fill`` with zero of C, operand 2 of a matmul or convolution, in the op's block.

    None if there is no such fill before the op, or if another op between the two uses C.
    """
    sums = contraction.operands[2]
    users = users_of(sums)
    last: Op | None = None
    for op in contraction.block:
        in_block = op.operation
        if in_block == contraction:
            break
        if in_block in users or any(user != contraction and _is_inside(user, in_block) for user in users):
            last = in_block
    if last is None or last.name != FILL or last.operands[1] != sums:
        return None
    if is_zero(last.operands[0]):
        return last
    return None


def _is_inside(op: Op, outer: Op) -> bool:
    parent = op.parent
    while parent is not None:
        if parent.operation == outer:
            return True
        parent = parent.operation.parent
    return False
