"""How registers are multiplied: one object for each instruction, which every kernel in registers takes.

A K group is the elements of a row of A, or of a column of B, that one sum takes at a time. They are adjacent
along K: 32 bits, which are two bf16 or four i8; 16 bits, two i8; or 64 bits, a row of a small matrix.

    instruction  elements  class            sums of a register
    vpdpbusd     i8        DotSums      16 or 8, of unsigned bytes of B
    vpmaddwd     i8        DotSums      16 or 8, of bytes that are extended to 16 bits
    sdot, bfdot  i8, bf16  DotSums      4, of one lane of a register of A
    smmla, bfmmla  i8, bf16  DotSums    2 x 2, of two rows of A and two columns of B
    vdpbf16ps    bf16      PairProducts     16
    fma          bf16      PairProducts     any number, of pairs that are extended to f32
    fma          f32, f64  SingleProducts   any number
    tile_mulf, tile_muli  bf16, i8  AmxProducts  16 x 16, of tiles of A and of B

Matmuls and fusions (``tuner.mlir.cpu_ops.register_block``), quantized weights (``quantized_schemes``) and
convolutions (``convolutions.convolution_block``) multiply by ``after``. So an instruction that all of them
can use is one more class, and a line in the function that chooses it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

from tuner.core.dtypes import natural_output
from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.cpu import needed_instructions
from tuner.mlir.cpu.needed_instructions import AARCH64_LANES, instruction_of
from tuner.mlir.cpu_ops.vector_lanes import multiply_add
from tuner.mlir.cpu_ops.vnni_packing import (
    DOT,
    HALF_BITS,
    K_GROUP_BITS,
    K_GROUPS,
    as_floats,
    as_words,
    first_half,
    k_groups_type,
    second_half,
)
from tuner.mlir.dialect import InPlaceOp, attributes_of
from tuner.mlir.ir.building import splat, value
from tuner.mlir.ir.dot_products import (
    BFDOT,
    BFMMLA,
    SDOT,
    SMMLA,
    UNSIGNED,
    VPDPBUSD,
    VPMADDWD,
    DotProduct,
    as_type,
    declare_dot_product,
    dot_product,
)

BYTE_OFFSET = 128  # what is added to a signed byte, so that it is unsigned
# element of A and B -> (op, element of the sums)
TILE_PRODUCTS = {"bf16": ("x86.amx.tile_mulf", "f32"), "i8": ("x86.amx.tile_muli", "i32")}
# lanes of two adjacent 2 x 2 matrices that are their first row, and their second row
ROWS_OF_MATRICES = ((0, 1, 4, 5), (2, 3, 6, 7))


@dataclass(frozen=True, kw_only=True)
class Products(ABC):
    """An instruction that multiplies, and what it needs of its operands."""

    register: str  # the type of a register of sums as MLIR text: "vector<16xi32>"
    lanes: int  # its sums
    sum_element: str  # "i32"
    element: str  # of A as it is multiplied: "i8"
    k_group_bits: int = K_GROUP_BITS
    rows: int = 1  # of A, whose sums are in one register: 2 of 2 x 2 sums
    offset: int = 0  # what is added to bytes of B, so that they are unsigned; 0: they are signed
    has_halves: bool = False  # pairs of bf16 of A come as two vectors of f32: first numbers, second numbers
    reads_lanes: bool = False  # a product takes one lane of a register of K groups of A
    dots: tuple[DotProduct, ...] = ()  # instructions that ``after`` calls

    @property
    @final
    def columns(self) -> int:
        """Returns the columns of B whose sums are in one register."""
        return self.lanes // self.rows

    @property
    @final
    def sums(self) -> Type:
        return ir.Type.parse(self.register)

    @final
    def declare(self, module: Op) -> None:
        """Declares the functions that stand for the instructions until the lowering."""
        for dot in self.dots:
            declare_dot_product(module, dot, self.lanes)

    @final
    def of_b(self, elements: Value) -> Value:
        """Creates the vector to pack in place of ``elements``, a vector of K groups of B."""
        if self.offset:
            return value("arith.xori", elements.type, elements, splat(elements.type, -self.offset))
        if self.k_group_bits == HALF_BITS:
            return as_words(elements)
        return elements

    @abstractmethod
    def after(self, before: Value, of_a: Sequence[Value], of_b: Value) -> Value:
        """Creates ``before``, a register of sums, plus the products of K groups of A and of B; returns it.

        ``of_a``: a vector of K groups, or the two of their halves; ``of_b``: one of K groups. All are as wide
        as the sums.
        """

    @final
    def line(self, registers: Sequence[Value], row: int) -> Iterator[Value]:
        """Yields the sums of row ``row`` of adjacent registers, as vectors of ``lanes`` adjacent columns."""
        if self.rows == 1:
            yield from registers
            return
        mask = ir.DenseI64ArrayAttr.get(ROWS_OF_MATRICES[row])
        for number in range(0, len(registers), self.rows):
            pair = (registers[number], registers[min(number + 1, len(registers) - 1)])
            yield value("vector.shuffle", self.sums, *pair, mask=mask)


@final
@dataclass(frozen=True, kw_only=True)
class DotSums(Products):
    """Products and their sum in one instruction, a ``DotProduct``."""

    dot: DotProduct

    @classmethod
    def of(cls, dot: DotProduct, lanes: int) -> "DotSums":
        """Returns the products of an instruction on registers of ``lanes`` sums.

        Of unsigned and signed bytes those of B are unsigned, 128 larger than they are. Integers of 16 bits
        are bytes that are extended.
        """
        k_group_bits = K_GROUP_BITS
        rows = 1
        if dot.has_matrices:
            k_group_bits = 2 * K_GROUP_BITS
            rows = 2
        elif dot.factors == "i16":
            k_group_bits = HALF_BITS
        return cls(
            dot=dot,
            dots=(dot,),
            register=str(dot.sums_type(lanes)),
            lanes=lanes,
            sum_element=dot.sums,
            element=dot.factors,
            k_group_bits=k_group_bits,
            rows=rows,
            offset=BYTE_OFFSET if UNSIGNED in dot.extensions else 0,
            reads_lanes=lanes == AARCH64_LANES and rows == 1,
        )

    def after(self, before: Value, of_a: Sequence[Value], of_b: Value) -> Value:
        if self.rows > 1:
            return dot_product(self.dot, before, of_a[0], of_b)
        if self.k_group_bits == HALF_BITS:
            return dot_product(self.dot, before, of_a[0], as_words(of_b))
        return dot_product(self.dot, before, of_b, of_a[0])


@final
@dataclass(frozen=True, kw_only=True)
class PairProducts(Products):
    """Products of pairs of bf16, summed in f32: by vdpbf16ps, or with ``has_halves`` by two multiply-adds."""

    @classmethod
    def of(cls, lanes: int, *, has_halves: bool) -> "PairProducts":
        register = f"vector<{lanes}xf32>"
        return cls(register=register, lanes=lanes, sum_element="f32", element="bf16", has_halves=has_halves)

    def after(self, before: Value, of_a: Sequence[Value], of_b: Value) -> Value:
        if not self.has_halves:
            pairs = ir.VectorType.get([2 * self.lanes], ir.BF16Type.get())
            return value(DOT, self.sums, before, as_type(of_a[0], pairs), as_type(of_b, pairs))
        if len(of_a) == 1:
            of_a = [as_floats(half) for half in self._halves(of_a[0])]
        for left, half in zip(of_a, self._halves(of_b), strict=True):
            before = multiply_add(left, as_floats(half), before)
        return before

    def _halves(self, k_groups: Value) -> tuple[Value, Value]:
        bits = as_type(k_groups, k_groups_type(self.lanes))
        return first_half(bits), second_half(bits)


@final
@dataclass(frozen=True, kw_only=True)
class SingleProducts(Products):
    """Products of single numbers, by multiply-add; of integers, by a product and a sum."""

    @classmethod
    def of(cls, lanes: int, element: str) -> "SingleProducts":
        register = f"vector<{lanes}x{element}>"
        return cls(register=register, lanes=lanes, sum_element=element, element=element)

    def after(self, before: Value, of_a: Sequence[Value], of_b: Value) -> Value:
        return multiply_add(of_a[0], of_b, before)


@final
@dataclass(frozen=True, kw_only=True)
class AmxProducts(Products):
    """Products of AMX tiles, 16 rows of A by 16 columns of B, each of 16 K groups."""

    name: str  # of the op

    @classmethod
    def of(cls, element: str) -> "AmxProducts":
        name, sum_element = TILE_PRODUCTS[element]
        return cls(
            name=name,
            register=f"!x86.amx.tile<{K_GROUPS}x{K_GROUPS}x{sum_element}>",
            lanes=K_GROUPS * K_GROUPS,
            sum_element=sum_element,
            element=element,
            rows=K_GROUPS,
        )

    def after(self, before: Value, of_a: Sequence[Value], of_b: Value) -> Value:
        return value(self.name, self.sums, of_a[0], of_b, before)


NAMED_DOTS = (VPDPBUSD, VPMADDWD, SDOT, BFDOT, SMMLA, BFMMLA)
# An instruction by the name that an op's attribute ``instruction`` has: its lanes -> its products. What it
# needs is in ``needed_instructions``.
INSTRUCTIONS: dict[str, Callable[[int], Products]] = {
    **{dot.name.rstrip("_"): partial(DotSums.of, dot) for dot in NAMED_DOTS},
    "vdpbf16ps": partial(PairProducts.of, has_halves=False),
    "fma": partial(PairProducts.of, has_halves=True),
}


def products_of(op: InPlaceOp, element: str, lanes: int) -> Products | Refusal:
    """Returns how an op multiplies A and B of ``element``, i8 or bf16, on registers of ``lanes`` sums.

    ``instruction_of`` names the instruction by the op's attributes. Refuses an unknown instruction, one of
    other elements, and one that has no registers of so many lanes.
    """
    name = instruction_of(op.operation.name, element, attributes_of(op))
    sums = natural_output(element)
    allowed = [known for known, make in INSTRUCTIONS.items() if make(lanes).sum_element == sums]
    if name not in allowed:
        return Refusal(f"instruction: found {name}, allowed {' or '.join(allowed)} for {element}")
    only = needed_instructions.INSTRUCTIONS.get(name)
    if only is not None and only.lanes not in (0, lanes):
        return Refusal(f"found {name} with {lanes} lanes, allowed {only.lanes}")
    return INSTRUCTIONS[name](lanes)
