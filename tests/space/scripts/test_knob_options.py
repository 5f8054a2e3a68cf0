from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tuner.core.candidate import Value
from tuner.core.errors import UsageError

pytestmark = pytest.mark.mlir

ir = pytest.importorskip("tuner.mlir.bindings").ir

from tuner.space.scripts.knobs import OPTIONS_LIMIT, read_options  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def context() -> Iterator[None]:
    with ir.Context(), ir.Location.unknown():
        yield


def values(text: str) -> tuple[Value, ...]:
    return tuple(option.value for option in read_options(ir.Attribute.parse(text), "f.mlir:3:5"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[16, 32, 8]", (16, 32, 8)),
        ("[-1, 0 ]", (-1, 0)),
        ("[7 : i32]", (7,)),
        ('["ij", "ji"]', ("ij", "ji")),
        ("[true, false]", ("true", "false")),
        ('["cat", unit]', ("cat", "unit")),
        ("[2.0 : f32, 2.25 : f32]", ("2.0", "2.25")),
        ("[[8, 4], [4, 8]]", ("[8, 4]", "[4, 8]")),
        ('[1, "auto"]', ("1", "auto")),
        ("{options = [4, 2]}", (4, 2)),
    ],
)
def test_an_array_is_taken_in_its_order_and_other_than_integers_by_their_text(
    text: str, expected: tuple[Value, ...]
) -> None:
    assert values(text) == expected


def test_an_option_keeps_the_attribute_as_the_script_spells_it() -> None:
    options = read_options(ir.Attribute.parse("[7 : i32, 8 : i32]"), "f")
    assert [str(option.attribute) for option in options] == ["7 : i32", "8 : i32"]
    options = read_options(ir.Attribute.parse("{min = 1 : i8, max = 2 : i8}"), "f")
    assert [str(option.attribute) for option in options] == ["1 : i8", "2 : i8"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{min = 4, max = 7}", (4, 5, 6, 7)),
        ("{max = 3}", (1, 2, 3)),
        ("{min = 16, max = 64, step = 16}", (16, 32, 48, 64)),
        ("{min = 3, max = 10, step = 3}", (3, 6, 9)),
        ("{min = 5, max = 30, divisible_by = 8}", (8, 16, 24)),
        ("{divides = 12}", (1, 2, 3, 4, 6, 12)),
        ("{divides = 48, divisible_by = 4, max = 20}", (4, 8, 12, 16)),
        ("{lower_bound = 16, upper_bound = 64, divisible_by = 16, divides = 192}", (16, 32, 48, 64)),
        ("{min = -2, max = 2}", (-2, -1, 0, 1, 2)),
        ("{min = -2, max = 2, divides = 4}", (-2, -1, 1, 2)),
    ],
)
def test_a_dictionary_is_every_integer_that_it_describes(text: str, expected: tuple[int, ...]) -> None:
    assert values(text) == expected


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    low=st.integers(-40, 40),
    extent=st.integers(0, 80),
    step=st.none() | st.integers(1, 12),
    divisible_by=st.none() | st.integers(1, 12),
    divides=st.none() | st.integers(1, 720),
    arguments=st.sampled_from([("min", "max"), ("lower_bound", "upper_bound")]),
)
def test_no_bound_admits_a_value_outside_or_forgets_one_inside(
    low: int,
    extent: int,
    step: int | None,
    divisible_by: int | None,
    divides: int | None,
    arguments: tuple[str, str],
) -> None:
    high = low + extent
    given_keys = {
        arguments[0]: low,
        arguments[1]: high,
        "step": step,
        "divisible_by": divisible_by,
        "divides": divides,
    }
    text = ", ".join(f"{key} = {number}" for key, number in given_keys.items() if number is not None)
    expected = [
        number
        for number in range(low, high + 1)
        if (step is None or (number - low) % step == 0)
        and (divisible_by is None or number % divisible_by == 0)
        and (divides is None or (number != 0 and divides % number == 0))
    ]
    assume(expected)
    assert list(values("{" + text + "}")) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "f.mlir:3:5: options: found 0 values, allowed 1..4096"),
        ("{min = 3, max = 2}", "options: found 0 values"),
        ("{min = 17, max = 30, divides = 16}", "options: found 0 values"),
        (
            f"{{max = {OPTIONS_LIMIT + 1}}}",
            f"options: found {OPTIONS_LIMIT + 1} values, allowed 1..{OPTIONS_LIMIT}",
        ),
        ("{max = 1000000000000}", "options: found 1000000000000 integers, allowed 1048576"),
        ("[16, 16]", "options: 16 is listed twice"),
        ('[1, "1"]', "options: '1' is listed twice"),
        ("[1 : i32, 1 : i64]", "options: 1 is listed twice"),
        ("16", "options: found 16 : i64, allowed an array or a dictionary"),
        ("{}", "options: found nothing, allowed integers of one type"),
        ("{min = 4}", "options: the key max is missing"),
        ("{max = 4, stride = 2}", "options: found keys max, stride, allowed {min, max, step"),
        ("{max = 4, upper_bound = 4}", "options: found keys max, upper_bound, allowed"),
        ("{max = 4, options = [1]}", "options: found keys max, options, allowed"),
        ('{max = "four"}', 'options: found "four", allowed integers of one type'),
        ("{min = 1 : i32, max = 4}", "options: found i32, i64, allowed integers of one type"),
        ("{max = 4, step = 0}", r"options.step: found 0, allowed 1 or more"),
        ("{max = 4, divisible_by = -2}", r"options.divisible_by: found -2, allowed 1 or more"),
        ("{divides = 0}", r"options.divides: found 0, allowed 1 or more"),
    ],
)
def test_options_that_are_none_are_refused_with_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        values(text)
    assert message in str(refusal.value)
