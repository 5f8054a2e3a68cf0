"""Which masks of attentions are found, and which keys they hide."""

from typing import Any

import numpy as np
import pytest

from tests.fusion_runs import as_problem, draw_inputs
from tests.mlir.attention_texts import Attention
from tuner.mlir.fusions.facts import facts_of
from tuner.mlir.fusions.hidden_keys import AttentionMask, attention_mask, visible_band, with_visible_band

SIZES = (4, 20, 3, 5)
ADDED, SELECTED = AttentionMask(2, None, (0, 1, 3)), AttentionMask(2, False, (0, 1, 3))
STEPS = np.arange(20) - np.arange(4)[:, None]
INFINITE = np.where(STEPS <= 0, 0.5, -np.inf)


def text(mask: str, batch: int = 2, element: str = "f32") -> str:
    return as_problem("attention", Attention(SIZES, mask, batch, element=element).text()).text


@pytest.mark.parametrize(("mask", "found"), [("bias", ADDED), ("bias_of_heads", ADDED), ("seen", SELECTED)])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_a_mask_that_is_added_or_selects_is_found(mask: str, found: AttentionMask, element: str) -> None:
    assert attention_mask(text(mask, element=element)) == found
    assert attention_mask(text("scale", element=element)) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("math.exp %", "math.exp2 %"),
        ("arith.subf", "arith.mulf"),
        ("arith.divf", "arith.subf"),
        ("arith.maximumf", "arith.minimumf"),
        ("arith.addf %in, %in_", "arith.maximumf %in, %in_"),  # the mask
    ],
)
def test_of_no_other_operations_it_is_known_that_a_hidden_key_has_no_weight(old: str, new: str) -> None:
    found = text("bias")
    changed = found.replace(old, new)
    assert changed != found
    assert attention_mask(changed) is None


@pytest.mark.parametrize(
    ("numbers", "band"),
    [
        (INFINITE, (-3, 0)),
        (np.where(STEPS <= 16, 0.0, -3e38), (-3, 16)),
        (np.where(np.abs(STEPS) < 3, 0.0, -np.inf), (-2, 2)),
        (np.stack((INFINITE, np.where(STEPS <= 2, 0.0, -np.inf))), (-3, 2)),  # of two heads
        (np.where(STEPS == 3, np.nan, INFINITE), (-3, 3)),
        (np.zeros((4, 20)), None),
        (np.where(STEPS <= 0, 0.0, -1e9), None),  # may have a weight next to scores as low
        (np.where(STEPS < 0, 0.0, -np.inf), None),  # of the first row nothing is seen
    ],
)
def test_the_band_of_a_mask_has_all_keys_that_a_row_sees(numbers: Any, band: tuple[int, int] | None) -> None:
    assert visible_band(ADDED, numbers.astype(np.float32)) == band


def test_a_mask_of_truths_hides_by_either() -> None:
    assert visible_band(SELECTED, STEPS <= 0) == (-3, 0)
    assert visible_band(AttentionMask(2, True, (0, 1, 3)), STEPS > 0) == (-3, 0)


@pytest.mark.parametrize(("mask", "least"), [("bias", -np.inf), ("seen", False)])
def test_inputs_that_are_drawn_hide_the_same_keys(mask: str, least: float) -> None:
    marked = with_visible_band(text(mask), attention_mask(text(mask)) or ADDED, (-3, 0))
    assert facts_of(marked).visible == (-3, 0)
    drawn = draw_inputs(marked, np.random.default_rng(0))[2]
    assert (drawn[STEPS > 0] == least).all()
    assert (drawn[STEPS <= 0] != least).all()
