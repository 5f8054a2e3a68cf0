"""Dot products in one instruction: calls of a private function, until they become the instruction.

A dot product multiplies the bits of each lane of two vectors as small numbers, four bytes, two bf16 or two
integers of 16 bits, and adds the products to that lane of a vector of sums. A lane has 32 bits, or 16 where
two bytes are multiplied.
"""

from dataclasses import dataclass

from tuner.core.dtypes import number_type
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import deinterleaved, value
from tuner.mlir.ir.reading import name_of, ops_in, private_function, walk

SIGNED = "arith.extsi"
UNSIGNED = "arith.extui"
FLOAT = "arith.extf"


@dataclass(frozen=True)
class DotProduct:
    """An instruction that multiplies small numbers and adds up the products of each lane.

    It also adds them to a register of sums, unless ``adds`` is False.
    """

    name: str  # of the private function, followed by the bits of a register
    intrinsic: str  # LLVM's; BITS stands for the bits of a register
    sums: str  # "i32"; integers wrap around
    factors: str  # "i8"
    extensions: tuple[str, str]  # how the factors are extended to the type of the sums
    # Of 2 x 2 sums: of each factor the halves are two rows, and each sum adds the products of two rows
    has_matrices: bool = False
    adds: bool = True  # to the sums; False: an addition follows
    other_names: tuple[tuple[int, str], ...] = ()  # bits of a register -> LLVM's name where it is irregular

    def intrinsic_of(self, bits: int) -> str:
        """Returns LLVM's name of the instruction on registers of ``bits`` bits."""
        return dict(self.other_names).get(bits, self.intrinsic.replace("BITS", str(bits)))

    @property
    def lane_bits(self) -> int:
        return number_type(self.sums).bits

    @property
    def per_lane(self) -> int:
        return self.lane_bits // number_type(self.factors).bits

    def sums_type(self, lanes: int) -> Type:
        """Returns the type of ``lanes`` sums: vector<16xi32>."""
        return ir.Type.parse(f"vector<{lanes}x{self.sums}>")

    def factors_type(self, lanes: int) -> Type:
        """Returns the type of the factors of ``lanes`` sums: vector<64xi8>."""
        return ir.Type.parse(f"vector<{lanes * self.per_lane}x{self.factors}>")


# Of AVX512-VNNI and AVX-VNNI: four unsigned by four signed bytes.
VPDPBUSD = DotProduct("vpdpbusd_", "llvm.x86.avx512.vpdpbusd.BITS", "i32", "i8", (UNSIGNED, SIGNED))
# Of AVX2 and AVX-512: two integers of 16 bits.
VPMADDWD = DotProduct(
    "vpmaddwd_",
    "llvm.x86.avx512.pmaddw.d.BITS",
    "i32",
    "i16",
    (SIGNED, SIGNED),
    adds=False,
    other_names=((256, "llvm.x86.avx2.pmadd.wd"),),
)
# Likewise, two unsigned by two signed bytes, whose sum saturates: exact where unsigned ones are at most 127.
VPMADDUBSW = DotProduct(
    "vpmaddubsw_",
    "llvm.x86.avx512.pmaddubs.w.BITS",
    "i16",
    "i8",
    (UNSIGNED, SIGNED),
    adds=False,
    other_names=((256, "llvm.x86.avx2.pmadd.ub.sw"),),
)
# Of AArch64, 128 bits: four signed bytes (dotprod); two bf16 (bf16), subnormal numbers taken as 0.
SDOT = DotProduct("sdot_", "llvm.aarch64.neon.sdot.v4i32.v16i8", "i32", "i8", (SIGNED, SIGNED))
BFDOT = DotProduct("bfdot_", "llvm.aarch64.neon.bfdot.v4f32.v8bf16", "f32", "bf16", (FLOAT, FLOAT))
# Likewise, of matrices: rows of eight signed bytes (i8mm), of four bf16 (bf16).
SMMLA = DotProduct(
    "smmla_", "llvm.aarch64.neon.smmla.v4i32.v16i8", "i32", "i8", (SIGNED, SIGNED), has_matrices=True
)
BFMMLA = DotProduct("bfmmla_", "llvm.aarch64.neon.bfmmla", "f32", "bf16", (FLOAT, FLOAT), has_matrices=True)
DOT_PRODUCTS = (VPDPBUSD, VPMADDWD, VPMADDUBSW, SDOT, BFDOT, SMMLA, BFMMLA)


def declare_dot_product(module: Op, dot: DotProduct, lanes: int) -> None:
    """Declares the private function of a dot product in a module, unless it is there: ``@vpdpbusd_512``."""
    name = _function_name(dot, lanes)
    block = module.regions[0].blocks[0]
    names = [op.attributes["sym_name"] for op in block if "sym_name" in op.attributes]
    if any(ir.StringAttr(symbol).value == name for symbol in names):
        return
    sums = dot.sums_type(lanes)
    factors = dot.factors_type(lanes)
    with ir.InsertionPoint.at_block_begin(block), module.location:
        private_function(name, ir.Type.parse(f"({sums}, {factors}, {factors}) -> {sums}"))


def dot_product(dot: DotProduct, sums: Value, left: Value, right: Value) -> Value:
    """Creates the call that adds dot products to a vector of sums; returns the new sums.

    ``left``, ``right``: vectors as wide as the sums, of any element type; of vpdpbusd and vpmaddubsw the
    bytes of ``left`` are unsigned, those of ``right`` signed. The function must be declared.
    """
    lanes = ir.VectorType(sums.type).shape[0]
    factors = [as_type(factor, dot.factors_type(lanes)) for factor in (left, right)]
    callee = ir.FlatSymbolRefAttr.get(_function_name(dot, lanes))
    return value("func.call", sums.type, sums, *factors, callee=callee)


def lower_dot_products(module: ir.Module, *, emulates: bool) -> None:
    """Replaces the calls of dot products by the instruction, or by vector code if ``emulates``, in place.

    The call has no memory effects that a pass would have to know. Vector code rounds each product of bf16
    that it adds to the nearest f32, and takes subnormal numbers as they are.

        %next = call @vpdpbusd_512(%sums, %u, %s) : (vector<16xi32>, ...
      becomes
        %next = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%sums, %u, %s) : ...
    """
    for call in walk(module, "func.call"):
        dot = _named(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
        if dot is None:
            continue
        with ir.InsertionPoint(call), call.location:
            product = _vector_code(dot, call) if emulates else _instruction(dot, call)
        call.results[0].replace_all_uses_with(product)
        call.erase()
    for function in ops_in(module.body):
        if function.name == "func.func" and _named(name_of(function)) is not None:
            function.erase()


def _function_name(dot: DotProduct, lanes: int) -> str:
    return f"{dot.name}{dot.lane_bits * lanes}"


def _named(function: str) -> DotProduct | None:
    for dot in DOT_PRODUCTS:
        if function.startswith(dot.name):
            return dot
    return None


def as_type(vector: Value, type_: Type) -> Value:
    """Creates the bits of a vector as another vector type; returns a vector of that type as it is."""
    if vector.type == type_:
        return vector
    return value("vector.bitcast", type_, vector)


def _instruction(dot: DotProduct, call: Op) -> Value:
    sums = call.results[0].type
    bits = dot.lane_bits * ir.VectorType(sums).shape[0]
    before, *factors = call.operands
    operands = (before, *factors) if dot.adds else factors
    result = value(
        "llvm.call_intrinsic",
        sums,
        *operands,
        intrin=ir.StringAttr.get(dot.intrinsic_of(bits)),
        op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]),
    )
    if dot.adds:
        return result
    return value("arith.addi", sums, before, result)


def _vector_code(dot: DotProduct, call: Op) -> Value:
    sums, *factors = call.operands
    type_ = ir.VectorType(sums.type)
    lanes = type_.shape[0]
    if dot.has_matrices:
        factors = _rows_per_sum(*factors)
    wide = ir.VectorType.get(ir.VectorType(factors[0].type).shape, type_.element_type)
    left, right = (
        value(extension, wide, factor) for extension, factor in zip(dot.extensions, factors, strict=True)
    )
    if dot.sums == "f32":
        for parts in zip(deinterleaved(left, lanes), deinterleaved(right, lanes), strict=True):
            sums = value("vector.fma", type_, *parts, sums)
        return sums
    for part in deinterleaved(value("arith.muli", wide, left, right), lanes):
        sums = value("arith.addi", type_, sums, part)
    return sums


def _rows_per_sum(left: Value, right: Value) -> list[Value]:
    """Creates the rows that the 2 x 2 sums multiply: of the left factor 0 0 1 1, of the right one 0 1 0 1."""
    type_ = ir.VectorType(left.type)
    size = type_.shape[0]
    first = list(range(size // 2))
    second = list(range(size // 2, size))
    wide = ir.VectorType.get([2 * size], type_.element_type)
    masks = ((left, first + first + second + second), (right, first + second + first + second))
    return [
        value("vector.shuffle", wide, factor, factor, mask=ir.DenseI64ArrayAttr.get(mask))
        for factor, mask in masks
    ]
