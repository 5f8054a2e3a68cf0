import contextlib
import difflib
import itertools
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.mlir.scripts import INTEGER, PAYLOAD, TILE, alternatives, knob, script
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import CandidateError, Failure, Stage, UsageError
from tuner.core.interfaces import AbstractCompiler, Effort
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.transform import DYNAMIC_SIZES
from tuner.payload.partitions import PARTITIONS_COMMENT
from tuner.space.feasible_set import FeasibleSet
from tuner.space.scripts.schedule import Schedule
from tuner.space.scripts.script_text import with_constants
from tuner.space.scripts.strategy import Binder, Strategy
from tuner.space.search_space import SearchSpace
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator

pytestmark = pytest.mark.mlir
EXAMPLE = Path(__file__).parents[3] / "examples" / "matmul_knobs.mlir"
SIZE = knob("size", "[8, 16]")
PICKED = alternatives("order", knob("a", "[1, 2, 3]"), "", selected=f"%which : {INTEGER}")
VALUES: dict[str, Value] = {"tile_m": 8, "tile_n": 16, "unroll_k": 1, "outer_loop": 0}


def bind(text: str | Schedule, **values: Value) -> str:
    schedule = Schedule(text) if isinstance(text, str) else text
    return schedule.select(Candidate.of("own", values))


def apply(text: str) -> str:
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(PAYLOAD, "payload")
        transform.apply_script(module, transform.parse(text, "script"))
        return str(module)


def candidates(text: str) -> list[Candidate]:
    schedule = Schedule(text)
    rows = FeasibleSet.of((SearchSpace("own", schedule.knobs, schedule.constraints + schedule.idle),))
    return [rows.candidate(row) for row in range(rows.rows)]


def points(text: str) -> list[tuple[Value, ...]]:
    return [tuple(value for _, value in each.choices) for each in candidates(text)]


@pytest.mark.parametrize("size", [8, 16])
def test_a_knob_takes_effect_when_the_bound_script_is_applied(size: int) -> None:
    assert f"step %c{size}" in apply(bind(script(SIZE, TILE), size=size))


@pytest.mark.parametrize("order", [0, 1])
def test_the_chosen_region_and_no_other_is_run(order: int) -> None:
    marks = [f'transform.annotate %product "{mark}" : !transform.any_op' for mark in ("first", "second")]
    payload = apply(bind(script(alternatives("order", *marks)), order=order))
    assert ("first" in payload, "second" in payload) == (order == 0, order == 1)


def test_ops_of_one_name_are_bound_alike_and_a_value_keeps_the_spelling_of_its_option() -> None:
    text = bind(script(SIZE, knob("size", "[16, 8]", result="again")), size=16)
    assert text.count('<"size"> = 16 from options') == 2
    text = script(knob("flag", "[true, 7 : i32]", kind="!transform.any_param"))
    assert '<"flag"> = 7 : i32 from options' in bind(text, flag="7")
    assert '<"flag"> = true from options' in bind(text, flag="true")


def test_a_bound_script_leaves_one_candidate_binds_to_itself_and_the_schedule_is_as_it_was() -> None:
    bound = bind(script(SIZE, TILE, alternatives("order", "", "")), size=16, order=1)
    assert [dict(each.choices) for each in candidates(bound)] == [{"order": 1, "size": 16}]
    assert bind(bound, size=16, order=1) == bound
    schedule = Schedule(script(SIZE, TILE))
    first = bind(schedule, size=8)
    assert "= 16 from" in bind(schedule, size=16)
    assert bind(schedule, size=8) == first


def test_a_script_without_knobs_is_exactly_one_candidate_and_the_line_that_names_panels_is_kept() -> None:
    text = script(TILE.replace("%size", "8").replace(f", {INTEGER}", ""))
    assert candidates(text) == [Candidate("own", ())]
    assert "step %c8" in apply(bind(text))
    line = f"{PARTITIONS_COMMENT}matmul_64x32 0 0 64 32; matmul_64x32 0 32 64 32"
    assert bind(f"// a comment\n{line}\n{script(SIZE)}", size=8).splitlines()[:2] == ["// a comment", line]


def changed_lines(before: str, after: str) -> list[str]:
    differences = difflib.ndiff(before.splitlines(), after.splitlines())
    return [f"{line[0]} {line[2:].strip()}" for line in differences if line[0] in "+-"]


def test_values_are_written_into_the_text_and_nothing_else_of_it_moves() -> None:
    text = EXAMPLE.read_text()
    bound = bind(text, outer_loop=1, tile_m=4, tile_n=64, unroll_k=2)
    changes = [line for line in changed_lines(text, with_constants(bound)) if "smt" not in line]
    assert [line for line in changes if line[0] == "+"] == [
        "+ %tile_m = transform.param.constant 4 : i64 -> !transform.param<i64>",
        "+ %tile_n = transform.param.constant 64 : i64 -> !transform.param<i64>",
        "+ %unroll_k = transform.param.constant 2 : i64 -> !transform.param<i64>",
        '+ %tile = transform.tune.alternatives<"outer_loop"> selected_region = 1 -> !transform.any_op {',
    ]
    assert "smt." not in bound
    assert "// The choices. A register tile" in bound


FORMS = """
    // %no = transform.tune.knob<"no"> options = [1] -> !transform.param<i64>
    %size = transform.tune.knob<"size">
        options = {min = 8, max = 16, step = 8}  // rows
        -> !transform.param<i64>
    %name = transform.tune.knob<"name"> options = ["a b", "{"] -> !transform.any_param
    transform.annotate %product "transform.tune.knob<no> options" : !transform.any_op
    %twice = transform.smt.constrain_params(%size) : (!transform.param<i64>) -> (!transform.param<i64>) {
    ^bb0(%rows: !smt.int):  // } a brace
      %two = smt.int.constant 2
      %product_of_two = smt.int.mul %rows, %two
      smt.yield %product_of_two : !smt.int
    }
    transform.tune.alternatives<"order"> {
      transform.annotate %product "first" : !transform.any_op
      transform.yield
    }, {
      transform.yield
    }
"""


def test_values_are_written_in_each_form_and_not_into_comments_and_strings() -> None:
    text = script(FORMS)
    bound = bind(text, size=16, name="{", order=1)
    assert sorted(changed_lines(text, with_constants(bound))) == sorted(
        [
            '- %size = transform.tune.knob<"size">',
            "- options = {min = 8, max = 16, step = 8}  // rows",
            "+ %size = transform.param.constant 16 : i64  // rows",
            '- %name = transform.tune.knob<"name"> options = ["a b", "{"] -> !transform.any_param',
            '+ %name = transform.param.constant "{" -> !transform.any_param',
            *[f"- {line.strip()}" for line in FORMS.splitlines() if "%twice" in line],
            "+ %twice = transform.param.constant 32 : i64 -> !transform.param<i64>",
            "- ^bb0(%rows: !smt.int):  // } a brace",
            "- %two = smt.int.constant 2",
            "- %product_of_two = smt.int.mul %rows, %two",
            "- smt.yield %product_of_two : !smt.int",
            "- }",
            '- transform.tune.alternatives<"order"> {',
            '+ transform.tune.alternatives<"order"> selected_region = 1 {',
        ]
    )


def test_a_form_that_is_not_known_is_printed_by_mlir() -> None:
    spaced = script(SIZE).replace('knob<"size">', 'knob <"size" >')
    assert "= 8 : i64 from options" in bind(spaced, size=8)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 17}, "knob 'size': found 17, allowed 8, 16"),
        ({"size": "8"}, "knob 'size': found '8', allowed 8, 16"),
        ({}, "knob 'size': its value is missing, allowed 8, 16"),
        ({"size": 8, "tile": 4}, "knob: found 'tile', allowed size"),
    ],
)
def test_what_is_no_choice_of_the_script_fails_to_bind(values: dict[str, Value], message: str) -> None:
    with pytest.raises(CandidateError, match=message) as failure:
        bind(script(SIZE), **values)
    assert failure.value.stage is Stage.BIND
    with pytest.raises(CandidateError, match="knob: found 'size', allowed none: the script has no knobs"):
        bind(script(), size=8)


NO_MLIR = [
    (
        script("%x = transform.structured.tile_using_fr"),
        r"did you mean transform\.structured\.tile_using_for\?",
    ),
    (script("transform.loop.unrol"), r"did you mean transform\.loop\.unroll\?"),
    (
        script("%x = linalg.matmull"),
        r"5:10: custom op 'linalg\.matmull' is unknown; did you mean linalg\.matmul\?",
    ),
    ("module {", "own.mlir:1:7: expected operation name in quotes"),
    ("tile this", r"own.mlir:\d+:\d+: .*custom op 'tile' is unknown"),
    (script("%x = transform.bogus"), "own.mlir:5:10: custom op 'transform.bogus' is unknown$"),
    (script(SIZE.replace("]", "")), r"own.mlir:5:\d+: expected"),
]


@pytest.mark.parametrize(("text", "message"), NO_MLIR)
def test_what_is_no_mlir_is_refused_with_mlirs_first_diagnostic(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Schedule(text, "own.mlir")


def test_knobs_of_regions_that_are_not_run_do_not_multiply_the_candidates() -> None:
    inner = [knob("a", "[1, 2, 3]"), knob("b", '["x", "y"]', kind="!transform.any_param")]
    text = script(SIZE, alternatives("order", *inner))
    assert len(candidates(text)) == 2 * (3 + 2)
    choices = [dict(each.choices) for each in candidates(text)]
    assert {(each["order"], each["b"]) for each in choices} == {(0, "x"), (1, "x"), (1, "y")}


@pytest.mark.parametrize(
    ("ops", "count"),
    [
        ([alternatives("order", knob("a", "[1, 2]"), knob("a", "[1, 2]"), "")], 2 + 2 + 1),
        ([alternatives("outer", alternatives("inner", "", knob("a", "[1, 2, 3]")), "")], (1 + 3) + 1),
        ([knob("which", "[0, 1]"), PICKED], 3 + 1),
    ],
    ids=["in two regions", "nested", "picked by a knob"],
)
def test_a_knob_is_open_in_each_region_that_is_run_and_only_there(ops: list[str], count: int) -> None:
    assert len(candidates(script(*ops))) == count


NAMES = st.sampled_from(["a", "b", "tile m", "größe", "if"])
OPTIONS = ("[1, 2, 3]", "{min = 4, max = 16, step = 4}", '["p", "q"]', "[true, 2.5 : f32]")


@st.composite
def choice(draw: st.DrawFn, depth: int) -> str:
    """Returns a knob, or alternatives of choices; equal names have equal choices."""
    if depth and draw(st.booleans()):
        regions = draw(st.lists(st.lists(choice(depth - 1), max_size=2), min_size=1, max_size=3))
        name = draw(st.sampled_from([f"r{len(regions)}", f"s t{len(regions)}", ""]))
        return alternatives(name, *("\n".join(each) for each in regions))
    number = draw(st.integers(0, len(OPTIONS) - 1))
    return knob(draw(NAMES) + str(number), OPTIONS[number], kind="!transform.any_param", result="_")


@pytest.mark.slow
@costly(25, 60)
@given(st.lists(choice(2), min_size=1, max_size=3), st.data())
def test_every_candidate_of_any_schedule_binds_and_is_applied(ops: list[str], data: st.DataObject) -> None:
    # alternatives that raise an IndexError: no region and no option may be out of reach
    text = script("\n".join(ops))
    numbers = itertools.count()
    text = re.sub("%_ =", lambda _: f"%v{next(numbers)} =", text)  # results have names of their own
    candidate = data.draw(st.sampled_from(candidates(text)))
    bound = Schedule(text).select(candidate)
    read = {each.name: each.choices for each in Schedule(bound).knobs}
    assert read == {name: (value,) for name, value in candidate.choices}
    assert "linalg.matmul" in apply(bound)


def cpu(text: str) -> tuple[AbstractCompiler, Binder, Problem]:
    problem = Matmul(64, 64, 64)
    return CpuCompiler(), Binder((Strategy("own", Path("own.mlir"), text),), problem, (), 1), problem


def test_the_example_is_bound_compiled_verified_and_timed() -> None:
    compiler, binder, problem = cpu(EXAMPLE.read_text())
    evaluator = CpuEvaluator(1)
    found = candidates(EXAMPLE.read_text())
    assert len(found) == 54
    for candidate in (found[0], found[-1]):
        loaded = evaluator.load(problem, compiler.compile(problem, binder.bind(candidate)))
        verdict = evaluator.verify(problem, loaded, np.random.default_rng(1))
        assert (verdict.max_error <= 1.0, verdict.elements) == (True, 64 * 64)
        effort = Effort(budget_s=0.01, max_samples=6)
        measurement = evaluator.measure(problem, loaded, effort, np.random.default_rng(1))
        assert 1e-7 < measurement.median_s < 1e-2


def test_an_illegal_transform_or_a_tile_that_does_not_divide_fails_to_compile_with_op_and_place() -> None:
    unroll = "transform.loop.unroll %product {factor = 2} : !transform.any_op"
    line = next(each for each in EXAMPLE.read_text().splitlines() if "%product =" in each)
    text = EXAMPLE.read_text().replace(line, f"{line}\n{alternatives('unroll', '', unroll)}")
    compiler, binder, problem = cpu(text)
    compiler.compile(problem, binder.bind(Candidate.of("own", VALUES | {"unroll": 0})))
    unrolling = "transform.loop.unroll at script:10:7: failed to unroll, incorrect type of payload"
    vectorizing = f"linalg.fill at payload:7:16: Attempted to vectorize, but failed; {DYNAMIC_SIZES}"
    of_any_size = EXAMPLE.read_text().replace("divides = 16", "step = 1")
    for example, name, value, reason in (
        (text, "unroll", 1, unrolling),
        (of_any_size, "tile_m", 7, vectorizing),
    ):
        compiler, binder, problem = cpu(example)
        with pytest.raises(CandidateError) as error:
            compiler.compile(problem, binder.bind(Candidate.of("own", VALUES | {name: value})))
        assert error.value.failure == Failure(Stage.COMPILE, reason)


def test_ops_of_ours_work_in_a_context_after_another_was_made() -> None:
    prefetch = '"tuner.prefetch_reads"(%buffers) {argument = 1 : i64} : (!transform.any_op) -> ()'
    head, end, tail = EXAMPLE.read_text().rpartition("transform.yield")
    text = f"{head}{prefetch}\n    {end}{tail}"
    compiler, binder, problem = cpu(text)
    first = compiler.compile(problem, binder.bind(Candidate.of("own", VALUES)))
    Schedule(text)
    second = compiler.compile(problem, binder.bind(Candidate.of("own", VALUES | {"tile_n": 32})))
    assert all("llvm.intr.prefetch" in artifact.code.text for artifact in (first, second))


A, B = knob("a", "{min = -3, max = 8}"), knob("b", "{min = 1, max = 6}")
EVERY_POINT = [*itertools.product(range(-3, 9), range(1, 7))]
EQUAL = "%ok = smt.eq %x, %y : !smt.int\nsmt.assert %ok"


def constrain(body: str, parameters: str = "%a, %b", results: str = "", gives: str = "") -> str:
    """Returns a constraint op over %x, %y; ``gives`` is the text of its results' types."""
    count = parameters.count("%")
    names = ", ".join(f"%{name}: !smt.int" for name in "xyz"[:count])
    types = ", ".join([INTEGER] * count)
    head = f"{results} = " if results else ""
    signature = f"({parameters}) : ({types}) -> ({gives})"
    return f"{head}transform.smt.constrain_params{signature} {{\n^bb0({names}):\n{body}\n}}"


def texts(*ops: str) -> list[str]:
    return [each.text for each in Schedule(script(*ops), "own.mlir").constraints]


def test_what_is_asserted_becomes_a_constraint_and_results_of_one_may_enter_the_next() -> None:
    body = """%p = smt.int.mul %x, %y
      %most = smt.int.constant 12
      %fits = smt.int.cmp le %p, %most
      smt.assert %fits"""
    assert texts(A, B, constrain(body)) == ["(a * b) <= 12"]
    first = constrain("%p = smt.int.mul %x, %y\nsmt.yield %p : !smt.int", results="%area", gives=INTEGER)
    second = constrain("%ok = smt.int.cmp lt %x, %y\nsmt.assert %ok", "%area, %most")
    most = f"%most = transform.param.constant 12 : i64 -> {INTEGER}"
    assert texts(A, B, first, most, second) == ["(a * b) < 12"]


def test_a_constraint_reports_where_it_stands_in_the_script() -> None:
    schedule = Schedule(script(A, B, constrain(EQUAL)), "own.mlir")
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
    sizes = constrain(body, results="%size:2", gives=f"{INTEGER}, {INTEGER}")
    text = bind(script(A, B, sizes, tile), a=8, b=5)
    assert "smt" not in text
    constants = re.findall(r"(%\w+) = transform.param.constant (\d+) : i64", text)
    assert [number for _, number in constants] == ["8", "13"]
    assert f"tile_sizes [{constants[0][0]}, {constants[1][0]}]" in text


def test_a_region_that_is_not_run_asserts_nothing() -> None:
    schedule = Schedule(script(A, B, alternatives("order", "", constrain(EQUAL))))
    assert [each.text for each in schedule.constraints] == ["not (order == 1) or (a == b)"]
    assert bind(schedule, a=1, b=2, order=0)
    with pytest.raises(CandidateError, match="does not hold"):
        bind(schedule, a=1, b=2, order=1)


def test_a_division_by_zero_and_a_result_wider_than_any_word_fail_to_bind() -> None:
    body = "%q = smt.int.div %y, %x\nsmt.yield %q : !smt.int"
    schedule = Schedule(script(A, B, constrain(body, results="%q", gives=INTEGER)))
    assert [each.text for each in schedule.constraints] == ["a != 0"]
    with pytest.raises(CandidateError, match="'a != 0' does not hold"):
        bind(schedule, a=0, b=2)
    wide = "\n".join(f"%p{n + 1} = smt.int.mul %p{n}, %p{n}" for n in range(1, 6))
    body = f"%p1 = smt.int.mul %x, %x\n{wide}\nsmt.yield %p6 : !smt.int"
    schedule = Schedule(script(A, constrain(body, "%a", results="%q", gives=INTEGER)))
    assert "transform.param.constant 1 :" in bind(schedule, a=1)
    with pytest.raises(CandidateError, match=f"{8**64} does not fit i64"):
        bind(schedule, a=8)


@pytest.mark.parametrize(
    ("kind", "fits", "wide"),
    [("i8", (1, 100, -1), (200,)), ("ui8", (1, 100, 200), (300, -1)), ("i16", (300, -1), ())],
)
def test_a_result_has_the_type_that_the_script_gives_it_or_fails_to_bind(
    kind: str, fits: tuple[int, ...], wide: tuple[int, ...]
) -> None:
    op = constrain("smt.yield %x : !smt.int", "%a", results="%q", gives=f"!transform.param<{kind}>")
    schedule = Schedule(script(knob("a", "[1, 100, 200, 300, -1]"), op))
    for a in fits:
        assert f"transform.param.constant {a} : {kind} ->" in bind(schedule, a=a)
    for a in wide:
        with pytest.raises(CandidateError, match=f"'a': {a} does not fit {kind}") as failure:
            bind(schedule, a=a)
        assert failure.value.stage is Stage.BIND


OF_ITSELF = "%ok = smt.eq %x, %x : !smt.int\nsmt.assert %ok"
DECLARED = "%f = smt.declare_fun : !smt.int\n%ok = smt.eq %x, %f : !smt.int\nsmt.assert %ok"
SQUARES = "\n".join(f"%p{n + 1} = smt.int.mul %p{n}, %p{n}" for n in range(12))
LARGE = f"%p0 = smt.int.mul %x, %x\n{SQUARES}\n%ok = smt.eq %p12, %x : !smt.int\nsmt.assert %ok"
PAYLOAD_COUNT = "%n = transform.num_associations %product : (!transform.any_op) -> !transform.param<i64>"
OF_TEXT = f"(%a) : (!transform.any_param) -> () {{\n^bb0(%x: !smt.int):\n{OF_ITSELF}\n}}"


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        (
            [A, constrain(DECLARED, "%a")],
            r"own.mlir:\d+:6: transform.smt.constrain_params: found smt.declare_fun, allowed smt.constant",
        ),
        (
            [PAYLOAD_COUNT, constrain(OF_ITSELF, "%n")],
            "found a parameter from transform.num_associations, allowed knobs, transform.param.constant",
        ),
        (
            [knob("a b", "[1, 2]", result="a"), constrain(OF_ITSELF, "%a")],
            "knob 'a b': found another name, allowed integers, and a name of letters",
        ),
        (
            [A, B, alternatives("an order", constrain(EQUAL))],
            "inside alternatives, it needs a knob that picks them",
        ),
        ([A, constrain(LARGE, "%a")], "found an expression of 1531 characters, allowed 1000"),
        (
            [knob("a", '["x"]', kind="!transform.any_param"), f"transform.smt.constrain_params{OF_TEXT}"],
            "knob 'a': found texts, allowed integers",
        ),
    ],
)
def test_a_constraint_that_is_no_expression_over_knobs_is_refused(ops: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        texts(*ops)


@dataclass(frozen=True)
class Smt:
    """An SMT value: the ops that make it, their result, and its meaning."""

    lines: tuple[str, ...]
    result: str
    meaning: Callable[[int, int], int | None]  # None: a division by zero


def smt_div(a: int, b: int) -> int:
    """Divides so that the remainder is never negative, as SMT-LIB defines it."""
    return math.floor(a / b) if b > 0 else math.ceil(a / b)


Meaning = Callable[[int, int], int]
NUMBERS: dict[str, Meaning] = {
    **{f"smt.int.{name}": getattr(operator, name) for name in ("add", "sub", "mul")},
    "smt.int.div": smt_div,
    "smt.int.mod": lambda a, b: a - b * smt_div(a, b),
}
TRUTHS: dict[str, Meaning] = {
    f"smt.int.cmp {name}": getattr(operator, name) for name in ("lt", "le", "gt", "ge")
}
TRUTHS |= {"smt.eq": operator.eq, "smt.distinct": operator.ne}
JUNCTIONS: dict[str, Meaning] = {f"smt.{name}": getattr(operator, f"{name}_") for name in ("and", "or")}
JUNCTIONS |= {"smt.xor": operator.ne, "smt.implies": operator.le}  # of truths
TYPED = {"smt.eq": " : !smt.int", "smt.distinct": " : !smt.int"}


def combine(op: str, left: Smt, right: Smt, result: str, meaning: Meaning) -> Smt:
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


@costly(25, 60)
@given(condition=truth("c"), value=number(2, "v"))
def test_constraints_admit_what_smt_admits_and_yield_what_smt_yields(condition: Smt, value: Smt) -> None:
    ends = f"smt.assert {condition.result}", f"smt.yield {value.result} : !smt.int"
    body = "\n".join((*condition.lines, ends[0], *value.lines, ends[1]))
    text = script(A, B, constrain(body, results="%out", gives=INTEGER))
    schedule, feasible = Schedule(text), {}
    for a, b in EVERY_POINT:
        with contextlib.suppress(CandidateError):
            (found,) = re.findall(r"transform.param.constant (-?\d+) : i64", bind(schedule, a=a, b=b))
            feasible[a, b] = int(found)
    expected = {point: value.meaning(*point) for point in EVERY_POINT if condition.meaning(*point)}
    assert feasible == {point: number for point, number in expected.items() if number is not None}
    if feasible:
        assert sorted(points(text)) == sorted(feasible)


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
    expected = [(a, b) for a, b in EVERY_POINT if abs(a) < 5 and len({abs(a), b, 5}) == 3]
    assert points(script(A, B, constrain(body))) == expected
