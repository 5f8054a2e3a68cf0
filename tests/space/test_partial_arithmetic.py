import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.space import partial_arithmetic
from tuner.space.partial_arithmetic import Partial

UNDEFINED = Partial(True, True)
TRUTHS = {"true": Partial(True), "false": Partial(False), "undefined": UNDEFINED}


def truth(part: Partial) -> str:
    return "undefined" if part.undefined else str(bool(part.value)).lower()


@pytest.mark.parametrize("left", TRUTHS)
@pytest.mark.parametrize("right", TRUTHS)
def test_truth_is_kleenes_whichever_side_comes_first(left: str, right: str) -> None:
    order = ["false", "undefined", "true"]
    both = [TRUTHS[left], TRUTHS[right]]
    assert truth(partial_arithmetic.all_of(both)) == min(left, right, key=order.index)
    assert truth(partial_arithmetic.any_of(both)) == max(left, right, key=order.index)
    assert truth(partial_arithmetic.negate(TRUTHS[left])) == order[2 - order.index(left)]


@pytest.mark.parametrize("sign", ["/", "//", "%"])
def test_a_zero_divisor_leaves_its_point_undefined_and_the_others_alone(sign: str) -> None:
    quotient = partial_arithmetic.arithmetic(sign, Partial(np.array([6, 6])), Partial(np.array([0, 4])))
    assert np.array_equal(quotient.undefined, [True, False])
    assert quotient.filled()[1] == partial_arithmetic.ARITHMETIC[sign](6, 4)  # type: ignore[index]


def test_undefined_points_are_filled_with_nothing() -> None:
    undefined = np.array([True, False])
    assert list(Partial(np.array([5, 6]), undefined).filled()) == [0, 6]  # type: ignore[arg-type]
    assert list(Partial(np.array([True, True]), undefined).filled()) == [False, True]  # type: ignore[arg-type]
    assert list(Partial(np.array(["a", "b"]), undefined).filled()) == ["", "b"]  # type: ignore[arg-type]
    assert Partial(7, True).filled() == 0
    assert Partial("a", True).filled() == ""
    assert Partial(True, True).filled() is False


@settings(deadline=None)  # of a shared machine
@given(
    st.sampled_from(["+", "-", "*", "//", "%"]),
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5),
    st.integers(-(2**70), 2**70),
)
def test_columns_are_as_exact_as_integers(sign: str, column: list[int], number: int) -> None:
    for left, right, wanted in (
        (Partial(np.array(column)), Partial(number or 1), [(each, number or 1) for each in column]),
        (Partial(number), Partial(np.array(column)), [(number, each) for each in column]),
    ):
        found = partial_arithmetic.arithmetic(sign, left, right)
        undefined = np.broadcast_to(found.undefined, len(column))
        for point, (a, b) in enumerate(wanted):
            assert undefined[point] == (sign in ("//", "%") and b == 0)
            if not undefined[point]:
                assert found.value[point] == partial_arithmetic.ARITHMETIC[sign](a, b)  # type: ignore[index]


@pytest.mark.parametrize("sign", ["<", "+"])
def test_a_text_has_no_order_and_no_sum(sign: str) -> None:
    apply = partial_arithmetic.compare if sign == "<" else partial_arithmetic.arithmetic
    with pytest.raises(TypeError, match="text"):
        apply(sign, Partial("a"), Partial("b"))


def test_a_text_is_no_condition_and_no_alternative_to_a_number() -> None:
    with pytest.raises(TypeError, match="text used as a condition"):
        partial_arithmetic.negate(Partial("a"))
    with pytest.raises(TypeError, match="a choice between text and a number"):
        partial_arithmetic.choose(Partial(True), Partial("a"), Partial(1))


def test_a_power_that_would_fill_the_memory_is_refused() -> None:
    with pytest.raises(OverflowError, match="a power wider than 1024 bits"):
        partial_arithmetic.arithmetic("**", Partial(2**100), Partial(16))


def test_a_column_without_points_is_no_trouble() -> None:
    empty = Partial(np.empty(0, np.int64))
    assert len(np.atleast_1d(partial_arithmetic.arithmetic("*", empty, Partial(2**70)).value)) == 0
