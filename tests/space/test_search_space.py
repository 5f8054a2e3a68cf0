from dataclasses import replace

import pytest

from tuner.core.candidate import Candidate, Value
from tuner.core.errors import UsageError
from tuner.space.expressions import parse
from tuner.space.search_space import Knob, SearchSpace


def space(*constraints: str) -> SearchSpace:
    return SearchSpace(
        "s",
        (Knob("a", (1, 2, 3)), Knob("o", ("x", "y"))),
        tuple(parse(text, "f") for text in constraints),
        (("m", 2),),
    )


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ((), "knob 'a' has no choices"),
        ((1, 2, 1), "knob 'a' repeats a choice"),
        ((1, "x"), "allowed all integers or all texts"),
        ((True, False), "allowed all integers or all texts"),
    ],
)
def test_choices_that_make_no_knob_are_refused(choices: tuple[Value, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Knob("a", choices)


def test_a_knob_knows_whether_it_has_an_order() -> None:
    assert Knob("a", ("x",)).is_text
    assert not Knob("a", (1,)).is_text


def test_a_candidate_is_its_own_key_whatever_the_order_of_its_knobs() -> None:
    one, other = Candidate.of("s", {"b": 1, "a": "x"}), Candidate.of("s", {"a": "x", "b": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one.text == "s(a=x, b=1)"


def test_a_repeated_knob_is_refused() -> None:
    with pytest.raises(ValueError, match="strategy 's' repeats a knob"):
        SearchSpace("s", (Knob("a", (1,)), Knob("a", (2,))))


def test_a_constraint_over_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="f: 'a < q': unknown name 'q', known: a, m, o"):
        space("a < q")


def test_a_preference_over_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="f: 'q < 1': unknown name 'q', known: a, m, o"):
        replace(space(), preferences=(parse("q < 1", "f"),))


def test_the_first_preference_that_is_broken_is_named_and_rejects_nothing() -> None:
    one = replace(space("a <= m"), preferences=(parse("o == 'x'", "f"), parse("a < m", "f")))
    candidates = [Candidate.of("s", {"a": a, "o": o}) for a, o in ((2, "y"), (2, "x"), (1, "x"))]
    assert [one.violated(each) for each in candidates] == [None] * 3
    assert [each and each.text for each in map(one.demoted_by, candidates)] == ["o == 'x'", "a < m", None]


def test_every_combination_is_counted() -> None:
    assert space().cartesian == 6
    assert SearchSpace("s", ()).cartesian == 1


def test_the_first_violated_constraint_in_file_order_is_named() -> None:
    one = space("a <= m", "a != 3", "o == 'x'")
    violated = [one.violated(Candidate.of("s", {"a": a, "o": o})) for a, o in ((3, "y"), (2, "y"), (2, "x"))]
    assert [each and each.text for each in violated] == ["a <= m", "o == 'x'", None]


@pytest.mark.parametrize(
    ("strategy", "values", "is_inside"),
    [
        ("s", {"a": 1, "o": "x"}, True),
        ("t", {"a": 1, "o": "x"}, False),
        ("s", {"a": 4, "o": "x"}, False),
        ("s", {"a": 1}, False),
        ("s", {"a": 1, "o": "x", "p": 1}, False),
    ],
)
def test_a_candidate_of_other_knobs_or_choices_is_outside(
    strategy: str, values: dict[str, Value], is_inside: bool
) -> None:
    assert space().contains(Candidate.of(strategy, values)) is is_inside
