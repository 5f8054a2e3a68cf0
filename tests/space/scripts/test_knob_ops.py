import pytest

from tests.default_suite import ALL
from tests.mlir.scripts import alternatives, knob, script
from tuner.core.errors import UsageError
from tuner.space.scripts.schedule import Schedule
from tuner.space.search_space import Knob

pytestmark = pytest.mark.mlir


def read(*ops: str) -> tuple[Knob, ...]:
    return Schedule(script(*ops), "own.mlir").knobs


def test_knobs_and_alternatives_are_read_in_order_inside_regions_too_and_one_name_once() -> None:
    twice = knob("twice", '["a", "b"]', kind="!transform.any_param")
    for ops, found in (
        (
            (knob("size", "[16, 32]"), alternatives("order", "", "", ""), twice),
            (Knob("size", (16, 32)), Knob("order", (0, 1, 2)), Knob("twice", ("a", "b"))),
        ),
        (
            (alternatives("order", knob("inner", "[1, 2]"), ""),),
            (Knob("order", (0, 1)), Knob("inner", (1, 2))),
        ),
        ((knob("size", "[16, 32]"), knob("size", "[32, 16]", result="again")), (Knob("size", (16, 32)),)),
    ):
        assert read(*ops) == found


def test_alternatives_without_a_name_are_numbered_and_those_that_a_parameter_picks_are_no_knob() -> None:
    found = read(alternatives("", "", ""), alternatives("a", ""), alternatives("", ""))
    assert [each.name for each in found] == ["alternatives_0", "a", "alternatives_2"]
    picked = alternatives("order", "", "", selected=f"%which : {'!transform.param<i64>'}")
    assert read(knob("which", "[0, 1]"), picked) == (Knob("which", (0, 1)),)


@pytest.mark.parametrize("options", ["[16, 32]", "{min = 16, max = 32}", "{}"])
def test_what_is_selected_already_is_the_only_choice(options: str) -> None:
    assert read(knob("size", options, selected="32")) == (Knob("size", (32,)),)
    assert read(alternatives("order", "", "", selected="1")) == (Knob("order", (1,)),)


@pytest.mark.parametrize("places", [("", "32"), ("32", ""), ("32", "32")])
def test_one_selection_decides_for_all_ops_of_the_name(places: tuple[str, str]) -> None:
    first, second = places
    found = read(knob("size", "[16, 32]", first), knob("size", "[16, 32]", second, result="again"))
    assert found == (Knob("size", (32,)),)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("ops", "message"),
    [
        (
            (knob("size", "[16, 32]", "32"), knob("size", "[16, 32]", "16", result="again")),
            r"own.mlir:6:14: knob 'size': 16 is selected, but 32 at own.mlir:5:13",
        ),
        (
            (knob("size", "[16, 32]"), knob("size", "[16, 64]", result="again")),
            r"own.mlir:6:14: knob 'size': its options 16, 64 differ from those of own.mlir:5:13: 16, 32",
        ),
        (  # `knob < 16` that admits 17: MLIR checks selections of arrays only
            (knob("size", "{max = 16}", selected="17"),),
            r"own.mlir:5:13: knob 'size': found 17 : i64 selected, allowed 1, 2, 3",
        ),
        (
            (knob("size", "[16]", selected="17"),),
            r"own.mlir:\d+:\d+: .*provided `selected` attribute is not an element",
        ),
        *(
            (
                (alternatives("order", "", "", selected=region),),
                f"own.mlir:\\d+:\\d+: .*region at index {region} while op has only 2",
            )
            for region in ("2", "-1")
        ),
        (('transform.tune.alternatives<"order">',), r"own.mlir:5:5: alternatives 'order': has no regions"),
        ((knob("size", "[16 : i32]"),), "knob 'size': found option 16 : i32, allowed i64"),
        ((knob("size", '["sixteen"]'),), "knob 'size': found option \"sixteen\", allowed i64"),
        (
            (knob("size", "{min = -9223372036854775808, max = 9223372036854775807}"),),
            r"knob 'size': options: found 18446744073709551616 integers, allowed 1048576",
        ),
        ((knob("size", "[]"),), r"own.mlir:5:13: knob 'size': options: found 0 values"),
    ],
)
def test_a_wrong_selection_or_option_is_refused_with_its_place(ops: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(*ops)
