import itertools
import re
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
from tuner.core.problem import Matmul, Problem
from tuner.payload.cpu import PARTITIONS_COMMENT
from tuner.space.feasible_set import FeasibleSet
from tuner.space.scripts.strategy import Binder, Strategy
from tuner.space.search_space import SearchSpace

pytestmark = pytest.mark.mlir

knobs = pytest.importorskip("tuner.space.scripts.schedule")
interpreter = pytest.importorskip("tuner.mlir.transform")
ir = pytest.importorskip("tuner.mlir.bindings").ir
CpuCompiler = pytest.importorskip("tuner.targets.cpu.compiler").CpuCompiler
CpuEvaluator = pytest.importorskip("tuner.targets.cpu.evaluator").CpuEvaluator

EXAMPLE = Path(__file__).parents[3] / "examples" / "matmul_knobs.mlir"
SIZE = knob("size", "[8, 16]")


def bind(text: str, **values: Value) -> str:
    bound: str = knobs.Schedule(text).select(Candidate.of("own", values))
    return bound


def apply(text: str) -> str:
    with interpreter.new_context(), ir.Location.unknown():
        module = interpreter.parse(PAYLOAD, "payload")
        interpreter.apply_script(module, interpreter.parse(text, "script"))
        return str(module)


def candidates(text: str) -> list[Candidate]:
    schedule = knobs.Schedule(text)
    rows = FeasibleSet.of((SearchSpace("own", schedule.knobs, schedule.constraints + schedule.idle),))
    return [rows.candidate(row) for row in range(rows.rows)]


@pytest.mark.parametrize("size", [8, 16])
def test_a_knob_takes_effect_when_the_bound_script_is_applied(size: int) -> None:
    assert f"step %c{size}" in apply(bind(script(SIZE, TILE), size=size))


@pytest.mark.parametrize("order", [0, 1])
def test_the_chosen_region_and_no_other_is_run(order: int) -> None:
    marks = [f'transform.annotate %product "{mark}" : !transform.any_op' for mark in ("first", "second")]
    payload = apply(bind(script(alternatives("order", *marks)), order=order))
    assert ("first" in payload, "second" in payload) == (order == 0, order == 1)


def test_ops_of_one_name_are_bound_alike() -> None:
    text = bind(script(SIZE, knob("size", "[16, 8]", result="again")), size=16)
    assert text.count('<"size"> = 16 : i64 from options') == 2


def test_a_value_keeps_the_spelling_of_its_option() -> None:
    text = script(knob("flag", "[true, 7 : i32]", kind="!transform.any_param"))
    assert '<"flag"> = 7 : i32 from options' in bind(text, flag="7")
    assert '<"flag"> = true from options' in bind(text, flag="true")


def test_a_bound_script_leaves_one_candidate_and_binds_to_itself() -> None:
    bound = bind(script(SIZE, TILE, alternatives("order", "", "")), size=16, order=1)
    assert [dict(each.choices) for each in candidates(bound)] == [{"order": 1, "size": 16}]
    assert bind(bound, size=16, order=1) == bound


def test_binding_leaves_the_schedule_as_it_was() -> None:
    schedule = knobs.Schedule(script(SIZE, TILE))
    first = schedule.select(Candidate.of("own", {"size": 8}))
    assert "= 16 : i64 from" in schedule.select(Candidate.of("own", {"size": 16}))
    assert schedule.select(Candidate.of("own", {"size": 8})) == first


def test_a_script_without_knobs_is_exactly_one_candidate() -> None:
    text = script(TILE.replace("%size", "8").replace(f", {INTEGER}", ""))
    assert candidates(text) == [Candidate("own", ())]
    assert "step %c8" in apply(bind(text))


def test_the_line_that_names_the_panels_is_kept() -> None:
    line = f"{PARTITIONS_COMMENT}matmul_64x32 0 0 64 32; matmul_64x32 0 32 64 32"
    assert bind(f"// a comment\n{line}\n{script(SIZE)}", size=8).splitlines()[0] == line


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


def test_a_knob_that_is_not_there_fails_to_bind_in_a_script_without_knobs() -> None:
    with pytest.raises(CandidateError, match="knob: found 'size', allowed none: the script has no knobs"):
        bind(script(), size=8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module {", "own.mlir: error: line 1:7: expected operation name in quotes"),
        ("tile this", "own.mlir: error: .*custom op 'tile' is unknown"),
        (
            script("%x = transform.bogus"),
            "own.mlir: error: line 5:10: custom op 'transform.bogus' is unknown",
        ),
        (script(SIZE.replace("]", "")), r"own.mlir: error: line 5:\d+: expected"),
    ],
)
def test_what_is_no_mlir_is_refused_with_mlirs_first_diagnostic(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        knobs.Schedule(text, "own.mlir")


def test_knobs_of_regions_that_are_not_run_do_not_multiply_the_candidates() -> None:
    inner = [knob("a", "[1, 2, 3]"), knob("b", '["x", "y"]', kind="!transform.any_param")]
    text = script(SIZE, alternatives("order", *inner))
    assert len(candidates(text)) == 2 * (3 + 2)
    assert {(dict(each.choices)["order"], dict(each.choices)["b"]) for each in candidates(text)} == {
        (0, "x"),
        (1, "x"),
        (1, "y"),
    }


def test_a_knob_used_in_two_regions_is_open_in_both() -> None:
    text = script(alternatives("order", knob("a", "[1, 2]"), knob("a", "[1, 2]"), ""))
    assert len(candidates(text)) == 2 + 2 + 1


def test_a_knob_in_nested_regions_is_open_only_where_all_are_run() -> None:
    nested = alternatives("inner", "", knob("a", "[1, 2, 3]"))
    assert len(candidates(script(alternatives("outer", nested, "")))) == (1 + 3) + 1


def test_a_region_that_a_knob_picks_counts_like_one_that_is_named() -> None:
    picked = alternatives("order", knob("a", "[1, 2, 3]"), "", selected=f"%which : {INTEGER}")
    assert len(candidates(script(knob("which", "[0, 1]"), picked))) == 3 + 1


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
    found = candidates(text)
    candidate = data.draw(st.sampled_from(found))
    bound = knobs.Schedule(text).select(candidate)
    read = knobs.Schedule(bound).knobs
    assert {each.name: each.choices for each in read} == {name: (value,) for name, value in candidate.choices}
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
        assert verdict.max_error <= 1.0
        assert verdict.elements == 64 * 64
        effort = Effort(budget_s=0.01, max_samples=6)
        measurement = evaluator.measure(problem, loaded, effort, np.random.default_rng(1))
        assert 1e-7 < measurement.median_s < 1e-2


def test_a_knob_that_makes_an_illegal_transform_fails_to_compile_with_op_and_place() -> None:
    unroll = "transform.loop.unroll %product {factor = 2} : !transform.any_op"
    line = next(each for each in EXAMPLE.read_text().splitlines() if "%product =" in each)
    compiler, binder, problem = cpu(
        EXAMPLE.read_text().replace(line, f"{line}\n{alternatives('unroll', '', unroll)}")
    )
    values: dict[str, Value] = {"tile_m": 8, "tile_n": 16, "unroll_k": 1, "outer_loop": 0}
    compiler.compile(problem, binder.bind(Candidate.of("own", {**values, "unroll": 0})))
    with pytest.raises(CandidateError) as error:
        compiler.compile(problem, binder.bind(Candidate.of("own", {**values, "unroll": 1})))
    reason = "transform.loop.unroll at script:7:7: failed to unroll, incorrect type of payload"
    assert error.value.failure == Failure(Stage.COMPILE, reason)


def test_a_tile_that_does_not_divide_fails_to_compile_with_payload_op_and_place() -> None:
    text = EXAMPLE.read_text().replace("divides = 16", "step = 1")
    compiler, binder, problem = cpu(text)
    values: dict[str, Value] = {"tile_m": 7, "tile_n": 16, "unroll_k": 1, "outer_loop": 0}
    with pytest.raises(CandidateError) as error:
        compiler.compile(problem, binder.bind(Candidate.of("own", values)))
    assert error.value.failure == Failure(
        Stage.COMPILE, "linalg.fill at payload:7:16: Attempted to vectorize, but failed"
    )


def test_ops_of_ours_work_in_a_context_after_another_was_made() -> None:
    prefetch = '"tuner.prefetch_reads"(%buffers) {argument = 1 : i64} : (!transform.any_op) -> ()'
    head, end, tail = EXAMPLE.read_text().rpartition("transform.yield")
    text = f"{head}{prefetch}\n    {end}{tail}"
    compiler, binder, problem = cpu(text)
    values: dict[str, Value] = {"tile_m": 8, "tile_n": 16, "unroll_k": 1, "outer_loop": 0}
    first = compiler.compile(problem, binder.bind(Candidate.of("own", values)))
    knobs.Schedule(text)
    second = compiler.compile(problem, binder.bind(Candidate.of("own", {**values, "tile_n": 32})))
    assert all("llvm.intr.prefetch" in artifact.code for artifact in (first, second))
