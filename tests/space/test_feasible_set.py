import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tuner.core.candidate import Candidate, Value
from tuner.core.errors import UsageError
from tuner.space import enumeration, feasible_set
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet, nearest_row, steps_from
from tuner.space.search_space import Knob, SearchSpace

Knobs = dict[str, tuple[Value, ...]]


def space(
    knobs: Knobs, constraints: tuple[str, ...] = (), strategy: str = "s", **variables: Value
) -> SearchSpace:
    where = f"f.yaml: {strategy}.constraints"
    rules = tuple(parse(text, f"{where}[{place}]") for place, text in enumerate(constraints))
    every = tuple(Knob(name, choices) for name, choices in knobs.items())
    return SearchSpace(strategy, every, rules, tuple(variables.items()))


def brute_force(one: SearchSpace) -> list[Candidate]:
    every = itertools.product(*(knob.choices for knob in one.knobs))
    candidates = [Candidate.of(one.strategy, dict(zip(one.names, values, strict=True))) for values in every]
    return [each for each in candidates if one.violated(each) is None]


def all_candidates(feasible: FeasibleSet) -> list[Candidate]:
    return [feasible.candidate(row) for row in range(feasible.rows)]


CONSTRAINTS = (
    *("a < 16", "a <= b", "a % b == 0", "b == 0 or a % b == 0", "a * b * c < 200", "m % a == 0"),
    *("c in (1, 3, 8) or d == 'x'", "8 <= a + b // 2 <= 28", "not (a == b and d == 'y')"),
    *("(a if d == 'x' else c) > 2", "max(a, b, c) <= 4 * min(a, b, c)", "ceil_div(m, a) >= b"),
)
SIZES = st.sampled_from([0, 1, 2, 3, 4, 6, 8, 15, 16, 17, 32])
CHOICES = st.lists(SIZES, min_size=1, max_size=6, unique=True).map(tuple)
NUMBERS = st.fixed_dictionaries({"a": CHOICES, "b": CHOICES, "c": CHOICES})


@given(
    NUMBERS,
    st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, unique=True),
    st.lists(st.sampled_from(CONSTRAINTS), max_size=5),
    st.integers(1, 100),
)
def test_backtracking_finds_what_brute_force_finds_in_the_same_order(
    numbers: Knobs, texts: list[str], constraints: list[str], m: int
) -> None:
    one = space({**numbers, "d": tuple(texts)}, tuple(constraints), m=m)
    wanted = brute_force(one)
    if not wanted:
        with pytest.raises(UsageError, match=r"leaves none of the .* of strategy s"):
            FeasibleSet.of((one,))
        return
    feasible = FeasibleSet.of((one,))
    assert all_candidates(feasible) == wanted
    assert [feasible.row_of(each) for each in wanted] == list(range(feasible.rows))
    assert sum(feasible.rejected().values()) == feasible.cartesian - feasible.rows


@given(NUMBERS, *(st.lists(st.sampled_from(CONSTRAINTS), max_size=most) for most in (2, 4)))
def test_preferences_only_demote_rows(numbers: Knobs, constraints: list[str], preferences: list[str]) -> None:
    bare = space({**numbers, "d": ("x", "y")}, tuple(constraints), m=12)
    one = replace(bare, preferences=tuple(parse(text, "p") for text in preferences))
    wanted = brute_force(bare)
    assume(wanted)
    feasible = FeasibleSet.of((one,))
    assert all_candidates(feasible) == wanted
    broken = [one.demoted_by(each) for each in wanted]
    assert feasible.is_preferred.tolist() == [each is None for each in broken]
    reported = Counter(each.text for each in broken if each is not None)
    assert {text: count for text, count in feasible.demoted().items() if count} == reported
    preferred = [each for each, preference in zip(wanted, broken, strict=True) if preference is None]
    assert all_candidates(feasible.part(feasible.is_preferred)) == preferred


ORDERED = [
    ([space({"a": (15, 16, 17)}, ("a < 16",))], ["s(a=15)"]),
    ([space({"a": (15, 16, 17)}, ("a <= 16",))], ["s(a=15)", "s(a=16)"]),
    ([space({"a": (15, 16, 17)}, ("16 < a",))], ["s(a=17)"]),
    # the last knob varies fastest, choices and knobs in the order of the file
    ([space({"b": (2, 1), "a": ("q", "p")})], ["s(a=q, b=2)", "s(a=p, b=2)", "s(a=q, b=1)", "s(a=p, b=1)"]),
    ([space({}, ("m > 1",), m=2)], ["s()"]),
    (
        [space({"a": (1, 2)}), space({"a": (1,)}, ("a > 1",), "t"), space({"c": (7,)}, strategy="u")],
        ["s(a=1)", "s(a=2)", "u(c=7)"],
    ),
]


@pytest.mark.parametrize(("spaces", "wanted"), ORDERED)
def test_rows_are_those_of_each_strategy_in_order(spaces: list[SearchSpace], wanted: list[str]) -> None:
    feasible = FeasibleSet.of(tuple(spaces))
    candidates = all_candidates(feasible)
    assert [each.text for each in candidates] == wanted
    assert [feasible.row_of(each) for each in candidates] == list(range(len(wanted)))
    assert feasible.row_of(Candidate.of("t", {"a": 1})) is None


def test_a_part_keeps_the_order_of_rows_over_strategies() -> None:
    feasible = FeasibleSet.of((space({"a": (1, 2, 3)}), space({"a": (4, 5)}, strategy="t")))
    part = feasible.part(np.array([False, True, True, False, True]))
    assert [each.text for each in all_candidates(part)] == ["s(a=2)", "s(a=3)", "t(a=5)"]
    assert [part.row_of(feasible.candidate(row)) for row in range(5)] == [None, 0, 1, None, 2]


AVX512 = {"vector_bytes": 64, "has_bf16": 0, "has_vnni": 0, "has_amx_bf16": 0, "has_amx_int8": 0}
EMPTY = [
    (
        [space({"a": (1, 2), "b": (1, 2)}, ("a < b", "a + b > 3", "a > 0"))],
        r"f.yaml: s.constraints\[1\]: 'a \+ b > 3' leaves none of the 4 combinations of strategy s",
    ),
    ([space({"a": (1, 2)}, ("m >= 64",), m=3)], "'m >= 64' leaves none of"),
    ([space({"a": (1,)}, ("m / 0 > 1",), m=2)], "'m / 0 > 1' leaves none of the 1 .*, as it divides"),
    ([], "no strategy is given"),
]


@pytest.mark.parametrize(("spaces", "message"), EMPTY)
def test_an_empty_set_names_the_constraint_that_empties_it(spaces: list[SearchSpace], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        FeasibleSet.of(tuple(spaces))


def test_a_strategy_that_a_constraint_empties_is_named_where_others_have_configurations() -> None:
    full = space({"a": (1, 2)}, ("a > m // 2",), m=2)
    assert FeasibleSet.of((full,)).empty() == ()
    for constraint, why in (("a > 2", ""), ("m / 0 > 1", ", as it divides by zero")):
        none = replace(space({"a": (1, 2)}, ("a > 0", constraint), m=2), strategy="t")
        (line,) = FeasibleSet.of((full, none)).empty()
        assert line == f"{constraint!r} leaves none of the 2 combinations of strategy t{why}"


HARDWARE = [  # constraint, what the machine lacks, its variables
    ("(has_amx_bf16 if a == 1 else has_amx_int8) == 1", "this processor has no AMX", AVX512),
    ("has_vnni == 1", "this processor has no VNNI", AVX512),
    ("a != 1 and has_bf16 == 1 and vector_bytes == 64", "this processor has no AVX-512 BF16", AVX512),
    ("vector_bytes == 64 or a == 3", "this processor has no AVX-512", AVX512 | {"vector_bytes": 32}),
    ("has_vnni == 0", "this processor has VNNI", AVX512 | {"has_vnni": 1}),
    ("has_wgmma == 1", "this GPU has no wgmma", {"has_wgmma": 0, "compute_capability": 80}),
    ("compute_capability >= 80", "this GPU is too old", {"compute_capability": 75}),
]


@pytest.mark.parametrize(("constraint", "why", "machine"), HARDWARE)
def test_a_strategy_that_the_hardware_empties_is_named_with_what_is_missing(
    constraint: str, why: str, machine: dict[str, int]
) -> None:
    none = space({"a": (1, 2)}, ("a > 0", constraint), "t", **machine)
    feasible = FeasibleSet.of((space({"a": (1,)}), none))
    assert feasible.empty() == (f"{why}: t not tried",)
    assert feasible.empty("znver4") == (f"{why.replace(' '.join(why.split()[:2]), 'znver4')}: t not tried",)
    with pytest.raises(UsageError, match=r"f.yaml: t.constraints\[1\]: t: the (processor|GPU) (has|is) "):
        FeasibleSet.of((none,))


def test_hardware_is_not_blamed_where_the_problem_would_be_too_small_on_any() -> None:
    none = space({"a": (1, 2)}, ("has_vnni == 1 and m >= 64",), m=3, has_vnni=0)
    (line,) = FeasibleSet.of((space({"a": (1,)}, strategy="t"), none)).empty()
    assert line == "'has_vnni == 1 and m >= 64' leaves none of the 2 combinations of strategy s"


def test_a_point_is_counted_and_named_for_the_first_constraint_that_rejects_it() -> None:
    feasible = FeasibleSet.of((space({"a": (1, 2, 3), "b": (1, 2, 3)}, ("a <= b", "a + b < 5")),))
    assert feasible.rejected() == {"a <= b": 3, "a + b < 5": 2}
    assert not feasible.is_estimate
    violated = feasible.violated(Candidate.of("s", {"a": 3, "b": 2}))
    assert violated is not None
    assert violated.text == "a <= b"
    assert feasible.violated(Candidate.of("s", {"a": 1, "b": 1})) is None
    feasible = FeasibleSet.of((space({"a": (1, 2, 3), "b": (1, 2)}, ("a * b < 4",)),))
    some = Candidate.of("s", {"b": 1})
    assert (feasible.missing(some), feasible.count_of(some)) == (("a",), 3)
    assert feasible.count_of(Candidate.of("s", {"a": 3, "b": 2})) == 0


def test_a_large_set_is_enumerated_without_its_cartesian_product_and_its_counts_estimated() -> None:
    hundred = tuple(range(100))
    rules = ("a == b", "c == d", "e + f == 7", "a + c + e < 20")
    feasible = FeasibleSet.of((space(dict.fromkeys("abcdef", hundred), rules),))
    wanted = sum(1 for a in hundred for c in hundred for e in range(8) if a + c + e < 20)
    assert (feasible.cartesian, feasible.rows, feasible.is_estimate) == (100**6, wanted, True)
    rejected = feasible.rejected()
    assert rejected == feasible.rejected()
    assert rejected["a == b"] == pytest.approx(0.99 * 100**6, rel=0.01)


def test_rows_of_a_large_set_are_a_sample_with_the_points_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "PILOT_ROWS", 100)
    monkeypatch.setattr(enumeration, "SAMPLE_ROWS", 500)
    monkeypatch.setattr(feasible_set, "SAMPLE_ROWS", 500)
    monkeypatch.setattr(feasible_set, "ROWS_LIMIT", 2_000)
    ten: tuple[Value, ...] = tuple(range(10))
    wanted = Candidate.of("s", dict.fromkeys("abcd", 7))
    refused = Candidate.of("s", dict.fromkeys("abcd", 3))
    spaces = (space(dict.fromkeys("abcd", ten), ("a != 3",)), space({"x": ten}, strategy="t"))
    feasible = FeasibleSet.of(spaces, (wanted, refused))
    assert (feasible.is_sample, feasible.is_estimate, feasible.total) == (True, True, 9_010)
    assert 510 <= feasible.rows <= 511
    assert sum(feasible.rejected().values()) == feasible.cartesian - feasible.total
    assert feasible.row_of(refused) is None
    row = feasible.row_of(wanted)
    assert row is not None
    assert feasible.candidate(row) == wanted
    assert [feasible.row_of(each) for each in all_candidates(feasible)] == list(range(feasible.rows))
    assert all(feasible.violated(each) is None for each in all_candidates(feasible))
    assert all_candidates(FeasibleSet.of(spaces, (wanted, refused))) == all_candidates(feasible)
    assert feasible.matrix().rows.shape == (feasible.rows, 6)


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        (Candidate.of("t", {"a": 1}), r"^strategy: found 't', allowed s$"),
        (Candidate.of("s", {"b": 1}), r"^knob of s: found 'b', allowed a$"),
        (Candidate.of("s", {"a": 9}), r"^s: a: found 9, allowed 1, 2$"),
        (Candidate("s", ()), r"^candidate s\(\): missing knobs: a$"),
    ],
)
def test_a_point_or_row_outside_the_set_is_refused(candidate: Candidate, message: str) -> None:
    feasible = FeasibleSet.of((space({"a": (1, 2)}),))
    assert feasible.row_of(candidate) is None
    with pytest.raises(UsageError, match=message):
        feasible.violated(candidate)
    for row in (-1, 2):
        with pytest.raises(IndexError, match="of 2"):
            feasible.candidate(row)


def test_the_matrix_ranks_numbers_codes_texts_and_marks_missing_knobs() -> None:
    spaces = space({"a": (8, 2), "order": ("mn", "nm")}), space({"a": (4,), "b": (1,)}, strategy="t")
    matrix = FeasibleSet.of(spaces).matrix()
    assert matrix.names == ("strategy", "a", "order", "b")
    assert (matrix.is_ordinal, matrix.levels) == ((False, True, False, True), (2, 3, 2, 1))
    assert matrix.values == (("s", "t"), (2, 4, 8), ("mn", "nm"), (1,))
    assert matrix.rows.tolist() == [[0, 2, 0, -1], [0, 2, 1, -1], [0, 0, 0, -1], [0, 0, 1, -1], [1, 1, -1, 0]]
    assert matrix.rows.dtype == np.int16


TILES = Knob("tile", (64, 8, 16, 32))  # as a file may list them: in no order
ORDERS = Knob("order", ("ij", "ji"))
SPACE = SearchSpace("s", (TILES, Knob("depth", (0, 1, 2)), ORDERS), (parse("tile * depth <= 32", "f"),))
OTHER = SearchSpace("other", (Knob("x", (1, 2)),))
FEASIBLE = FeasibleSet.of((OTHER, SPACE))


def nearest(strategy: str, **values: Value) -> dict[str, Value] | None:
    row = nearest_row(Candidate.of(strategy, values), FEASIBLE)
    return None if row is None else dict(FEASIBLE.candidate(row).choices)


def test_a_feasible_candidate_is_its_own_row_and_another_strategy_has_none() -> None:
    for row in range(FEASIBLE.rows):
        assert nearest_row(FEASIBLE.candidate(row), FEASIBLE) == row
    assert nearest("unknown", tile=8) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"tile": 64, "depth": 1, "order": "ji"}, {"tile": 64, "depth": 0, "order": "ji"}),
        ({"tile": 17, "depth": 2, "order": "ij"}, {"tile": 16, "depth": 2, "order": "ij"}),
        ({"tile": 1000, "depth": 0, "order": "ij"}, {"tile": 64, "depth": 0, "order": "ij"}),
        ({"tile": 8, "depth": 2, "order": "ji", "gone": 4}, {"tile": 8, "depth": 2, "order": "ji"}),
        ({"tile": 8, "depth": 2}, {"tile": 8, "depth": 2, "order": "ij"}),
    ],
)
def test_what_is_infeasible_becomes_the_nearest(values: dict[str, Value], expected: dict[str, Value]) -> None:
    assert nearest("s", **values) == expected


def test_steps_count_choices_and_the_nearest_demoted_row_is_passed_over() -> None:
    assert steps_from(8, TILES).tolist() == [3, 0, 1, 2]
    assert steps_from("ij", ORDERS).tolist() == [0, 1]
    assert 0.4 < steps_from(22, TILES)[2] < 0.6
    feasible = FeasibleSet.of((OTHER, replace(SPACE, preferences=(parse("tile != 16", "f"),))))
    for tile, nearest_tile in ((16, 16), (17, 8)):
        row = nearest_row(Candidate.of("s", {"tile": tile, "depth": 2, "order": "ij"}), feasible)
        assert row is not None
        assert dict(feasible.candidate(row).choices) == {"tile": nearest_tile, "depth": 2, "order": "ij"}


@given(st.sampled_from(TILES.choices), st.sampled_from((0, 1, 2)), st.sampled_from(ORDERS.choices))
def test_no_feasible_row_is_nearer(tile: int, depth: int, order: str) -> None:
    found = nearest("s", tile=tile, depth=depth, order=order)
    assert found is not None
    ranks = {8: 0, 16: 1, 32: 2, 64: 3}

    def steps(a: int, b: int, c: str) -> int:
        return abs(ranks[a] - ranks[tile]) + abs(b - depth) + (c != order)

    allowed = itertools.product(ranks, (0, 1, 2), ("ij", "ji"))
    least = min(steps(a, b, c) for a, b, c in allowed if a * b <= 32)
    assert steps(int(found["tile"]), int(found["depth"]), str(found["order"])) == least
