"""``tuner.bf16_dot``: contractions of bf16 pairs become AVX512-BF16 dot products (vdpbf16ps).

Takes a function whose matmul tiles are ``vector.contract`` of depth 2: (rows x 2) and (columns x 2) bf16 into
rows x columns f32, columns a multiple of 16. Gives one ``x86.avx512.dot`` per row and 16 columns; the pair of
A is broadcast as one 32-bit word. Not handled: other types and shapes. Indexing maps are not checked; they
must be (m, k), (n, k) -> (m, n).

    %sum = vector.contract {...} %a, %b, %c : vector<1x2xbf16>, vector<16x2xbf16> into vector<1x16xf32>
  becomes
    %line_b = vector.shape_cast %b : vector<16x2xbf16> to vector<32xbf16>
    %words = vector.broadcast %word_of_a : i32 to vector<16xi32>
    %pairs_a = vector.bitcast %words : vector<16xi32> to vector<32xbf16>
    %sums = x86.avx512.dot %row_of_c, %pairs_a, %line_b : vector<32xbf16> -> vector<16xf32>
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.dialect import InPlaceOp
from tuner.mlir.rewrite.walking import walk

LANES = 16  # f32 accumulators of one 512-bit register
PAIR = 2  # bf16 products that one instruction adds to an accumulator


class Bf16DotOp(InPlaceOp, name="bf16_dot"):
    """The transform op ``tuner.bf16_dot``: each ``vector.contract`` becomes AVX512-BF16 dot products.

    The handle (a func.func) stays valid. Silenceable failure: a contraction that is not of (rows x 2) and
    (columns x 2) bf16 into rows x columns, with columns a multiple of 16.
    """

    def change(self, function: Op) -> str | None:
        """Replaces each ``vector.contract`` of one function by AVX512-BF16 dot products, in place.

        Returns None, or a message about the first contraction of other types or shapes; those before it are
        replaced.
        """
        for contract in walk(function, "vector.contract"):
            if not _is_pair_contraction(contract):
                types = " x ".join(str(operand.type) for operand in contract.operands[:2])
                return f"found a contraction of {types}, allowed rows x 2 and columns x 2 of bf16"
            _rewrite(contract)
        return None


def _is_pair_contraction(contract: Op) -> bool:
    """Returns whether the types and shapes of a contraction are supported by ``_rewrite``."""
    a, b, c = (ir.VectorType(operand.type) for operand in contract.operands)
    shapes = (list(a.shape), list(b.shape), list(c.shape))
    rows, columns = shapes[0][0], shapes[1][0]
    is_bf16 = all(isinstance(one.element_type, ir.BF16Type) for one in (a, b))
    return is_bf16 and shapes == ([rows, PAIR], [columns, PAIR], [rows, columns]) and columns % LANES == 0


def _rewrite(contract: Op) -> None:
    """Replaces a contraction by dot products, one per row of C and 16 columns."""
    a, b, total = contract.operands
    rows, columns = ir.VectorType(total.type).shape
    with ir.InsertionPoint(contract), contract.location:
        flat = _create("vector.shape_cast", f"vector<{PAIR * columns}xbf16>", b)
        parts = [_slice(flat, PAIR * LANES, PAIR * LANES * part, "bf16") for part in range(columns // LANES)]
        for row in range(rows):
            pair = _broadcast_pair(a, row)
            line = _create(
                "vector.extract", f"vector<{columns}xf32>", total, static_position=f"array<i64: {row}>"
            )
            for part, columns_of_b in enumerate(parts):
                sums = _slice(line, LANES, LANES * part, "f32")
                sums = _create("x86.avx512.dot", f"vector<{LANES}xf32>", sums, pair, columns_of_b)
                line = _insert(sums, line, LANES * part, columns)
            total = _create(
                "vector.insert",
                f"vector<{rows}x{columns}xf32>",
                line,
                total,
                static_position=f"array<i64: {row}>",
            )
    contract.results[0].replace_all_uses_with(total)
    contract.erase()


def _broadcast_pair(a: Value, row: int) -> Value:
    """Creates the broadcast of two adjacent elements of a row of A, as one 32-bit word."""
    pair = _create("vector.extract", f"vector<{PAIR}xbf16>", a, static_position=f"array<i64: {row}>")
    word = _create("vector.bitcast", "vector<1xi32>", pair)
    scalar = _create("vector.extract", "i32", word, static_position="array<i64: 0>")
    return _create(
        "vector.bitcast",
        f"vector<{PAIR * LANES}xbf16>",
        _create("vector.broadcast", f"vector<{LANES}xi32>", scalar),
    )


def _slice(vector: Value, size: int, offset: int, dtype: str) -> Value:
    places = {"offsets": f"[{offset}]", "sizes": f"[{size}]", "strides": "[1]"}
    return _create("vector.extract_strided_slice", f"vector<{size}x{dtype}>", vector, **places)


def _insert(part: Value, whole: Value, offset: int, size: int) -> Value:
    places = {"offsets": f"[{offset}]", "strides": "[1]"}
    return _create("vector.insert_strided_slice", f"vector<{size}xf32>", part, whole, **places)


def _create(name: str, result: str, *operands: Value, **attributes: str) -> Value:
    return ir.Operation.create(
        name,
        results=[ir.Type.parse(result)],
        operands=list(operands),
        attributes={key: ir.Attribute.parse(text) for key, text in attributes.items()},
    ).results[0]
