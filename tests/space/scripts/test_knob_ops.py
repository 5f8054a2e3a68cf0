import pytest

from tests.mlir.scripts import alternatives, knob, script
from tuner.core.errors import UsageError
from tuner.space.search_space import Knob

pytestmark = pytest.mark.mlir

knobs = pytest.importorskip("tuner.space.scripts.schedule")


def read(*ops: str) -> tuple[Knob, ...]:
    found: tuple[Knob, ...] = knobs.Schedule(script(*ops), "own.mlir").knobs
    return found


def test_knobs_and_alternatives_are_read_in_the_order_of_the_text() -> None:
    found = read(
        knob("size", "[16, 32]"),
        alternatives("order", "", "", ""),
        knob("twice", '["a", "b"]', kind="!transform.any_param"),
    )
    assert found == (Knob("size", (16, 32)), Knob("order", (0, 1, 2)), Knob("twice", ("a", "b")))


def test_a_knob_inside_a_region_is_read_too() -> None:
    assert read(alternatives("order", knob("inner", "[1, 2]"), "")) == (
        Knob("order", (0, 1)),
        Knob("inner", (1, 2)),
    )


def test_ops_of_one_name_are_one_knob() -> None:
    found = read(knob("size", "[16, 32]"), knob("size", "[32, 16]", result="again"))
    assert found == (Knob("size", (16, 32)),)


def test_alternatives_without_a_name_are_numbered() -> None:
    assert [
        each.name for each in read(alternatives("", "", ""), alternatives("a", ""), alternatives("", ""))
    ] == [
        "alternatives_0",
        "a",
        "alternatives_2",
    ]


def test_alternatives_that_a_parameter_picks_are_no_knob() -> None:
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


def test_two_selections_for_one_name_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"own.mlir:6:14: knob 'size': 16 is selected, but 32 at own.mlir:5:13"
    ):
        read(knob("size", "[16, 32]", "32"), knob("size", "[16, 32]", "16", result="again"))


def test_options_that_differ_under_one_name_are_refused() -> None:
    with pytest.raises(
        UsageError,
        match=r"own.mlir:6:14: knob 'size': its options 16, 64 differ from those of own.mlir:5:13: 16, 32",
    ):
        read(knob("size", "[16, 32]"), knob("size", "[16, 64]", result="again"))


def test_a_selection_outside_a_dictionary_is_refused_though_mlir_takes_it() -> None:
    # `knob < 16` that admits 17: MLIR checks selections of arrays only
    with pytest.raises(
        UsageError, match=r"own.mlir:5:13: knob 'size': found 17 : i64 selected, allowed 1, 2, 3"
    ):
        read(knob("size", "{max = 16}", selected="17"))


def test_a_selection_outside_an_array_is_refused_in_mlirs_words() -> None:
    with pytest.raises(
        UsageError, match=r"own.mlir: error: .*provided `selected` attribute is not an element"
    ):
        read(knob("size", "[16]", selected="17"))


@pytest.mark.parametrize("selected", ["2", "-1"])
def test_a_region_that_is_not_there_is_refused_in_mlirs_words(selected: str) -> None:
    with pytest.raises(
        UsageError, match=f"own.mlir: error: .*region at index {selected} while op has only 2"
    ):
        read(alternatives("order", "", "", selected=selected))


def test_alternatives_with_no_regions_are_refused() -> None:
    with pytest.raises(UsageError, match=r"own.mlir:5:5: alternatives 'order': has no regions"):
        read('transform.tune.alternatives<"order">')


@pytest.mark.parametrize("option", ["16 : i32", '"sixteen"'])
def test_an_option_of_another_type_than_the_result_is_refused(option: str) -> None:
    with pytest.raises(UsageError, match=f"knob 'size': found option {option}, allowed i64"):
        read(knob("size", f"[{option}]"))


def test_options_with_a_mistake_name_their_knob_and_place() -> None:
    with pytest.raises(UsageError, match=r"own.mlir:5:13: knob 'size': options: found 0 values"):
        read(knob("size", "[]"))
