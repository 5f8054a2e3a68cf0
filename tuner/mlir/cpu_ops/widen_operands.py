"""The transform op ``tuner.widen_operands``."""

from tuner.core.dtypes import FLOATS, natural_output
from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu_ops.vnni_packing import allocated
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import create, for_each, index, plus, times, value
from tuner.mlir.ir.reading import users_of, walk

MATMUL = "linalg.matmul"
TO_TENSOR = "bufferization.to_tensor"
EXTEND = "arith.extf"
NARROW = tuple(name for name in FLOATS if natural_output(name) != name)


class WidenOperandsOp(InPlaceOp, name="widen_operands"):
    """``tuner.widen_operands``: operands of matmuls of narrow floats are converted to f32 before the matmuls.

    Takes a function with ``linalg.matmul`` ops on tensors. Each operand that the attributes name, which must
    be an argument of the function, is converted as a whole, a vector at a time, to a buffer that the matmul
    then reads. Each element is then converted once, not in each register tile that reads it.

        %A = bufferization.to_tensor %a restrict : memref<8x32xf16> to tensor<8x32xf16>
        %r = linalg.matmul ins(%A, %B : tensor<8x32xf16>, tensor<32x16xf16>) outs(%C : tensor<8x16xf32>) ...
      becomes
        %wide = memref.alloc() {alignment = 64 : i64} : memref<8x32xf32>
        scf.for %row = %c0 to %c8 step %c1 {
          scf.for %step = %c0 to %c2 step %c1 {
            %column = arith.muli %step, %c16 : index
            %x = vector.load %a[%row, %column] : memref<8x32xf16>, vector<16xf16>
            %y = arith.extf %x : vector<16xf16> to vector<16xf32>
            vector.store %y, %wide[%row, %column] : memref<8x32xf32>, vector<16xf32>
          }
        }
        %A32 = bufferization.to_tensor %wide restrict : memref<8x32xf32> to tensor<8x32xf32>
        %r = linalg.matmul ins(%A32, %B : tensor<8x32xf32>, tensor<32x16xf16>) outs(%C : ...) ...

    Attributes, i64: ``a`` and ``b`` (1: this operand is converted, the default; 0: it is not), ``lanes``,
    elements of a vector (default 16). The handle (a func.func) and handles of the matmuls stay valid.
    Silenceable failure: an operand of another type than bf16 or f16, of dynamic sizes, or not an argument.
    """

    def change(self, function: Op) -> Refusal | None:
        lanes = attribute(self, "lanes", 16)
        operand_indices = [
            operand_index for operand_index, name in enumerate("ab") if attribute(self, name, 1)
        ]
        matmuls = walk(function, MATMUL)
        for matmul in matmuls:
            for operand_index in operand_indices:
                reason = _refusal(matmul.operands[operand_index])
                if reason:
                    return Refusal(f"{'AB'[operand_index]}: {reason}")
        for matmul in matmuls:
            for operand_index in operand_indices:
                with ir.InsertionPoint(matmul), matmul.location:
                    buffer = matmul.operands[operand_index].owner.operands[0]
                    matmul.operands[operand_index] = _widened(buffer, lanes)
                _drop_conversion(matmul, operand_index)
        return None


def _refusal(operand: Value) -> Refusal | None:
    """Returns why an operand of a matmul cannot be widened; None where it can."""
    owner = operand.owner
    if isinstance(owner, ir.Block) or owner.name != TO_TENSOR:
        return Refusal("found a computed tensor, allowed an argument")
    type_ = operand.type
    element = str(type_.element_type)
    if element not in NARROW or not type_.has_static_shape or type_.rank != 2:
        return Refusal(f"found {type_}, allowed matrices of {' or '.join(NARROW)} of static sizes")
    return None


def _widened(buffer: Value, lanes: int) -> Value:
    """Creates the conversion of a matrix to f32; returns it as a tensor."""
    rows, columns = ir.MemRefType(buffer.type).shape
    narrow = ir.MemRefType(buffer.type).element_type
    wide = ir.F32Type.get()
    target = allocated((rows, columns), wide)
    whole = columns // lanes

    def convert_vector(row: Value, column: Value) -> None:
        vector = value("vector.load", ir.VectorType.get([lanes], narrow), buffer, row, column)
        extended = value(EXTEND, ir.VectorType.get([lanes], wide), vector)
        create("vector.store", [], [extended, target, row, column])

    def convert_element(row: Value, column: Value) -> None:
        extended = value(EXTEND, wide, value("memref.load", narrow, buffer, row, column))
        create("memref.store", [], [extended, target, row, column])

    def convert_row(row: Value) -> None:
        if whole:
            for_each(0, whole, lambda step: convert_vector(row, times(step, lanes)))
        if columns % lanes:
            for_each(0, columns % lanes, lambda step: convert_element(row, plus(step, whole * lanes)))

    for_each(index(0), index(rows), convert_row)
    type_ = ir.RankedTensorType.get([rows, columns], wide)
    return value(TO_TENSOR, type_, target, restrict=ir.UnitAttr.get())


def _drop_conversion(matmul: Op, number: int) -> None:
    """Makes an element that a matmul's body extends an f32, in place."""
    element = matmul.regions[0].blocks[0].arguments[number]
    extensions = users_of(element)
    element.set_type(ir.F32Type.get())
    for extension in extensions:
        extension.results[0].replace_all_uses_with(element)
        extension.erase()
