import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.mlir.scripts import INTEGER, alternatives, knob, script
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import SearchSpace

pytestmark = pytest.mark.mlir

knobs = pytest.importorskip("tuner.space.scripts.schedule")

A, B = knob("a", "{min = -3, max = 8}"), knob("b", "{min = 1, max = 6}")


def constrain(body: str, parameters: str = "%a, %b", results: str = "", gives: str = "") -> str:
    """Returns a constraint op over %x, %y; ``gives`` is the text of its results' types."""
    count = parameters.count("%")
    names = ", ".join(f"%{name}: !smt.int" for name in "xyz"[:count])
    types = ", ".join([INTEGER] * count)
    head = f"{results} = " if results else ""
    signature = f"({parameters}) : ({types}) -> ({gives})"
    return f"{head}transform.smt.constrain_params{signature} {{\n^bb0({names}):\n{body}\n}}"


def texts(*ops: str) -> list[str]:
    return [each.text for each in knobs.Schedule(script(*ops), "own.mlir").constraints]


def bind(schedule: object, **values: Value) -> str:
    text: str = schedule.select(Candidate.of("s", values))  # type: ignore[attr-defined]
    return text


def test_what_is_asserted_becomes_a_constraint_over_the_knobs() -> None:
    body = """%p = smt.int.mul %x, %y
      %most = smt.int.constant 12
      %fits = smt.int.cmp le %p, %most
      smt.assert %fits"""
    assert texts(A, B, constrain(body)) == ["(a * b) <= 12"]


def test_a_constraint_reports_where_it_stands_in_the_script() -> None:
    body = "%ok = smt.eq %x, %y : !smt.int\nsmt.assert %ok"
    schedule = knobs.Schedule(script(A, B, constrain(body)), "own.mlir")
    assert [each.where for each in schedule.constraints] == ["own.mlir:7:5"]
    with pytest.raises(CandidateError, match=r"own.mlir:7:5: 'a == b' does not hold") as failure:
        bind(schedule, a=1, b=2)
    assert failure.value.stage is Stage.BIND


def test_the_op_is_gone_from_the_bound_script_and_its_results_are_constants() -> None:
    body = "%p = smt.int.add %x, %y\nsmt.yield %x, %p : !smt.int, !smt.int"
    tile = (
        "%tile, %loops:2 = transform.structured.tile_using_for %product tile_sizes [%size#0, %size#1]"
        f" : (!transform.any_op, {INTEGER}, {INTEGER})"
        " -> (!transform.any_op, !transform.any_op, !transform.any_op)"
    )
    schedule = knobs.Schedule(
        script(A, B, constrain(body, results="%size:2", gives=f"{INTEGER}, {INTEGER}"), tile)
    )
    text = bind(schedule, a=8, b=5)
    assert "smt" not in text
    constants = re.findall(r"(%\w+) = transform.param.constant (\d+) : i64", text)
    assert [number for _, number in constants] == ["8", "13"]
    assert f"tile_sizes [{constants[0][0]}, {constants[1][0]}]" in text


def test_results_of_one_constraint_may_enter_the_next() -> None:
    first = constrain("%p = smt.int.mul %x, %y\nsmt.yield %p : !smt.int", results="%area", gives=INTEGER)
    second = constrain("%ok = smt.int.cmp lt %x, %y\nsmt.assert %ok", "%area, %most")
    most = f"%most = transform.param.constant 12 : i64 -> {INTEGER}"
    assert texts(A, B, first, most, second) == ["(a * b) < 12"]


def test_a_region_that_is_not_run_asserts_nothing() -> None:
    inside = constrain("%ok = smt.eq %x, %y : !smt.int\nsmt.assert %ok")
    schedule = knobs.Schedule(script(A, B, alternatives("order", "", inside)))
    assert [each.text for each in schedule.constraints] == ["not (order == 1) or (a == b)"]
    assert bind(schedule, a=1, b=2, order=0)
    with pytest.raises(CandidateError, match="does not hold"):
        bind(schedule, a=1, b=2, order=1)


def test_a_division_by_a_knob_that_is_zero_is_not_allowed() -> None:
    body = "%q = smt.int.div %y, %x\nsmt.yield %q : !smt.int"
    schedule = knobs.Schedule(script(A, B, constrain(body, results="%q", gives=INTEGER)))
    assert [each.text for each in schedule.constraints] == ["a != 0"]
    with pytest.raises(CandidateError, match="'a != 0' does not hold"):
        bind(schedule, a=0, b=2)


def test_a_result_wider_than_any_word_fails_to_bind() -> None:
    wide = "\n".join(f"%p{n + 1} = smt.int.mul %p{n}, %p{n}" for n in range(1, 6))
    body = f"%p1 = smt.int.mul %x, %x\n{wide}\nsmt.yield %p6 : !smt.int"
    schedule = knobs.Schedule(script(A, constrain(body, "%a", results="%q", gives=INTEGER)))
    assert "transform.param.constant 1 :" in bind(schedule, a=1)
    with pytest.raises(CandidateError, match=f"{8**64} does not fit i64"):
        bind(schedule, a=8)


@pytest.mark.parametrize(("kind", "fits"), [("i8", {1, 100, -1}), ("ui8", {1, 100, 200}), ("i16", {300, -1})])
def test_a_result_has_the_type_that_the_script_gives_it(kind: str, fits: set[int]) -> None:
    op = constrain("smt.yield %x : !smt.int", "%a", results="%q", gives=f"!transform.param<{kind}>")
    schedule = knobs.Schedule(script(knob("a", "[1, 100, 200, 300, -1]"), op))
    for a in fits:
        assert f"transform.param.constant {a} : {kind} ->" in bind(schedule, a=a)


@pytest.mark.parametrize(("kind", "wide"), [("i8", 200), ("ui8", 300), ("ui8", -1)])
def test_a_result_that_its_type_cannot_hold_fails_to_bind(kind: str, wide: int) -> None:
    op = constrain("smt.yield %x : !smt.int", "%a", results="%q", gives=f"!transform.param<{kind}>")
    schedule = knobs.Schedule(script(knob("a", "[1, 200, 300, -1]"), op))
    with pytest.raises(CandidateError, match=f"'a': {wide} does not fit {kind}") as failure:
        bind(schedule, a=wide)
    assert failure.value.stage is Stage.BIND


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        (
            [
                A,
                constrain(
                    "%f = smt.declare_fun : !smt.int\n%ok = smt.eq %x, %f : !smt.int\nsmt.assert %ok", "%a"
                ),
            ],
            r"own.mlir:\d+:6: transform.smt.constrain_params: found smt.declare_fun, allowed smt.constant",
        ),
        (
            [
                "%n = transform.num_associations %product : (!transform.any_op) -> !transform.param<i64>",
                constrain("%ok = smt.eq %x, %x : !smt.int\nsmt.assert %ok", "%n"),
            ],
            "found a parameter from transform.num_associations, allowed knobs, transform.param.constant",
        ),
        (
            [
                knob("a b", "[1, 2]", result="a"),
                constrain("%ok = smt.eq %x, %x : !smt.int\nsmt.assert %ok", "%a"),
            ],
            "knob 'a b': found another name, allowed integers, and a name of letters",
        ),
        (
            [A, B, alternatives("an order", constrain("%ok = smt.eq %x, %y : !smt.int\nsmt.assert %ok"))],
            "inside alternatives, it needs a knob that picks them",
        ),
        (
            [
                A,
                constrain(
                    "%p0 = smt.int.mul %x, %x\n"
                    + "\n".join(f"%p{n + 1} = smt.int.mul %p{n}, %p{n}" for n in range(12))
                    + "\n%ok = smt.eq %p12, %x : !smt.int\nsmt.assert %ok",
                    "%a",
                ),
            ],
            "found an expression of 1531 characters, allowed 1000",
        ),
    ],
)
def test_a_constraint_that_is_no_expression_over_knobs_is_refused(ops: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        texts(*ops)


def test_a_knob_of_texts_cannot_be_constrained() -> None:
    text = knob("a", '["x"]', kind="!transform.any_param")
    body = "^bb0(%x: !smt.int):\n%ok = smt.eq %x, %x : !smt.int\nsmt.assert %ok\n}"
    with pytest.raises(UsageError, match="knob 'a': found texts, allowed integers"):
        texts(text, f"transform.smt.constrain_params(%a) : (!transform.any_param) -> () {{\n{body}")


@dataclass(frozen=True)
class Smt:
    """An SMT value: the ops that make it, their result, and its meaning."""

    lines: tuple[str, ...]
    result: str
    meaning: Callable[[int, int], int | None]  # None: a division by zero


def smt_div(a: int, b: int) -> int:
    """Divides so that the remainder is never negative, as SMT-LIB defines it."""
    return math.floor(a / b) if b > 0 else math.ceil(a / b)


NUMBERS: dict[str, Callable[[int, int], int]] = {
    "smt.int.add": lambda a, b: a + b,
    "smt.int.sub": lambda a, b: a - b,
    "smt.int.mul": lambda a, b: a * b,
    "smt.int.div": smt_div,
    "smt.int.mod": lambda a, b: a - b * smt_div(a, b),
}
TRUTHS: dict[str, Callable[[int, int], int]] = {
    "smt.int.cmp lt": lambda a, b: a < b,
    "smt.int.cmp le": lambda a, b: a <= b,
    "smt.int.cmp gt": lambda a, b: a > b,
    "smt.int.cmp ge": lambda a, b: a >= b,
    "smt.eq": lambda a, b: a == b,
    "smt.distinct": lambda a, b: a != b,
}
JUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "smt.and": lambda a, b: bool(a) and bool(b),
    "smt.or": lambda a, b: bool(a) or bool(b),
    "smt.xor": lambda a, b: bool(a) != bool(b),
    "smt.implies": lambda a, b: not a or bool(b),
}
TYPED = {"smt.eq": " : !smt.int", "smt.distinct": " : !smt.int"}


def combine(op: str, left: Smt, right: Smt, result: str, meaning: Callable[[int, int], int]) -> Smt:
    def means(a: int, b: int) -> int | None:
        x, y = left.meaning(a, b), right.meaning(a, b)
        if x is None or y is None or (op in ("smt.int.div", "smt.int.mod") and y == 0):
            return None
        return int(meaning(x, y))

    line = f"{result} = {op} {left.result}, {right.result}{TYPED.get(op, '')}"
    return Smt((*left.lines, *right.lines, line), result, means)


@st.composite
def number(draw: st.DrawFn, depth: int, prefix: str) -> Smt:
    if depth == 0:
        which = draw(st.sampled_from(["x", "y", "constant"]))
        if which == "constant":
            value = draw(st.integers(-6, 6))
            return Smt((f"%{prefix} = smt.int.constant {value}",), f"%{prefix}", lambda a, b: value)
        return Smt((), f"%{which}", (lambda a, b: a) if which == "x" else (lambda a, b: b))
    op = draw(st.sampled_from(sorted(NUMBERS)))
    left, right = draw(number(depth - 1, prefix + "l")), draw(number(depth - 1, prefix + "r"))
    return combine(op, left, right, f"%{prefix}", NUMBERS[op])


@st.composite
def truth(draw: st.DrawFn, prefix: str) -> Smt:
    op, junction = draw(st.sampled_from(sorted(TRUTHS))), draw(st.sampled_from(sorted(JUNCTIONS)))
    other = draw(st.sampled_from(sorted(TRUTHS)))
    parts = [draw(number(draw(st.integers(0, 2)), f"{prefix}{n}")) for n in range(4)]
    left = combine(op, parts[0], parts[1], f"%{prefix}p", TRUTHS[op])
    right = combine(other, parts[2], parts[3], f"%{prefix}q", TRUTHS[other])
    return combine(junction, left, right, f"%{prefix}t", JUNCTIONS[junction])


@pytest.mark.slow
@costly(25, 60)
@given(condition=truth("c"), value=number(2, "v"))
def test_constraints_admit_what_smt_admits_and_yield_what_smt_yields(condition: Smt, value: Smt) -> None:
    body = "\n".join(
        (
            *condition.lines,
            f"smt.assert {condition.result}",
            *value.lines,
            f"smt.yield {value.result} : !smt.int",
        )
    )
    schedule = knobs.Schedule(script(A, B, constrain(body, results="%out", gives=INTEGER)))
    feasible = {}
    for a in range(-3, 9):
        for b in range(1, 7):
            try:
                text = bind(schedule, a=a, b=b)
            except CandidateError:
                continue
            found = re.search(r"transform.param.constant (-?\d+) : i64", text)
            assert found is not None
            feasible[a, b] = int(found[1])
    expected = {
        (a, b): value.meaning(a, b) for a in range(-3, 9) for b in range(1, 7) if condition.meaning(a, b)
    }
    assert feasible == {point: number for point, number in expected.items() if number is not None}
    space = SearchSpace("s", schedule.knobs, schedule.constraints)
    if feasible:
        rows = FeasibleSet.of((space,))
        points = [dict(rows.candidate(row).choices) for row in range(rows.rows)]
        assert sorted((point["a"], point["b"]) for point in points) == sorted(feasible)


def test_every_other_op_means_what_smt_says() -> None:
    body = """%five = smt.int.constant 5
      %size = smt.int.abs %x
      %big = smt.int.cmp ge %size, %five
      %no = smt.constant false
      %small = smt.not %big
      %any = smt.or %small, %no
      smt.assert %any
      %some = smt.ite %big, %x, %size : !smt.int
      %ok = smt.distinct %some, %y, %five : !smt.int
      smt.assert %ok"""
    schedule = knobs.Schedule(script(A, B, constrain(body)))
    rows = FeasibleSet.of((SearchSpace("s", schedule.knobs, schedule.constraints),))
    points = {tuple(value for _, value in rows.candidate(row).choices) for row in range(rows.rows)}
    assert points == {
        (a, b) for a in range(-3, 9) for b in range(1, 7) if abs(a) < 5 and len({abs(a), b, 5}) == 3
    }
