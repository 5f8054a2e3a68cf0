"""Reads ``nvgpu.tma.create.descriptor``: the layout of a tensor map, without the address of its tensor.

With the unit attribute ``tuner.tf32`` on the op, copies round f32 to tf32, which its type cannot express.
"""

import re

from tuner.core.device import TensorMapLayout
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.definitions import constant_of, source_of
from tuner.mlir.rewrite.type_sizes import element_bytes

TENSOR_MAP = "nvgpu.tma.create.descriptor"
TF32 = "tuner.tf32"
# CUtensorMapDataType, CUtensorMapSwizzle and CUtensorMapL2promotion of cuda.h
DTYPES = {"f16": 6, "f32": 7, "f64": 8, "bf16": 9, **dict.fromkeys(("i8", "f8E4M3FN", "f8E5M2"), 0)}
TFLOAT32 = 11
SWIZZLES = {"none": 0, "swizzle_32b": 1, "swizzle_64b": 2, "swizzle_128b": 3}
PROMOTIONS = {"none": 0, "l2promo_64b": 1, "l2promo_128b": 2, "l2promo_256b": 3}
FIELDS = re.compile(r"swizzle = (\w+), l2promo = (\w+), oob = (\w+), interleave = (\w+)")


def layout_of(op: Op, sizes: tuple[int, ...] | None = None) -> TensorMapLayout:
    """Returns the layout of the tensor map that an ``nvgpu.tma.create.descriptor`` creates.

    ``sizes`` are the tensor's true sizes, outermost first, if its type is padded; None: those of its type.
    Raises CandidateError(COMPILE) for a tensor or a box whose sizes are not constant, and for an element type
    or options that are not supported.
    """
    source = source_of(op.operands[0], ("memref.cast",))
    if not isinstance(source.type, ir.MemRefType) or not source.type.has_static_shape:
        raise _refused(source.type, "a memref of static sizes")
    tensor = ir.MemRefType(source.type)
    element = str(tensor.element_type)
    found = FIELDS.search(str(op.results[0].type))
    assert found is not None  # every type of this op prints the fields
    swizzle, promotion, fill, interleave = found.groups()
    if element not in DTYPES or (fill, interleave) != ("zero", "none"):
        raise _refused(
            f"{element}, oob {fill}, interleave {interleave}", "floats and i8, oob zero, interleave none"
        )
    strides, _ = tensor.get_strides_and_offset()
    item_bytes = element_bytes(tensor.element_type)
    return TensorMapLayout(
        sizes=tuple(reversed(sizes or tuple(tensor.shape))),
        strides_bytes=tuple(stride * item_bytes for stride in reversed(strides[:-1])),
        box=tuple(reversed([_box_size(each) for each in list(op.operands)[1:]])),
        dtype=TFLOAT32 if TF32 in op.attributes else DTYPES[element],
        swizzle=SWIZZLES[swizzle],
        l2_promotion=PROMOTIONS[promotion],
    )


def _box_size(size: Value) -> int:
    found = constant_of(size)
    if found is None:
        raise _refused("a box of sizes that are not constant", "constants")
    return found


def _refused(found: object, allowed: str) -> CandidateError:
    return CandidateError(Stage.COMPILE, f"tensor map: found {found}, allowed {allowed}")
