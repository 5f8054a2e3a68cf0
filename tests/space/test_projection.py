from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tuning.fakes import MACHINE
from tuner.core.candidate import Candidate, Value
from tuner.core.gpu import CHIPS
from tuner.core.machine import Machine, gpu_machine, variables_of
from tuner.core.problem import OPERATIONS
from tuner.core.problem_classes import MatmulProblem
from tuner.space.expressions import parse
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.projection import VISITS_LIMIT, Projection, projected
from tuner.space.search_space import Knob, SearchSpace

SHIPPED = load_space_file(default_space_file())
CPU = replace(MACHINE, isa="avx512", has_bf16=True, has_vnni=True, has_amx_bf16=True, has_amx_int8=True)
NEON = replace(MACHINE, isa="neon", has_dotprod=True, has_i8mm=True, has_arm_bf16=True)
GPU = gpu_machine("cuda", CHIPS["sm_90a"], "H200")
# Instruction sets of a strategy -> a machine; CPU for others
MACHINES: dict[tuple[str, ...], Machine] = {("ptx",): GPU, ("neon",): NEON}
# Of matmuls: what fusions allow depends on their texts (tests/results/test_fusion_schedules.py).
ENTRIES = [
    (each.name, MACHINES.get(each.isas, CPU))
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


@pytest.mark.drawn(1)
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


@pytest.mark.parametrize(("name", "machine"), [entry for entry in ENTRIES if entry[1] is not GPU])
def test_every_first_point_of_a_processors_strategy_has_a_projection_on_a_usual_shape(
    name: str, machine: Machine
) -> None:
    entry = SHIPPED.strategy(name)
    for sizes in ((128, 768, 768), (512, 512, 512), (33, 1000, 512)):
        problem = MatmulProblem("matmul", sizes, entry.dtypes[0], entry.layouts[0])
        projection = Projection(entry.space(variables_of(problem, machine, 1)))
        assert all(projection.of(point) is not None for point in entry.first_on(""))
