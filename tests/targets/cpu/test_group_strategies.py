"""Strategies of fusions on random sizes and configurations: compiled, run, right; NaN and infinities kept."""

import functools
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fuzzing.cpu_points import emulated_machine
from tests import group_texts as texts
from tests.group_runs import as_problem, error_of
from tuner.core.machine import Machine, variables_of
from tuner.core.problem import Problem
from tuner.runtime.cpu.host import describe_machine
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import choose, default_script, first_configuration, spaces
from tuner.space.scripts.strategy import Binder, load_strategy

pytestmark = pytest.mark.mlir
SIZES = st.integers(1, 90)
FEW = settings(max_examples=12, deadline=None)  # each is compiled


@functools.cache
def machine() -> Machine:
    return describe_machine()


def drawn_script(
    problem: Problem, strategy: str, number: int, processor: Machine | None = None
) -> str | None:
    """Returns the script of one feasible configuration of a strategy; None where it has none."""
    processor = processor or machine()
    file = load_space_file(default_space_file())
    variables = variables_of(problem, processor, threads=1)
    able = [
        space
        for space in spaces(choose((), file), file, problem, processor.isa, variables)
        if space.strategy == strategy
    ]
    if not able:
        return None
    feasible = FeasibleSet.of(tuple(able))
    candidate = feasible.candidate(number % feasible.rows)
    return Binder((load_strategy(strategy),), problem, variables, threads=1).bind(candidate).text


def require_right(kind: str, text: str, strategy: str, number: int) -> None:
    problem = as_problem(kind, text)
    script = drawn_script(problem, strategy, number)
    assert script is not None
    rng = np.random.default_rng(number)
    assert error_of(problem.fusion, script, rng) <= 1, (problem.key, script)


@pytest.mark.slow
@FEW
@given(SIZES, SIZES, SIZES, st.sampled_from(texts.EPILOGUES), st.booleans(), st.integers(0, 10**6))
def test_contractions_of_packed_weights_are_right(
    m: int, n: int, k: int, epilogue: str, pairs: bool, number: int
) -> None:
    text = texts.product(m, n, k, epilogue, pairs=pairs)
    require_right("contraction", text, "contraction_cpu_packed", number)


@pytest.mark.slow
@FEW
@given(SIZES, SIZES, SIZES, st.sampled_from(texts.EPILOGUES), st.integers(1, 4), st.integers(0, 10**6))
def test_batches_of_contractions_are_right(
    m: int, n: int, k: int, epilogue: str, batch: int, number: int
) -> None:
    text = texts.product(m, n, k, epilogue, batch=batch)
    require_right("contraction", text, "contraction_cpu_direct", number)


@pytest.mark.parametrize("strategy", ["contraction_cpu_packed", "contraction_cpu_direct"])
def test_a_contraction_of_f64_is_right(strategy: str) -> None:
    batch = 3 * (strategy == "contraction_cpu_direct")
    text = texts.product(13, 37, 29, "bias_relu", batch=batch, element="f64")
    require_right("contraction", text, strategy, 5)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(
    SIZES,
    SIZES,
    SIZES,
    st.sampled_from(texts.EPILOGUES),
    st.sampled_from(["one", "pairs", "batch"]),
    st.integers(0, 10**6),
)
@pytest.mark.parametrize("strategy", ["contraction_cpu_amx", "contraction_cpu_pairs"])
def test_contractions_of_bf16_are_right(
    strategy: str, m: int, n: int, k: int, epilogue: str, form: str, number: int
) -> None:
    text = texts.product(
        m, n, k, epilogue, batch=3 * (form == "batch"), pairs=form == "pairs", element="bf16", sums="f32"
    )
    problem = as_problem("contraction", text)
    emulates = strategy == "contraction_cpu_amx" and not machine().has_amx_bf16
    script = drawn_script(problem, strategy, number, emulated_machine() if emulates else None)
    assert script is not None
    error = error_of(problem.fusion, script, np.random.default_rng(number), emulates=emulates)
    assert error <= 1, (problem.key, script)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("epilogue", ["bias_relu", "none"])
def test_tiles_as_vectors_compute_a_fusion(epilogue: str) -> None:
    problem = as_problem("contraction", texts.product(17, 40, 35, epilogue, element="bf16", sums="f32"))
    script = drawn_script(problem, "contraction_cpu_amx", 7, emulated_machine())
    assert script is not None
    assert error_of(problem.fusion, script, np.random.default_rng(1), emulates=True) <= 1


@pytest.mark.parametrize(
    ("sizes", "batch"),
    [((1, 5, 3), 0), ((16, 176, 64), 0), ((128, 1024, 512), 0), ((700, 300, 700), 3), ((2000, 3, 33), 3)],
)
@pytest.mark.parametrize("has", ["amx", "bf16", "neither", "avx2"])
def test_each_processor_has_a_first_configuration_for_bf16(
    sizes: tuple[int, int, int], batch: int, has: str
) -> None:
    text = texts.product(*sizes, "bias", batch=batch, element="bf16", sums="f32")
    processor = replace(
        emulated_machine(), has_amx_bf16=has == "amx", has_bf16=has in ("amx", "bf16"), isa="avx512"
    )
    if has == "avx2":
        processor = replace(processor, isa="avx2")
    found = first_configuration(as_problem("contraction", text), processor)
    assert found is not None
    candidate = found[0]
    assert candidate.strategy == ("contraction_cpu_amx" if has == "amx" else "contraction_cpu_pairs")
    if has != "amx":
        assert dict(candidate.choices)["dots"] == (has == "bf16")


def test_nan_infinities_and_zeros_of_padding_do_not_mix_in_bf16() -> None:
    problem = as_problem("contraction", texts.product(18, 33, 35, "bias_relu", element="bf16", sums="f32"))
    found = default_script(problem, machine())
    assert found is not None
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((18, 35), (35, 33)))
    a[1, 34], a[3, 4], b[34, 32] = np.nan, np.inf, np.inf
    bias = rng.standard_normal(33).astype(np.float32)
    assert error_of(problem.fusion, found.text, rng, [a, b, bias]) <= 1


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(SIZES, st.integers(1, 300), st.integers(0, 9))
def test_rows_of_bf16_are_right(rows: int, columns: int, number: int) -> None:
    require_right("rows", texts.narrow_rows(rows, columns), "rows_cpu", number)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("op", ["math.tanh %x0", "arith.mulf %x0, %x0", "math.exp %x0"])
def test_elementwise_operations_of_bf16_are_right(op: str) -> None:
    require_right("elementwise", texts.elementwise((3, 77), op, "bf16"), "elementwise_cpu", 1)


@pytest.mark.parametrize("shape", [(32, 48), (17, 35)])
def test_transposes_of_bf16_are_right(shape: tuple[int, int]) -> None:
    require_right("elementwise", texts.transpose(shape, (1, 0), "bf16"), "elementwise_cpu", 0)


@pytest.mark.slow
@FEW
@given(
    SIZES, st.integers(1, 300), st.sampled_from(["softmax", "f64", "f32", "rms", "sums"]), st.integers(0, 9)
)
def test_rows_are_right(rows: int, columns: int, kind: str, number: int) -> None:
    text = {
        "softmax": lambda: texts.softmax(rows, columns),
        "sums": lambda: texts.row_sums(rows, columns),
        "rms": lambda: texts.layer_norm(rows, columns, "f32", has_mean=False),
    }.get(kind, lambda: texts.layer_norm(rows, columns, kind))()
    require_right("rows", text, "rows_cpu", number)


@pytest.mark.slow
@FEW
@given(st.lists(st.integers(1, 40), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_transposes_are_right(shape: list[int], random: object) -> None:
    order = list(range(len(shape)))
    random.shuffle(order)  # type: ignore[attr-defined]
    text = texts.transpose(tuple(shape), tuple(order))
    require_right("elementwise", text, "elementwise_cpu", 0)


@pytest.mark.slow
@FEW
@given(st.lists(st.integers(1, 70), min_size=1, max_size=3), st.integers(0, 9))
def test_elementwise_operations_are_right(shape: list[int], number: int) -> None:
    require_right("elementwise", texts.elementwise(tuple(shape)), "elementwise_cpu", number)


@pytest.mark.parametrize("script_of", ["schedule", "loops"])
def test_softmax_keeps_infinities_and_nan_as_numpy_does(script_of: str) -> None:
    problem = as_problem("rows", texts.softmax(5, 77))
    found = default_script(problem, machine())
    assert found is not None
    rows = np.random.default_rng(1).standard_normal((5, 77)).astype(np.float32)
    rows[0, 3] = -np.inf  # a mask
    rows[1] = -np.inf  # nothing is left: NaN
    rows[2, 70] = np.nan
    rows[3, 76] = np.inf
    script = found.text if script_of == "schedule" else None
    assert error_of(problem.fusion, script, np.random.default_rng(0), [rows]) <= 1


@pytest.mark.drawn(2)
@pytest.mark.parametrize("epilogue", ["bias_relu", "gelu", "silu"])
def test_nan_and_infinities_pass_through_epilogues(epilogue: str) -> None:
    problem = as_problem("contraction", texts.product(6, 33, 8, epilogue))
    found = default_script(problem, machine())
    assert found is not None
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((6, 8), (8, 33)))
    a[1, 2], a[3, 4] = np.nan, np.inf
    bias = [] if epilogue == "silu" else [rng.standard_normal(33).astype(np.float32)]
    assert error_of(problem.fusion, found.text, rng, [a, b, *bias]) <= 1


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("contraction", texts.product(7, 9, 5, "gelu", pairs=True)),
        ("contraction", texts.product(3, 9, 5, batch=2)),
        ("rows", texts.layer_norm(4, 30)),
        ("elementwise", texts.transpose((3, 4, 5), (2, 0, 1))),
        ("elementwise", texts.elementwise((3, 5), "math.exp2 %x0")),
    ],
)
def test_without_a_script_a_fusion_is_loops(kind: str, text: str) -> None:
    assert error_of(as_problem(kind, text).fusion, None, np.random.default_rng(3)) <= 1


def test_the_reference_notices_a_wrong_element() -> None:
    text = texts.product(8, 40, 64, "bias")
    wrong = text.replace("arith.addf %x0, %x1", "arith.subf %x0, %x1")
    rng = np.random.default_rng(4)
    from tests.group_runs import compiled, run
    from tuner.mlir.reference.fusion_reference import draw_inputs, evaluate, worst_error

    inputs = draw_inputs(text, rng)
    expected = evaluate(text, inputs)
    (found,) = run(compiled(wrong, None), inputs, expected, "f32")
    assert worst_error(expected[0], found) > 100
