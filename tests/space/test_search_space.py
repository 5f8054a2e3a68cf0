import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tuning.fakes import MACHINE
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import UsageError
from tuner.core.gpu import CHIPS
from tuner.core.machine import Machine, gpu_machine, variables_of
from tuner.core.problem import OPERATIONS
from tuner.core.problem_classes import MatmulProblem
from tuner.space import search_space
from tuner.space.expressions import parse
from tuner.space.feasible_set import VISITS_LIMIT, Projection, projected
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.search_space import ConstraintTable, Knob, Rule, SearchSpace, join_tables


def space(*constraints: str) -> SearchSpace:
    rules = tuple(parse(text, "f") for text in constraints)
    return SearchSpace("s", (Knob("a", (1, 2, 3)), Knob("o", ("x", "y"))), rules, (("m", 2),))


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
    assert [Knob("a", ("x",)).is_text, Knob("a", (1,)).is_text] == [True, False]


def test_a_candidate_is_its_own_key_whatever_the_order_of_its_knobs_and_combinations_are_counted() -> None:
    one, other = Candidate.of("s", {"b": 1, "a": "x"}), Candidate.of("s", {"a": "x", "b": 1})
    assert (one, hash(one), one.text) == (other, hash(other), "s(a=x, b=1)")
    assert (space().cartesian, SearchSpace("s", ()).cartesian) == (6, 1)


def test_a_repeated_knob_and_an_unknown_name_are_refused() -> None:
    with pytest.raises(ValueError, match="strategy 's' repeats a knob"):
        SearchSpace("s", (Knob("a", (1,)), Knob("a", (2,))))
    with pytest.raises(UsageError, match="f: 'a < q': unknown name 'q', known: a, m, o"):
        space("a < q")
    with pytest.raises(UsageError, match="f: 'q < 1': unknown name 'q', known: a, m, o"):
        replace(space(), preferences=(parse("q < 1", "f"),))


def test_the_first_broken_constraint_or_preference_is_named() -> None:
    candidates = [Candidate.of("s", {"a": a, "o": o}) for a, o in ((3, "y"), (2, "y"), (2, "x"), (1, "x"))]
    one = space("a <= m", "a != 3", "o == 'x'")
    violated = [each and each.text for each in map(one.violated, candidates)]
    assert violated == ["a <= m", "o == 'x'", None, None]
    one = replace(space("a <= m"), preferences=(parse("o == 'x'", "f"), parse("a < m", "f")))
    assert [one.violated(each) for each in candidates[1:]] == [None] * 3
    assert [each and each.text for each in map(one.demoted_by, candidates[1:])] == ["o == 'x'", "a < m", None]


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
def test_another_knob_or_choice_is_outside(strategy: str, values: dict[str, Value], is_inside: bool) -> None:
    assert space().contains(Candidate.of(strategy, values)) is is_inside


KNOBS = (Knob("a", (1, 2, 4)), Knob("b", (0, 3)), Knob("c", ("x", "y")))
SPACE = SearchSpace("s", KNOBS, variables=(("m", 4),))
EVERY = np.array(list(itertools.product(range(3), range(2), range(2))))
PICKS = {place: EVERY[:, place] for place in range(3)}


def of(text: str) -> Rule:
    return Rule.of(SPACE, parse(text, "f.yaml: c[0]"))


RULES = ("a < m", "a % b == 0", "c == 'x'", "a * b > 3 or c == 'y'", "m == 4", "b == 0")


@pytest.mark.parametrize("text", RULES)
def test_a_table_says_what_the_evaluation_says(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = of(text)
    assert quick.table is not None
    monkeypatch.setattr(search_space, "TABLE_LIMIT", 0)
    slow = of(text)
    assert slow.table is None
    assert np.array_equal(np.broadcast_to(quick.holds(PICKS), len(EVERY)), slow.holds(PICKS))


def test_each_choice_of_the_last_knob_is_answered_at_once_and_joined_tables_hold_where_both_do() -> None:
    table = of("a * b > 3 or c == 'y'").table
    assert table is not None
    for knob, choices in enumerate((3, 2, 2)):
        each = table.holds_for_each(PICKS, knob)
        assert each.shape == (len(EVERY), choices)
        assert np.array_equal(each[np.arange(len(EVERY)), EVERY[:, knob]], table.holds(PICKS))
    tables = [table for text in ("a < m", "a * b > 3", "c == 'y'") if (table := of(text).table)]
    (joined,) = join_tables(tables)
    assert np.array_equal(joined.holds(PICKS), np.logical_and.reduce([each.holds(PICKS) for each in tables]))


def test_tables_are_joined_up_to_a_limit_and_evaluated_where_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_space, "TABLE_LIMIT", 6)
    wide = [ConstraintTable((n,), np.ones(3, bool)) for n in range(3)]
    assert [one.knobs for one in join_tables(wide)] == [(0,), (1,), (2,)]
    narrow = join_tables([wide[0], ConstraintTable((9,), np.ones(2, bool))])
    assert [one.knobs for one in narrow] == [(0, 9)]
    overflowing = Rule.of(SearchSpace("s", (Knob("a", (1, 2**200)),)), parse("a ** 16 > 0", "f.yaml: c[0]"))
    assert overflowing.table is None
    assert overflowing.holds({0: np.array([0])}).all()
    with pytest.raises(UsageError, match="a power wider than"):
        overflowing.holds({0: np.array([1])})


# A configuration of one problem becomes one of another.

SHIPPED = load_space_file(default_space_file())
CPU = replace(MACHINE, isa="avx512", has_bf16=True, has_vnni=True, has_amx_bf16=True, has_amx_int8=True)
GPU = gpu_machine("cuda", CHIPS["sm_90a"], "H200")
# Of matmuls: what fusions allow depends on their texts (tests/results/test_fusion_schedules.py).
ENTRIES = [
    (each.name, GPU if each.isas == ("ptx",) else CPU)
    for each in SHIPPED.strategies
    if set(each.operations) & set(OPERATIONS)
]
PROJECTED_KNOBS = (Knob("tile", (2, 4, 8)), Knob("block", (0, 16, 24, 32)), Knob("order", ("ij", "ji")))
PROJECTED_RULES = ("tile <= m", "block == 0 or (block % tile == 0 and block < m)", "order == 'ij' or m > 8")


def space_of(m: int, **changed: object) -> SearchSpace:
    rules = tuple(parse(text, "f") for text in PROJECTED_RULES)
    space = SearchSpace("s", PROJECTED_KNOBS, rules, (("m", m),), projection=(("block", 0),))
    return replace(space, **changed)  # type: ignore[arg-type]


def values_on(space: SearchSpace, **values: Value) -> dict[str, Value] | None:
    found = projected(Candidate.of("s", values), space)
    return None if found is None else dict(found.choices)


@pytest.mark.parametrize(
    ("m", "values", "expected"),
    [
        (64, {"tile": 8, "block": 32, "order": "ji"}, {"tile": 8, "block": 32, "order": "ji"}),
        (16, {"tile": 8, "block": 32, "order": "ji"}, {"tile": 8, "block": 0, "order": "ji"}),
        (7, {"tile": 8, "block": 32, "order": "ji"}, {"tile": 4, "block": 0, "order": "ij"}),
        (64, {"tile": 3, "block": 32, "order": "ij"}, {"tile": 2, "block": 32, "order": "ij"}),
        (64, {"tile": 1, "block": 32, "order": "ij"}, {"tile": 2, "block": 32, "order": "ij"}),
        (64, {"tile": 8, "gone": 1}, {"tile": 8, "block": 0, "order": "ij"}),
        (1, {"tile": 8, "block": 0, "order": "ij"}, None),
    ],
)
def test_each_knob_takes_the_first_value_that_constraints_allow(
    m: int, values: dict[str, Value], expected: dict[str, Value] | None
) -> None:
    assert values_on(space_of(m), **values) == expected


@pytest.mark.parametrize("projection", [(), (("block", 7),)], ids=["no value", "no choice"])
def test_a_block_becomes_the_next_smaller_choice(projection: tuple[tuple[str, int], ...]) -> None:
    found = values_on(space_of(30, projection=projection), tile=8, block=32, order="ij")
    assert found == {"tile": 8, "block": 24, "order": "ij"}


def test_the_knob_before_takes_its_next_value_and_too_many_combinations_for_a_table_hold_as_well() -> None:
    space = space_of(30, constraints=(parse("block > 0 and block % tile == 0 and block < 20", "f"),))
    narrow = replace(space, knobs=(Knob("tile", (2, 3, 5)), Knob("block", (0, 16, 32))))
    assert values_on(narrow, tile=5, block=32) == {"tile": 2, "block": 16}
    knobs = tuple(Knob(f"x{place}", tuple(range(8))) for place in range(6))
    space = SearchSpace("s", knobs, (parse("x0 + x1 + x2 + x3 + x4 + x5 == 5", "f"),))
    found = values_on(space, x0=1, x1=1, x2=1, x3=1, x4=0, x5=0)
    assert found == {"x0": 1, "x1": 1, "x2": 1, "x3": 1, "x4": 0, "x5": 1}


def test_another_strategy_or_a_constraint_without_knobs_leaves_no_projection() -> None:
    assert projected(Candidate.of("other", {"tile": 2}), space_of(64)) is None
    assert values_on(space_of(64, constraints=(parse("m < 10", "f"),)), tile=2) is None


@pytest.mark.slow
def test_the_search_ends_after_a_number_of_values() -> None:
    knobs = tuple(Knob(f"x{place}", (0, 1, 2, 3)) for place in range(10))
    total = "x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9"
    space = SearchSpace("s", knobs, (parse(f"{total} == 31", "f"),))
    assert VISITS_LIMIT < 4**10
    assert values_on(space, **{knob.name: 0 for knob in knobs}) is None


SIZES = st.one_of(st.integers(1, 40), st.sampled_from([64, 100, 127, 128, 197, 256, 511, 768, 1024, 3072]))


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("name", "machine"), ENTRIES)
@settings(max_examples=12)
@given(draw=st.data())
def test_a_projection_of_a_shipped_strategy_is_allowed_and_its_own_projection(
    name: str, machine: Machine, draw: st.DataObject
) -> None:
    entry = SHIPPED.strategy(name)
    dtype, layout = (draw.draw(st.sampled_from(each)) for each in (entry.dtypes, entry.layouts))
    problem = MatmulProblem("matmul", draw.draw(st.tuples(SIZES, SIZES, SIZES)), dtype, layout)
    space = entry.space(variables_of(problem, machine, draw.draw(st.sampled_from((1, 4)))))
    picked = {knob.name: draw.draw(st.sampled_from(knob.choices)) for knob in space.knobs}
    candidate = Candidate.of(name, picked)
    found = Projection(space).of(candidate)
    if space.violated(candidate) is None:
        assert found == candidate
    if found is not None:
        assert space.contains(found)
        assert space.violated(found) is None
        assert Projection(space).of(found) == found
        assert projected(candidate, replace(space, preferences=())) == found


@pytest.mark.parametrize("name", [name for name, machine in ENTRIES if machine is CPU])
def test_every_first_point_of_a_processors_strategy_has_a_projection_on_a_usual_shape(name: str) -> None:
    entry = SHIPPED.strategy(name)
    for sizes in ((128, 768, 768), (512, 512, 512), (33, 1000, 512)):
        problem = MatmulProblem("matmul", sizes, entry.dtypes[0], entry.layouts[0])
        projection = Projection(entry.space(variables_of(problem, CPU, 1)))
        assert all(projection.of(point) is not None for point in entry.first)
