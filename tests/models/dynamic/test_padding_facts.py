"""A softmax needs no mask for what a causal mask hides; whatever is in the padding, or in what counts."""

from typing import Any

import numpy as np
import pytest

from tests.models.dynamic.programs import poisoned
from tests.models.dynamic.test_specialization import interpreted, static_program
from tests.texts import text_beside
from tuner.core.dynamic_sizes import SizeRange
from tuner.models.dynamic.specialization import program_of_sizes

CAUSAL = text_beside(__file__, "CAUSAL")
MASK = "arith.cmpf ogt"  # the comparison of a mask's element
SIZES = SizeRange(1, 24)


def seeing(later: int) -> str:
    """Returns the program in which a query sees keys up to ``later`` positions after its own."""
    return CAUSAL.replace("%later = arith.constant 0", f"%later = arith.constant {later}")


def expected(scores: Any, v: Any, later: int) -> Any:
    rows, keys = np.ogrid[: len(v), : len(v)]
    with np.errstate(invalid="ignore"):
        shown = np.where(keys - rows <= later, scores, -np.inf)
        exponentials = np.exp(shown - shown.max(1, keepdims=True))
        return exponentials / exponentials.sum(1, keepdims=True) @ v


# a query that sees no later key sees no padding; one that sees more gets one mask, of its scores
@pytest.mark.parametrize(("later", "masks"), [(0, 1), (-1, 1), (1, 2), (30, 2)])
def test_what_a_causal_mask_hides_gets_no_other_mask(later: int, masks: int) -> None:
    with poisoned():
        text = static_program(seeing(later), 24).text
    assert text.count(MASK) == masks  # one of the values, which products read


@pytest.mark.parametrize("later", [0, -1, 1])
@pytest.mark.parametrize("special", [None, np.inf, -np.inf, np.nan])
def test_rows_are_right_with_any_numbers_in_padding_and_in_scores(later: int, special: float | None) -> None:
    rng = np.random.default_rng(0)
    with poisoned():
        function = program_of_sizes(SIZES, lambda at: static_program(seeing(later), at), interpreted)
        function.ladder = (SIZES.greatest,)
        for n in range(1, 25):
            scores = rng.standard_normal((n, n)).astype(np.float32)
            if special is not None:
                scores[n // 2, : n // 2 + 1] = special  # of all keys that a row sees
                scores[n - 1, 0] = special
            v = rng.standard_normal((n, 3)).astype(np.float32)
            np.testing.assert_allclose(function(scores, v), expected(scores, v, later), rtol=0, atol=2e-4)


# of the same form, each with a step that keeps the proof from holding
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("arith.cmpi sle, %distance", "arith.cmpi sge, %distance"),
        ("arith.subi %key, %query", "arith.subi %query, %key"),
        ("arith.select %is_seen, %score, %least", "arith.select %is_seen, %score, %zero"),
        ("arith.subf %in, %top", "arith.addf %in, %top"),
        ("arith.divf %in, %total", "arith.subf %in, %total"),
        ("ins(%exp, %sum", "ins(%exp, %max"),
        ("ins(%shown, %max", "ins(%scores, %max"),
        ("ins(%least : f32) outs(%rows", "ins(%zero : f32) outs(%rows"),
    ],
)
def test_a_program_that_differs_in_one_step_gets_the_masks_that_it_needs(old: str, new: str) -> None:
    assert CAUSAL.count(old) == 1
    changed = CAUSAL.replace(old, new)
    rng = np.random.default_rng(0)
    with poisoned():
        assert static_program(changed, 24).text.count(MASK) > 1
        function = program_of_sizes(SIZES, lambda at: static_program(changed, at), interpreted)
        function.ladder = (SIZES.greatest,)
        whole = program_of_sizes(SIZES, lambda at: static_program(changed, at), interpreted)
        whole.ladder = tuple(range(1, 25))  # without padding
        for n in (1, 2, 5, 11, 23):
            scores = rng.standard_normal((n, n)).astype(np.float32)
            v = rng.standard_normal((n, 3)).astype(np.float32)
            np.testing.assert_allclose(function(scores, v), whole(scores, v), rtol=1e-4, atol=1e-4)


def test_a_number_with_one_bit_is_not_the_identity_of_all_bits() -> None:
    text = text_beside(__file__, "COMMON_BITS")
    function = program_of_sizes(SIZES, lambda at: static_program(text, at), interpreted)
    function.ladder = (SIZES.greatest,)
    for n in (1, 2, 7, 24):
        x = np.full((n, n), 6, np.int64)
        expected_row = np.where(np.arange(n) < n - 1, 0, 6)  # 6 & 1, but in the last row, which sees all
        np.testing.assert_array_equal(function(x), expected_row)
