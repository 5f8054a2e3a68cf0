"""Strategies of fusions on random sizes and configurations: compiled, run, right; NaN and infinities kept."""

import functools
from collections.abc import Callable
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import byte_fusion_texts as byte_texts
from tests import fusion_texts as texts
from tests.default_suite import ALL
from tests.fusion_runs import as_problem, compiled, draw_inputs, error_of, run
from tests.support.fuzzing.cpu_points import emulated_machine
from tests.support.fuzzing.fusion_points import contraction
from tests.tuning.fakes import present
from tuner.core.instruction_sets import NEON
from tuner.core.interfaces import Effort
from tuner.core.machine import Machine, variables_of
from tuner.core.problem import WEIGHTS_COLD
from tuner.core.problem_classes import TextProblem, quantized_problem
from tuner.core.quantization import WeightFormat
from tuner.mlir.reference.fusion_reference import evaluate, worst_error
from tuner.runtime.cpu.host import describe_machine
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import choose, default_script, first_configuration, spaces
from tuner.space.scripts.strategy import Binder, load_strategy
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator

pytestmark = pytest.mark.mlir
HERE, EMULATED = describe_machine(), emulated_machine()
AVX2 = replace(EMULATED, isa="avx2")
INTEL = "Xeon (family 6 model 207, avx512 bf16 vnni, caches 48K/2M/260M)"
Sizes = tuple[int, int, int]  # m, n, k
SIZES = st.integers(1, 90)
THREE_SIZES = st.tuples(SIZES, SIZES, SIZES)
NUMBERS = st.integers(0, 10**6)  # which configuration, and which inputs
TRANSPOSED = [((32, 48), (1, 0)), ((17, 35), (1, 0)), ((3, 40, 20), (0, 2, 1)), ((4, 6, 8), (1, 0, 2))]
FEW = settings(max_examples=12, deadline=None)  # each is compiled
QUICK = Effort(budget_s=0.005, min_samples=3, max_samples=6)
NAMES = ("packed", "direct", "pairs", "amx", "vnni")
PACKED, DIRECT, PAIRS, AMX, VNNI = (f"contraction_cpu_{name}" for name in NAMES)
FORMS = {PACKED: ("one", "pairs"), DIRECT: ("batch",)}  # else all
FIRST_SIZES = [((1, 5, 3), 0), ((16, 176, 64), 0), ((128, 1024, 512), 0)]  # and a batch
FIRST_SIZES += [((700, 300, 700), 3), ((2000, 3, 33), 3)]


def drawn_script(problem: TextProblem, strategy: str, number: int, processor: Machine) -> str:
    file = load_space_file(default_space_file())
    variables = variables_of(problem, processor, threads=1)
    able = spaces(choose((), file), file, problem, processor.isa, variables)
    feasible = FeasibleSet.of(tuple(space for space in able if space.strategy == strategy))
    candidate = feasible.candidate(number % feasible.rows)
    return Binder((load_strategy(strategy),), problem, variables, threads=1).bind(candidate).text


def require_right(kind: str, text: str, strategy: str, number: int, processor: Machine | None = None) -> None:
    """Compiles, runs and compares; for another ``processor`` with tiles and dot products as vectors."""
    problem = as_problem(kind, text)
    script = drawn_script(problem, strategy, number, processor or HERE)
    error = error_of(problem.text, script, np.random.default_rng(number), emulates=processor is not None)
    assert error <= 1, (problem.key, script)


COMPARED = [(PACKED, "f32"), (DIRECT, "f32"), (PAIRS, "bf16"), (AMX, "bf16"), (VNNI, "i8"), (AMX, "i8")]


def test_every_contraction_strategy_is_compared_with_a_reference() -> None:
    file = load_space_file(default_space_file())
    names = {strategy.name for strategy in file.strategies if strategy.name.startswith("contraction_")}
    compared = {strategy for strategy, _ in COMPARED} | {MATRICES}  # products of small matrices, below
    assert names == compared, "a new one needs a line in COMPARED"


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "element"), COMPARED)
@settings(max_examples=8, deadline=None)
@given(THREE_SIZES, NUMBERS, NUMBERS, st.integers(0, 2))
def test_contractions_are_right(
    strategy: str, element: str, sizes: Sizes, epilogue: int, number: int, form: int
) -> None:
    epilogues = byte_texts.NAMES if element == "i8" else texts.EPILOGUES
    forms = FORMS.get(strategy, ("one", "pairs", "batch"))
    text = contraction(sizes, epilogues[epilogue % len(epilogues)], forms[form % len(forms)], element)
    has_tiles = HERE.has_amx_bf16 and element == "bf16"
    is_emulated = strategy == VNNI or (strategy == AMX and not has_tiles)
    require_right("contraction", text, strategy, number, EMULATED if is_emulated else None)


@pytest.mark.skipif(HERE.isa == NEON, reason="no processor of x86-64")
@settings(max_examples=6, deadline=None)  # each is compiled
@given(THREE_SIZES, st.sampled_from(byte_texts.NAMES), st.sampled_from(["one", "pairs", "batch"]), NUMBERS)
def test_dot_products_of_bytes_are_right(sizes: Sizes, epilogue: str, form: str, number: int) -> None:
    require_right("contraction", contraction(sizes, epilogue, form, "i8"), VNNI, number)


UNARY = ("math.tanh %x0", "arith.mulf %x0, %x0", "math.exp %x0")


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("text", "strategy", "number", "processor"),
    [
        (contraction((13, 37, 29), "bias_relu", "one", "f64"), PACKED, 5, None),
        (contraction((13, 37, 29), "bias_relu", "batch", "f64"), DIRECT, 5, None),
        (contraction((17, 40, 35), "bias_relu", "one", "bf16"), AMX, 7, EMULATED),
        (contraction((17, 40, 35), "none", "one", "bf16"), AMX, 7, EMULATED),
        (contraction((17, 43, 35), "columns", "one", "i8"), VNNI, 3, AVX2),
        (contraction((17, 43, 35), "columns", "pairs", "i8"), VNNI, 3, replace(AVX2, has_vnni=False)),
        *((texts.elementwise((3, 77), operation, "bf16"), "elementwise_cpu", 1, None) for operation in UNARY),
        *((texts.elementwise((3, 77), operation, "f16"), "elementwise_cpu", 1, AVX2) for operation in UNARY),
        (texts.transpose((17, 35), (1, 0), "f16"), "elementwise_cpu", 0, AVX2),
        (texts.transpose((32, 48), (1, 0), "bf16"), "elementwise_cpu", 0, None),
        (texts.transpose((17, 35), (1, 0), "bf16"), "elementwise_cpu", 0, None),
    ],
)
def test_other_types_are_right(text: str, strategy: str, number: int, processor: Machine | None) -> None:
    require_right(strategy.partition("_")[0], text, strategy, number, processor)


@pytest.mark.parametrize(
    ("sizes", "element", "rows", "columns"),
    [
        ((128, 1024, 512), "f32", 6, 16),
        ((4, 1024, 512), "f32", 4, 16),
        ((2, 1024, 512), "f32", 2, 32),
        ((1, 1024, 512), "f32", 1, 64),
        ((128, 8, 512), "f32", 12, 8),
        ((128, 1024, 512), "f64", 6, 8),
        ((128, 1024, 512), "bf16", 4, 16),
    ],
)
@pytest.mark.parametrize("batch", [0, 3])
def test_the_first_configuration_of_a_processor_with_16_registers_shares_them(
    sizes: Sizes, element: str, rows: int, columns: int, batch: int
) -> None:
    sums = "f64" if element == "f64" else "f32"
    text = texts.product(*sizes, "bias", batch=batch, element=element, sums=sums)
    problem = as_problem("contraction", text)
    processor = replace(AVX2, has_amx_bf16=False, has_bf16=False)
    knobs = dict(present(first_configuration(problem, processor))[0].choices)
    if batch and rows == 1:
        columns = 96  # of B where it lies
    # at most 12 registers of sums; of bf16 8, next to what pairs are extended to
    assert (knobs["tile_m"], knobs.get("panel", knobs.get("tile_n"))) == (rows, columns)


@pytest.mark.parametrize(
    ("element", "strategy", "counts"),
    [
        ("f32", "contraction_cpu_packed", (1, 2, 3, 4, 5, 8, 16, 128)),
        ("bf16", PAIRS, (1, 2, 3, 8, 16, 128)),
    ],
)
def test_initial_configurations_of_few_and_many_rows_pack_a_weight_alike(
    element: str, strategy: str, counts: tuple[int, ...]
) -> None:
    processor = replace(EMULATED, has_amx_bf16=False, has_bf16=True)
    columns = set()
    for rows in counts:
        text = texts.product(rows, 1024, 512, element=element, sums="f32")
        candidate, *_ = present(first_configuration(as_problem("contraction", text), processor))
        knobs = dict(candidate.choices)
        assert candidate.strategy == strategy
        columns.add(knobs.get("panel", knobs.get("tile_n")))
    assert columns == {64}


@pytest.mark.parametrize(("sizes", "batch"), FIRST_SIZES)
@pytest.mark.parametrize("has", ["amx", "bf16", "slow bf16", "neither", "avx2"])
def test_each_processor_has_a_first_configuration_for_bf16(sizes: Sizes, batch: int, has: str) -> None:
    text = texts.product(*sizes, "bias", batch=batch, element="bf16", sums="f32")
    processor = AVX2 if has == "avx2" else EMULATED
    name = INTEL if has == "slow bf16" else "Zen 4 (family 25 model 17)"
    has_bf16 = has in ("amx", "bf16", "slow bf16")
    processor = replace(processor, name=name, has_amx_bf16=has == "amx", has_bf16=has_bf16)
    candidate, *_ = present(first_configuration(as_problem("contraction", text), processor))
    assert candidate.strategy == (AMX if has == "amx" else PAIRS)
    if has != "amx":
        assert dict(candidate.choices)["dots"] == (has == "bf16")


OF_MATRICES = replace(
    EMULATED,
    isa="neon",
    has_amx_bf16=False,
    has_amx_int8=False,
    has_dotprod=True,
    has_i8mm=True,
    has_arm_bf16=True,
)
MATRICES = "contraction_cpu_matrices"
OF_SMALL_MATRICES = {
    "i8": byte_texts.product(17, 40, 35, "columns"),
    "i8 pairs": byte_texts.product(6, 20, 37, "scale", pairs=True),
    "i8 batch": byte_texts.product(9, 33, 16, batch=2),
    "bf16": contraction((17, 40, 35), "bias_relu", "one", "bf16"),
    "bf16 pairs": contraction((5, 31, 18), "bias_relu", "pairs", "bf16"),
}


@pytest.mark.parametrize("number", [0, 1234])
@pytest.mark.parametrize("text", OF_SMALL_MATRICES.values(), ids=OF_SMALL_MATRICES)
def test_products_of_small_matrices_compute_fusions(text: str, number: int) -> None:
    candidate, *_ = present(first_configuration(as_problem("contraction", text), OF_MATRICES))
    assert candidate.strategy == MATRICES
    require_right("contraction", text, MATRICES, number, OF_MATRICES)


@pytest.mark.parametrize(("element", "strategy"), [("i8", VNNI), ("bf16", PAIRS)])
def test_a_single_row_is_not_multiplied_by_small_matrices(element: str, strategy: str) -> None:
    if element == "i8":
        text = byte_texts.product(1, 40, 37)
    else:
        text = texts.product(1, 40, 37, "bias", element="bf16", sums="f32")
    candidate, *_ = present(first_configuration(as_problem("contraction", text), OF_MATRICES))
    assert candidate.strategy == strategy


@pytest.mark.parametrize(
    ("rows", "bits", "fast", "slow"),
    [
        (1, 4, "pairs", "singles"),
        (1, 8, "singles", "singles"),
        (8, 8, "pairs", "singles"),
        (128, 4, "pairs", "scaled"),
        (128, 8, "pairs", "scaled"),
    ],
)
def test_weights_of_few_bits_become_what_the_processor_multiplies_fastest(
    rows: int, bits: int, fast: str, slow: str
) -> None:
    problem = quantized_problem((rows, 256, 128), "bf16", WeightFormat(bits, 32, scale_dtype="bf16"))
    for name, scheme in (("Zen 4 (family 25 model 17)", fast), (INTEL, slow)):
        processor = replace(EMULATED, name=name, has_amx_bf16=False, has_amx_int8=False, has_bf16=True)
        candidate, *_ = present(first_configuration(problem, processor))
        assert dict(candidate.choices)["scheme"] == scheme


def emulated_machine_of(has: str) -> Machine:
    """Returns a processor with AMX ("amx"), VNNI ("vnni", "avx-vnni"), vectors alone, or none of these."""
    processor = AVX2 if has in ("avx-vnni", "avx2") else EMULATED
    has_vnni = has in ("amx", "vnni", "avx-vnni")
    if has == "none":
        processor = replace(processor, isa="none")
    return replace(processor, has_amx_int8=has == "amx", has_vnni=has_vnni)


@pytest.mark.parametrize(("sizes", "batch"), FIRST_SIZES)
@pytest.mark.parametrize("has", ["amx", "vnni", "avx-vnni", "avx512", "avx2", "none"])
def test_each_processor_has_a_first_one_for_bytes_or_none(sizes: Sizes, batch: int, has: str) -> None:
    strategy = {"amx": AMX, "none": ""}.get(has, VNNI)
    problem = as_problem("contraction", byte_texts.product(*sizes, "scale", batch=batch))
    found = first_configuration(problem, emulated_machine_of(has))
    assert (found[0].strategy if found else "") == strategy


ROWS: list[Callable[[int, int], str]] = [texts.softmax, texts.row_sums, texts.row_means, texts.narrow_rows]
ROWS += [functools.partial(texts.layer_norm, statistics=each) for each in ("f64", "f32")]
ROWS += [functools.partial(texts.layer_norm, statistics="f32", has_mean=False)]


@pytest.mark.slow
@FEW
@given(SIZES, st.integers(1, 300), st.sampled_from(ROWS), st.integers(0, 9))
def test_rows_are_right(rows: int, columns: int, text: Callable[[int, int], str], number: int) -> None:
    require_right("rows", text(rows, columns), "rows_cpu", number)


@pytest.mark.slow
@FEW
@given(
    st.sampled_from(["softmax", "row_sums", "row_means", "narrow_rows"]),
    st.tuples(st.integers(1, 3), st.integers(2, 90), st.integers(2, 300)),  # sizes of 1 are folded before
    st.integers(0, 9),
)
def test_columns_are_right(part: str, sizes: Sizes, number: int) -> None:
    require_right("rows", texts.of_columns(part, *sizes), "rows_cpu", number)


@pytest.mark.slow
@FEW
@given(st.lists(st.integers(1, 40), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_transposes_are_right(shape: list[int], random: object) -> None:
    order = list(range(len(shape)))
    random.shuffle(order)  # type: ignore[attr-defined]
    require_right("elementwise", texts.transpose(tuple(shape), tuple(order)), "elementwise_cpu", 0)


@pytest.mark.slow
@FEW
@given(st.lists(st.integers(1, 70), min_size=1, max_size=3), st.integers(0, 9))
def test_elementwise_operations_are_right(shape: list[int], number: int) -> None:
    require_right("elementwise", texts.elementwise(tuple(shape)), "elementwise_cpu", number)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(1, 70), min_size=1, max_size=3), st.integers(0, 9))
@pytest.mark.parametrize("isa", ["avx512", "avx2"])
def test_numbers_are_quantized(isa: str, shape: list[int], number: int) -> None:
    problem = as_problem("elementwise", byte_texts.quantized(tuple(shape)))
    script = drawn_script(problem, "elementwise_cpu", number, replace(EMULATED, isa=isa))
    given = (np.random.default_rng(number).standard_normal(shape) * 3).astype(np.float32)
    assert error_of(problem.text, script, np.random.default_rng(0), [given]) <= 1


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("shape", "order"), TRANSPOSED)
@pytest.mark.parametrize("isa", ["avx512", "avx2"])
def test_bytes_are_transposed(isa: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    problem = as_problem("elementwise", texts.transpose(shape, order, "i8"))
    script = drawn_script(problem, "elementwise_cpu", 0, replace(EMULATED, isa=isa))
    assert error_of(problem.text, script, np.random.default_rng(0)) == 0


@pytest.mark.parametrize("script_of", ["schedule", "loops"])
def test_softmax_keeps_infinities_and_nan_as_numpy_does(script_of: str) -> None:
    problem = as_problem("rows", texts.softmax(5, 77))
    schedule = present(default_script(problem, HERE)).text
    rows = np.random.default_rng(1).standard_normal((5, 77)).astype(np.float32)
    rows[0, 3] = -np.inf  # a mask
    rows[1] = -np.inf  # nothing is left: NaN
    rows[2, 70] = np.nan
    rows[3, 76] = np.inf
    script = schedule if script_of == "schedule" else None
    assert error_of(problem.text, script, np.random.default_rng(0), [rows]) <= 1


def test_a_softmax_of_columns_keeps_infinities_and_nan() -> None:
    problem = as_problem("rows", texts.of_columns("softmax", 2, 5, 77))
    numbers = np.random.default_rng(1).standard_normal((2, 5, 77)).astype(np.float32)
    numbers[0, 3, 0], numbers[0, :, 76] = -np.inf, -np.inf
    numbers[1, 4, 40], numbers[1, 0, 41] = np.nan, np.inf
    script = present(default_script(problem, HERE)).text
    assert error_of(problem.text, script, np.random.default_rng(0), [numbers]) <= 1


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("epilogue", "element"), [("bias_relu", "f32"), ("gelu", "f32"), ("silu", "f32"), ("bias_relu", "bf16")]
)
def test_nan_infinities_and_zeros_of_padding_do_not_mix(epilogue: str, element: str) -> None:
    problem = as_problem("contraction", contraction((18, 33, 35), epilogue, "one", element))
    script, rng = present(default_script(problem, HERE)).text, np.random.default_rng(2)
    dtype = ml_dtypes.bfloat16 if element == "bf16" else np.float32
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((18, 35), (35, 33)))
    a[1, 34], a[3, 4] = np.nan, np.inf
    if element == "bf16":
        b[34, 32] = np.inf
    bias = [] if epilogue == "silu" else [rng.standard_normal(33).astype(np.float32)]
    assert error_of(problem.text, script, rng, [a, b, *bias]) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("epilogue", ["scale", "columns"])
def test_nan_and_infinities_of_scales_stay_in_their_columns(epilogue: str) -> None:
    problem = as_problem("contraction", byte_texts.product(18, 33, 35, epilogue))
    script = present(default_script(problem, emulated_machine_of("vnni"))).text
    rng = np.random.default_rng(2)
    inputs = list(draw_inputs(problem.text, rng))
    if epilogue == "columns":
        inputs[2][[1, 4]], inputs[3][[7, 32]] = [np.nan, np.inf], [np.nan, -np.inf]
        inputs[0][5] = 0  # infinity times 0
        assert np.isnan(evaluate(problem.text, tuple(inputs))[0].value).sum() > 18
    assert error_of(problem.text, script, rng, inputs, emulates=True) <= 1


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("contraction", texts.product(7, 9, 5, "gelu", pairs=True)),
        ("contraction", texts.product(3, 9, 5, batch=2)),
        ("rows", texts.layer_norm(4, 30)),
        ("elementwise", texts.transpose((3, 4, 5), (2, 0, 1))),
        ("elementwise", texts.elementwise((3, 5), "math.exp2 %x0")),
        *(("contraction", byte_texts.product(7, 9, 5, epilogue)) for epilogue in byte_texts.NAMES),
    ],
)
def test_without_a_script_a_fusion_is_loops(kind: str, text: str) -> None:
    assert error_of(as_problem(kind, text).text, None, np.random.default_rng(3)) <= 1


# Bytes: sums are exact, B comes packed and unsigned.


@pytest.mark.parametrize("extreme", [-128, 127])
def test_the_greatest_sums_are_exact(extreme: int) -> None:
    problem = as_problem("contraction", byte_texts.product(7, 20, 1027))
    a, b = np.full((7, 1027), extreme, np.int8), np.full((1027, 20), -128, np.int8)
    rng = np.random.default_rng(0)
    emulates = not HERE.has_vnni or HERE.isa != "avx512"
    for has in ("vnni", "avx2"):
        script = drawn_script(problem, VNNI, 1, emulated_machine_of(has))
        assert error_of(problem.text, script, rng, [a, b], emulates=emulates) == 0


@pytest.mark.drawn(2)
@pytest.mark.parametrize("k", [1, 3, 5, 64, 66])
@pytest.mark.parametrize(("has", "packed"), [("vnni", (4, True, 64)), ("avx2", (2, False, 16))])
def test_a_weight_comes_packed_in_fours_that_are_unsigned_or_in_pairs_as_they_are(
    has: str, packed: tuple[int, bool, int], k: int
) -> None:
    problem = as_problem("contraction", byte_texts.product(5, 70, k, "columns"))
    _, script, *_ = present(first_configuration(problem, emulated_machine_of(has)))
    _, first, *others = compiled(problem.text, script.text, emulates=True).packings
    packing = present(first)
    assert (packing.interleave, packing.unsigned, packing.depth) == packed
    assert others == [None, None]


@pytest.mark.slow
def test_a_b_that_is_no_weight_is_packed_inside() -> None:
    text = byte_texts.product(9, 33, 21, "columns").replace("33xi8> {tuner.weight}", "33xi8>")
    problem = as_problem("contraction", text)
    script = drawn_script(problem, VNNI, 11, EMULATED)
    assert compiled(problem.text, script, emulates=True).packings == (None,) * 4
    assert error_of(problem.text, script, np.random.default_rng(5), emulates=True) <= 1


@pytest.mark.parametrize(
    ("text", "add", "wrong", "element", "least"),
    [
        (texts.product(8, 40, 64, "bias"), "arith.addf %x0, %x1", "arith.subf %x0, %x1", "f32", 100),
        (byte_texts.product(8, 40, 64, "bias"), "arith.addi %x0", "arith.subi %x0", "i32", 1e300),
        (byte_texts.product(8, 40, 64, "bias"), "arith.addi %x0", "arith.addi %x1", "i32", 1e300),
    ],
    ids=["f32", "i32", "other"],  # of integers there is no tolerance
)
def test_a_wrong_epilogue_is_noticed(text: str, add: str, wrong: str, element: str, least: float) -> None:
    inputs = draw_inputs(text, np.random.default_rng(4))
    if element == "i32":
        inputs = (*inputs[:2], inputs[2] + 5)
    expected = evaluate(text, inputs)
    (found,) = run(compiled(text.replace(add, wrong), None), inputs, expected, element)
    assert worst_error(expected[0], found) > least


@pytest.mark.skipif(HERE.isa == NEON, reason="no processor of x86-64")
@pytest.mark.parametrize("epilogue", ["none", "columns", "requantized"])
def test_the_first_configuration_for_bytes_is_verified_and_timed(epilogue: str) -> None:
    problem = replace(as_problem("contraction", byte_texts.product(8, 40, 66, epilogue)), cache=WEIGHTS_COLD)
    cpu, rng, script = CpuEvaluator(1), np.random.default_rng(0), present(default_script(problem, HERE))
    loaded = cpu.load(problem, CpuCompiler().compile(problem, script))
    verdict = cpu.verify(problem, loaded, rng)
    assert verdict.elements == 8 * 40
    assert verdict.max_error <= (1 if epilogue == "columns" else 0) or epilogue == "requantized"
    assert cpu.measure(problem, loaded, QUICK, rng).median_s > 0
