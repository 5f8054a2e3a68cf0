"""Fusions whose contraction is of i8: random sizes, configurations and epilogues, compiled, run and right."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fuzzing.cpu_points import emulated_machine
from tests import byte_group_texts as texts
from tests import group_texts
from tests.group_runs import as_problem, compiled, error_of, run
from tests.targets.cpu.test_group_strategies import drawn_script, machine
from tuner.core.errors import CandidateError
from tuner.core.interfaces import Effort
from tuner.core.machine import Machine
from tuner.core.problem import WEIGHTS_COLD
from tuner.mlir.reference.fusion_reference import draw_inputs, evaluate, worst_error
from tuner.space.scripts.choice import default_script, first_configuration
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.fusion_arrays import FusionArrays

pytestmark = pytest.mark.mlir
SIZES = st.integers(1, 80)
NUMBERS = st.integers(0, 10**6)
FORMS = st.sampled_from(["one", "pairs", "batch"])
QUICK = Effort(budget_s=0.005, min_samples=3, max_samples=6)
STRATEGIES = ("contraction_cpu_vnni", "contraction_cpu_amx")


def text_of(m: int, n: int, k: int, epilogue: str, form: str) -> str:
    return texts.product(m, n, k, epilogue, batch=3 * (form == "batch"), pairs=form == "pairs")


def require_right(text: str, strategy: str, number: int, processor: Machine, *, emulates: bool) -> None:
    problem = as_problem("contraction", text)
    script = drawn_script(problem, strategy, number, processor)
    assert script is not None
    error = error_of(problem.fusion, script, np.random.default_rng(number), emulates=emulates)
    assert error <= 1, (problem.key, script)


@pytest.mark.skipif(not machine().has_vnni, reason="this processor has no VNNI")
@settings(max_examples=15, deadline=None)
@given(SIZES, SIZES, SIZES, st.sampled_from(texts.NAMES), FORMS, NUMBERS)
def test_dot_products_of_bytes_are_right(
    m: int, n: int, k: int, epilogue: str, form: str, number: int
) -> None:
    require_right(text_of(m, n, k, epilogue, form), STRATEGIES[0], number, machine(), emulates=False)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=5, deadline=None)
@given(SIZES, SIZES, SIZES, st.sampled_from(texts.NAMES), FORMS, NUMBERS)
def test_code_for_other_processors_is_right(
    strategy: str, m: int, n: int, k: int, epilogue: str, form: str, number: int
) -> None:
    require_right(text_of(m, n, k, epilogue, form), strategy, number, emulated_machine(), emulates=True)


def test_registers_of_256_bits_are_right() -> None:
    processor = replace(emulated_machine(), isa="avx2")
    require_right(texts.product(17, 43, 35, "columns"), STRATEGIES[0], 3, processor, emulates=True)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("epilogue", texts.NAMES)
def test_without_a_script_a_fusion_of_bytes_is_loops(epilogue: str) -> None:
    text = as_problem("contraction", texts.product(7, 9, 5, epilogue)).fusion
    assert error_of(text, None, np.random.default_rng(3)) <= 1


@pytest.mark.parametrize("extreme", [-128, 127])
def test_the_greatest_sums_are_exact(extreme: int) -> None:
    problem = as_problem("contraction", texts.product(7, 20, 1027))
    script = drawn_script(problem, STRATEGIES[0], 1, emulated_machine())
    a, b = np.full((7, 1027), extreme, np.int8), np.full((1027, 20), -128, np.int8)
    rng = np.random.default_rng(0)
    assert error_of(problem.fusion, script, rng, [a, b], emulates=not machine().has_vnni) == 0


@pytest.mark.drawn(2)
@pytest.mark.parametrize("k", [1, 3, 5, 64, 66])
def test_a_weight_comes_packed_and_unsigned(k: int) -> None:
    problem = as_problem("contraction", texts.product(5, 70, k, "columns"))
    found = first_configuration(problem, emulated_machine_of("vnni"))
    assert found is not None
    _, packing, *others = compiled(problem.fusion, found[1].text, emulates=True).packings
    assert packing is not None
    assert (packing.interleave, packing.unsigned, packing.depth) == (4, True, 64)
    assert others == [None, None]


@pytest.mark.slow
def test_a_b_that_is_no_weight_is_packed_inside() -> None:
    text = texts.product(9, 33, 21, "columns").replace("33xi8> {tuner.weight}", "33xi8>")
    problem = as_problem("contraction", text)
    script = drawn_script(problem, STRATEGIES[0], 11, emulated_machine())
    code = compiled(problem.fusion, script, emulates=True)
    assert code.packings == (None,) * 4
    assert error_of(problem.fusion, script, np.random.default_rng(5), emulates=True) <= 1


@pytest.mark.parametrize(
    ("sizes", "batch"),
    [((1, 5, 3), 0), ((16, 176, 64), 0), ((128, 1024, 512), 0), ((700, 300, 700), 3), ((2000, 3, 33), 3)],
)
@pytest.mark.parametrize(
    ("has", "strategy"),
    [("amx", STRATEGIES[1]), ("vnni", STRATEGIES[0]), ("avx-vnni", STRATEGIES[0]), ("neither", "")],
)
def test_each_processor_has_a_first_configuration_for_bytes_or_none(
    sizes: tuple[int, int, int], batch: int, has: str, strategy: str
) -> None:
    problem = as_problem("contraction", texts.product(*sizes, "scale", batch=batch))
    found = first_configuration(problem, emulated_machine_of(has))
    assert (found[0].strategy if found else "") == strategy


def emulated_machine_of(has: str) -> Machine:
    """Returns a processor with AMX ("amx"), VNNI ("vnni"), VNNI of 256 bits ("avx-vnni") or neither."""
    return replace(
        emulated_machine(),
        has_amx_int8=has == "amx",
        has_vnni=has != "neither",
        isa="avx2" if has == "avx-vnni" else "avx512",
    )


@pytest.mark.slow
@pytest.mark.parametrize("epilogue", ["scale", "columns"])
def test_nan_and_infinities_of_scales_stay_in_their_columns(epilogue: str) -> None:
    problem = as_problem("contraction", texts.product(18, 33, 35, epilogue))
    found = default_script(problem, emulated_machine_of("vnni"))
    assert found is not None
    rng = np.random.default_rng(2)
    inputs = list(draw_inputs(problem.fusion, rng))
    if epilogue == "columns":
        inputs[2][[1, 4]], inputs[3][[7, 32]] = [np.nan, np.inf], [np.nan, -np.inf]
        inputs[0][5] = 0  # infinity times 0
        assert np.isnan(evaluate(problem.fusion, tuple(inputs))[0].value).sum() > 18
    assert error_of(problem.fusion, found.text, rng, inputs, emulates=True) <= 1


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(1, 70), min_size=1, max_size=3), st.integers(0, 9))
@pytest.mark.parametrize("isa", ["avx512", "avx2"])
def test_numbers_are_quantized(isa: str, shape: list[int], number: int) -> None:
    problem = as_problem("elementwise", texts.quantized(tuple(shape)))
    script = drawn_script(problem, "elementwise_cpu", number, replace(emulated_machine(), isa=isa))
    assert script is not None
    given = (np.random.default_rng(number).standard_normal(shape) * 3).astype(np.float32)
    assert error_of(problem.fusion, script, np.random.default_rng(0), [given]) <= 1


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("shape", "order"),
    [((32, 48), (1, 0)), ((17, 35), (1, 0)), ((3, 40, 20), (0, 2, 1)), ((4, 6, 8), (1, 0, 2))],
)
@pytest.mark.parametrize("isa", ["avx512", "avx2"])
def test_bytes_are_transposed(isa: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    problem = as_problem("elementwise", group_texts.transpose(shape, order, "i8"))
    script = drawn_script(problem, "elementwise_cpu", 0, replace(emulated_machine(), isa=isa))
    assert script is not None
    assert error_of(problem.fusion, script, np.random.default_rng(0)) == 0


@pytest.mark.parametrize("wrong", ["arith.subi %x0", "arith.addi %x1"])
def test_a_wrong_epilogue_is_noticed(wrong: str) -> None:
    text = texts.product(8, 40, 64, "bias")
    inputs = draw_inputs(text, np.random.default_rng(4))
    inputs = (*inputs[:2], inputs[2] + 5)
    expected = evaluate(text, inputs)
    (found,) = run(compiled(text.replace("arith.addi %x0", wrong), None), inputs, expected, "i32")
    assert worst_error(expected[0], found) > 1e300  # no tolerance


@pytest.mark.skipif(not machine().has_vnni, reason="this processor has no VNNI")
@pytest.mark.parametrize("epilogue", ["none", "columns", "requantized"])
def test_the_first_configuration_is_verified_and_timed(epilogue: str) -> None:
    problem = replace(as_problem("contraction", texts.product(8, 40, 66, epilogue)), cache=WEIGHTS_COLD)
    script, cpu, rng = default_script(problem, machine()), CpuEvaluator(1), np.random.default_rng(0)
    assert script is not None
    loaded = cpu.load(problem, CpuCompiler().compile(problem, script))
    verdict = cpu.verify(problem, loaded, rng)
    assert verdict.elements == 8 * 40
    assert verdict.max_error <= (1 if epilogue == "columns" else 0) or epilogue == "requantized"
    assert cpu.measure(problem, loaded, QUICK, rng).median_s > 0


def test_inputs_are_all_bytes_and_then_the_extreme_ones() -> None:
    problem = as_problem("contraction", texts.product(30, 40, 50, "bias"))
    rng = np.random.default_rng(0)
    arrays = FusionArrays(problem, rng, 4096)
    a, b, *_ = arrays.operands
    assert {a.min(), b.min(), a.max(), b.max()} == {-128, 127}
    assert len(set(a.tolist())) > 200
    arrays.fill_with_extremes(rng)
    assert set(a.tolist()) == {-128, 0, 127}


def test_marks_of_bytes_are_pairs_within_a_row() -> None:
    problem = as_problem("contraction", texts.product(6, 9, 5, "requantized"))
    arrays = FusionArrays(problem, np.random.default_rng(0), 4096)
    out = arrays.operands[-1]
    places = arrays.marks(np.random.default_rng(1), 5)[:, 1].astype(np.int64) - out.ctypes.data
    assert {int(each) % 9 for each in places} == set(range(8))
    assert 0 <= min(places) <= max(places) < 6 * 9 - 1


def test_bytes_without_neighbours_cannot_be_marked() -> None:
    problem = as_problem("contraction", texts.product(6, 1, 5, "requantized"))
    arrays = FusionArrays(problem, np.random.default_rng(0), 4096)
    with pytest.raises(CandidateError, match=r"no element of the result is finite .*, or has a byte next to"):
        arrays.marks(np.random.default_rng(1), 5)
