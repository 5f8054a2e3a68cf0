"""``tuner.use_tf32x3``: products of f32 become three of tf32, whose sums are added to totals."""

import pytest

from tests.mlir.ops.one_op import apply, line_of
from tests.texts import filled

PRODUCT, CHAINS = (filled(__file__, name) for name in ("PRODUCT", "CHAINS"))
OF_F16 = PRODUCT.replace("4x1xf32", "4x2xf16").replace("2x1xf32", "2x2xf16").replace("8, 8]", "8, 16]")


def line(promote: int) -> str:
    return line_of("use_tf32x3", promote=promote)


@pytest.mark.parametrize(("promote", "additions"), [(8, 3), (16, 2), (24, 1), (64, 1)])
def test_each_chain_is_added_to_its_total_once_a_period_and_at_the_end(promote: int, additions: int) -> None:
    text = apply(line(promote), CHAINS)
    assert text.count("arith.addf") == 2 * additions
    assert text.count("nvgpu.mma.sync") == 2 * 3 * 3
    assert text.count("arith.subf") == 4  # of %b and of three fragments of A, each once


def test_a_chain_shorter_than_others_is_added_to_its_total_where_it_ends() -> None:
    lines = CHAINS.replace("yield %x2, %y2", "yield %x2, %y0").splitlines(keepends=True)
    text = apply(line(64), "".join(row for row in lines if not row.lstrip().startswith(("%y1", "%y2"))))
    assert text.count("arith.addf") == 2
    assert text.count("nvgpu.mma.sync") == 3 * (3 + 1)


BECOMES = {"use_tf32x3": (line(8), PRODUCT), "use_tf32x3_chains": (line(16), CHAINS)}
REFUSED = [
    (line(0), PRODUCT, "promote: found 0, allowed multiples of 8"),
    (line(12), PRODUCT, "promote: found 12, allowed multiples of 8"),
    (
        line(24),
        CHAINS.replace("yield %x2, %y2", "yield %x2, %y1"),
        "found sums with a user besides the next product",
    ),
    (line(16), OF_F16, r"found no nvgpu\.mma\.sync of f32 operands"),
]
