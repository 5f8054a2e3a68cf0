"""Reductions of rows that no vector divides are numpy's: greatest and least elements, truths, counts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.mlir.kernels import changed
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.instruction_sets import AVX2, SETS
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.masks import fill_masked_lanes, unmask_truths
from tuner.mlir.transform import new_context, parse
from tuner.models.execution import host_function
from tuner.runtime.cpu.host import describe_machine, own_flags
from tuner.targets.cpu import target

REDUCTION, HIDDEN = (text_beside(__file__, name) for name in ("REDUCTION", "HIDDEN"))  # of 5 rows of 2
CHOOSING = text_beside(__file__, "CHOOSING")  # of 4 rows of 2
COUNTS, TRUTHS, VIEWED = (text_beside(__file__, name) for name in ("COUNTS", "TRUTHS", "VIEWED"))
SHOWN = {unmask_truths: (TRUTHS,)}


def computed(text: str, scheduled: str, *arrays: Any) -> Any:
    """Returns what one fusion of this kind or strategy computes, scheduled by its initial configuration."""
    height, width = arrays[-1].shape
    sized = text.replace("5x", f"{height}x").replace("x2x", f"x{width}x").replace("<2x", f"<{width}x")
    compiled = compiler_of(TargetName("cpu")).compile(sized, as_fusions=True)
    assert compiled.image is not None
    ((kind, strategy),) = [(each.kind, each.strategy) for each in compiled.image.code.fusions]
    assert scheduled in (kind, strategy)
    return host_function(compiled)(*arrays)


def rows_and_expected(width: int, dtype: type[np.floating[Any]]) -> tuple[Any, Any]:
    """Returns rows of -inf, and what HIDDEN makes of these: rows of nothing else become rows of 1."""
    rows = np.full((width + 3, width), -np.inf, dtype)
    rows[np.arange(width), np.arange(width)] = 2  # one element is seen; of the last three rows none
    expected = rows.copy()
    expected[width:] = 1
    return rows, expected


@pytest.mark.drawn(1)
@pytest.mark.parametrize("width", [2, 6, 16, 17, 40])
def test_rows_of_any_width_and_sign(width: int) -> None:
    rows = 1 + np.random.default_rng(0).random((5, width), np.float32)
    np.testing.assert_array_equal(computed(REDUCTION, "rows", -rows), (-rows).max(1))
    least = REDUCTION.replace("maximumf", "minimumf").replace("0xFF800000", "0x7F800000")
    np.testing.assert_array_equal(computed(least, "rows", rows), rows.min(1))
    whole = np.floor(rows * 100)
    total = REDUCTION.replace("maximumf", "addf").replace("0xFF800000", "0.0")
    np.testing.assert_array_equal(computed(total, "rows", whole), whole.sum(1))


def test_a_masked_sum_is_one_of_all_lanes_that_may_be_added_in_any_order() -> None:
    with new_context(), ir.Location.unknown():
        module = parse(text_beside(__file__, "MASKED"), "text")
        fill_masked_lanes(module)
        assert str(module).count("vector.mask") == 1  # of integers
        assert "vector.reduction <add>, %0, %arg2 : vector<4xf32> into f32" in str(module)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("width", [2, 6, 16, 17, 40, 64, 72, 129, 201])
def test_rows_of_any_width_are_hidden_where_every_element_is(width: int) -> None:
    """Reductions of truths over rows that no vector divides."""
    rows, expected = rows_and_expected(width, np.float32)
    np.testing.assert_array_equal(computed(HIDDEN, "rows", rows), expected)


NEEDS_AVX2 = pytest.mark.skipif(
    not own_flags() >= SETS[AVX2].flags, reason="needs AVX2; NEON has four lanes of f32"
)


def use_avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = replace(describe_machine(), isa=AVX2, has_bf16=False, has_vnni=False)
    monkeypatch.setattr(target, "describe_machine", lambda _limit: machine)


@pytest.mark.parametrize("isa", ["own", pytest.param(AVX2, marks=NEEDS_AVX2)])
@pytest.mark.parametrize("width", [6, 7, 13, 33])
def test_truths_that_two_reductions_count_are_written_within_their_buffer(
    width: int, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM leaves undefined what is stored beyond a buffer, even if only for lanes that nobody counts."""
    if isa == AVX2:
        use_avx2(monkeypatch)
    numbers = np.arange(4 * width).reshape(4, width) % 5
    np.testing.assert_array_equal(computed(COUNTS, "rows", numbers), np.full(4, width, np.float32))


def test_a_buffer_of_truths_stays_as_long_as_a_view_of_all_of_it() -> None:
    before, after, _ = changed(unmask_truths, VIEWED)
    assert after == before


@NEEDS_AVX2
def test_truths_of_four_lanes_destroy_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 16 truths in a buffer four are written again: as bits they shared a byte with four more."""
    use_avx2(monkeypatch)
    rows, expected = rows_and_expected(17, np.float64)
    text = HIDDEN.replace("f32", "f64").replace("0xFF800000", "0xFFF0000000000000")
    np.testing.assert_array_equal(computed(text, "rows", rows), expected)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("width", [7, 16, 40, 128])
def test_a_mask_chooses_the_columns_that_numpy_chooses(width: int) -> None:
    """Masks that are arguments are read byte by byte, whatever the width of the vectors."""
    rng = np.random.default_rng(0)
    mask, x = rng.random(width) > 0.5, rng.standard_normal((4, width), np.float32)
    np.testing.assert_array_equal(computed(CHOOSING, "elementwise_cpu", mask, x), np.where(mask, x, 0))
