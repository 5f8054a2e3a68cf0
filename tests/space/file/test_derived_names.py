import re

import pytest

from tuner.core.errors import UsageError
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file import schema, yaml
from tuner.space.file.entries import StrategyEntry
from tuner.space.search_space import Knob

VARIABLES = (("m", 64), ("input_bytes", 4))
HEAD = """\
strategies:
  s:
    ops: [matmul]
    dtypes: [f32]
    knobs: {a: [1, 2, 4], b: [1, 2, 4], order: [x, y]}
"""


def read(rest: str, head: str = HEAD) -> StrategyEntry:
    (entry,) = schema.entries(yaml.load(f"{head}{rest}", "f.yaml"), "f.yaml")
    return entry


def test_derived_names_mean_what_they_stand_for_in_constraints_preferences_and_each_other() -> None:
    short = read(
        """\
    let:
      cost: "threads * input_bytes if order == 'x' else row"
      threads: "a * (b + 1)"
      row: "m // a"
    constraints: ["cost <= 40", "m - threads > 56", "row != 16"]
    preferences: ["min(threads, 4) == threads"]
"""
    )
    long = read(
        """\
    constraints:
      - "((a * (b + 1)) * input_bytes if order == 'x' else (m // a)) <= 40"
      - "m - (a * (b + 1)) > 56"
      - "(m // a) != 16"
    preferences: ["min((a * (b + 1)), 4) == (a * (b + 1))"]
"""
    )
    sets = [FeasibleSet.of((entry.space(VARIABLES),)) for entry in (short, long)]
    assert [each.total for each in sets] == [7, 7]
    assert [sets[0].candidate(row) for row in range(7)] == [sets[1].candidate(row) for row in range(7)]
    assert sets[0].is_preferred.tolist() == sets[1].is_preferred.tolist()
    assert list(sets[0].rejected().values()) == list(sets[1].rejected().values())


def test_an_expression_keeps_its_text_and_has_the_text_without_derived_names() -> None:
    entry = read("    let: {both: a + b, twice: 2 * both}\n    constraints: [m % twice == 0, a < b]")
    constraint, plain = entry.constraints
    assert (constraint.text, constraint.full_text) == ("m % twice == 0", "m % (2 * (a + b)) == 0")
    assert constraint.names == {"m", "a", "b"}
    assert (plain.text, plain.full_text) == ("a < b", "a < b")


def test_a_derived_name_may_be_that_of_a_function_which_stays_a_function() -> None:
    (constraint,) = read("    let: {min: a + 1}\n    constraints: ['min(min, b) == 2']").constraints
    assert constraint.full_text == "min(a + 1, b) == 2"


def test_a_derived_name_that_nothing_uses_changes_nothing() -> None:
    entry = read("    let: {unused: a + 1}\n    constraints: [a < b]")
    assert entry.space(VARIABLES).constraints == read("    constraints: [a < b]").space(VARIABLES).constraints


@pytest.mark.parametrize(
    ("let", "message"),
    [
        ("{c: 5}", "s.let.c: found 5, allowed a valid string"),
        ("[c]", "s.let: found ['c'], allowed a mapping (key: value)"),
        ("{c-d: a}", "s.let.c-d: found 'c-d', allowed letters, digits and _, no digit first"),
        ("{c: a b}", "s.let.c: 'a b' is not an expression"),
        ("{a: b + 1}", "s.let.a: 'a' is the name of a knob too: give it another name"),
        ("{c: c + 1}", "s.let.c: derived names form a cycle: c -> c"),
        ("{c: d + a, d: e, e: 2 * c}", "s.let.c: derived names form a cycle: c -> d -> e -> c"),
    ],
)
def test_wrong_derived_names_are_reported_with_their_place_when_the_file_is_read(
    let: str, message: str
) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(f'f.yaml: strategies.{message}')}") as raised:
        read(f"    let: {let}\n")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (
            "    let: {c: a + aa}\n    constraints: [c < 5]",
            "s.let.c: 'a + aa': unknown name 'aa', known: a, b, c, input_bytes, m, order",
        ),
        (
            "    let: {c: a + 1}\n    constraints: [cc < 5]",
            "s.constraints[0]: 'cc < 5': unknown name 'cc', known: a, b, c, input_bytes, m, order",
        ),
        ("    let: {m: a + 1}", "s.let.m: 'm' is the name of a variable too: give it another name"),
        (
            "    let: {of_script: a}",
            "s.let.of_script: 'of_script' is the name of a knob too: give it another",
        ),
    ],
)
def test_wrong_names_are_reported_with_their_place_when_problem_and_script_are_known(
    rest: str, message: str
) -> None:
    knobs = (Knob("of_script", (1,)),) if "of_script" in rest else ()
    with pytest.raises(UsageError, match=f"^{re.escape(f'f.yaml: strategies.{message}')}"):
        read(rest).space(VARIABLES, knobs)


def test_an_expression_that_becomes_too_large_is_refused_before_it_is_built() -> None:
    doubled = "".join(f"      d{n}: d{n - 1} + d{n - 1}\n" for n in range(1, 30))
    with pytest.raises(UsageError, match=r"^f\.yaml: strategies\.s\.let\.d8: .*: found 2048 parts .* 2000$"):
        read(f"    let:\n      d0: a + b\n{doubled}")


def test_an_expression_that_becomes_too_deep_is_refused() -> None:
    chain = "".join(f"      c{n}: -c{n - 1}\n" for n in range(1, 50))
    with pytest.raises(UsageError, match=r"^f\.yaml: strategies\.s\.let\.c\d\d: found an expression nested"):
        read(f"    let:\n      c0: -a\n{chain}")
