"""Payloads become fusions: how many, of which kinds, what is refused; drawn ones compute the same."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.default_suite import ALL
from tests.models.file_check import cases
from tests.models.fusions.host_execution import FusedFunction, formed
from tests.models.fusions.payload_text import PayloadText, Tensor, with_weights
from tests.models.lowering.compiled import cpu_function
from tests.models.payload_runs import listed
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError
from tuner.core.fusions import RESULT, TEMPORARY, WEIGHT
from tuner.mlir import passes, transform
from tuner.mlir.bindings import ir
from tuner.models.execution import host_function
from tuner.models.fusions import outlining
from tuner.models.fusions.hoisting import init_parts
from tuner.models.fusions.payload import NotFused
from tuner.models.fusions.pipeline import fuse_program
from tuner.models.weight_code import InitTask, initialized_parts

pytestmark = pytest.mark.mlir
RNG = np.random.default_rng(0)
SHAPES = ((6, (2, 3)), (6, (2, 3)), (2, (2,)))
INIT = text_beside(__file__, "INIT")


def weight(payload: PayloadText, *shape: int, rng: np.random.Generator = RNG) -> Tensor:
    return payload.weight(rng.standard_normal(shape) / shape[-1])


def linear(payload: PayloadText, value: Tensor, size: int) -> Tensor:
    """A linear layer as torch-mlir writes it: its weights are transposed at each call."""
    turned = payload.transpose(weight(payload, size, value.shape[-1]), (1, 0))
    return payload.binary("add", payload.matmul(value, turned), weight(payload, size))


def mlp() -> str:
    payload = PayloadText()
    hidden = payload.unary("relu", linear(payload, payload.argument(4, 6), 8))
    return payload.text(linear(payload, hidden, 8))


def gated() -> str:
    payload = PayloadText()
    x = payload.argument(4, 6)
    gate, up = (payload.matmul(x, weight(payload, 6, 8)) for _ in range(2))
    return payload.text(payload.binary("mul", payload.unary("tanh", gate), up))


CASES = {
    "mlp": "contraction contraction",
    "gated": "contraction",
    "layer_norm": "rows",
    "broadcast_b": "contraction",
    "attention": "contraction elementwise contraction rows contraction contraction",
    "convolution": "elementwise convolution convolution",
    "reshaped_after_a_matmul": "contraction",
    "one_b_for_a_batch": "contraction",
    "transposed_b": "contraction",
    "moved": " ".join(["elementwise"] * 5),
    "overwritten": " ".join(["elementwise"] * 10),
}


def text_of(name: str) -> str:
    built = {"mlp": mlp, "gated": gated}
    return built[name]() if name in built else with_weights(text_beside(__file__, name))


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("name", CASES)
def test_a_payload_becomes_the_expected_kinds_of_fusions(name: str) -> None:
    assert " ".join(fusion.kind for fusion in formed(text_of(name)).program.fusions) == CASES[name]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CASES)
def test_fusions_compute_what_the_payload_computes(name: str) -> None:
    require_same_results(text_of(name), RNG, tolerance=1e-6)


def require_same_results(text: str, rng: np.random.Generator, tolerance: float) -> None:
    program = formed(text)
    whole, fusions = cpu_function(text), FusedFunction(program)
    for _ in range(2):  # paddings must be there at the second call, too
        arguments = [rng.standard_normal(each.shape).astype(np.float32) for each in program.program.arguments]
        for one, other in zip(fusions(*arguments), listed(whole(*arguments)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=tolerance)


def test_the_text_has_no_weights_and_gate_and_up_are_one_fusion_of_two_contractions() -> None:
    program = formed(mlp())
    (last,) = program.program.fusions[-1].outputs
    assert program.program.buffers[last.buffer].owner == RESULT
    assert [buffer.owner for buffer in program.program.buffers].count(TEMPORARY) == 1
    assert sorted(array.shape for array in program.weights) == [(8,), (8,), (8, 6), (8, 8)]
    assert "linalg.matmul" not in program.program.init
    assert program.program.init.count("linalg.generic") == 2
    texts = [program.program.init, *(fusion.text for fusion in program.program.fusions)]
    assert not any("dense_resource" in text for text in texts)
    program = formed(gated())
    assert program.program.init == ""
    assert [array.shape for array in program.weights] == [(6, 8), (6, 8)]
    (fusion,) = program.program.fusions
    marks = ("linalg.matmul {contraction}", "{tuner.weight}", "{root}")
    assert [fusion.text.count(mark) for mark in marks] == [2, 2, 1]
    assert fusion.ops == ("linalg.matmul", "linalg.matmul", "math.tanh", "arith.mulf")


def initialized(init: str, constants: Any) -> list[Any]:
    """Returns the weight buffers that the code ``init`` computes of constants."""
    buffers: dict[int, Any] = {}
    for part in initialized_parts(InitTask(init).compile(), constants):
        buffers |= part.arrays()
    return [buffers[number] for number in range(len(buffers))]


def test_what_weights_decide_is_computed_in_parts_whose_results_are_in_order() -> None:
    with transform.new_context(), ir.Location.unknown():
        first, kept, both = init_parts(INIT)
        again, *_ = init_parts(INIT.replace("@init(%a", "@init(%x").replace("ins(%a", "ins(%x"))
    parts = [(part.inputs, part.results) for part in (first, kept, both)]
    assert parts == [((0,), (0,)), ((2,), (1,)), ((1,), (2, 3))]
    assert kept.text == ""
    assert again.text == first.text  # compiled once
    assert "absf" not in first.text
    assert both.text.count("linalg.transpose") == 1
    arrays = tuple(np.arange(size, dtype=np.float32).reshape(shape) - 2 for size, shape in SHAPES)
    a, b, c = arrays
    for found, expected in zip(initialized(INIT, arrays), (a.T, c, b.T, abs(b.T)), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_transposed_weight_is_a_view_that_is_packed_without_code() -> None:
    made = formed(mlp())
    with transform.new_context(), ir.Location.unknown():
        parts = init_parts(made.program.init)
    assert {(part.text, part.order) for part in parts} == {("", (1, 0)), ("", ())}
    found = initialized(made.program.init, made.weights)
    for part in parts:
        (number,) = part.inputs
        constant = made.weights[number]
        assert found[part.results[0]].flags.c_contiguous == (not part.order)
        np.testing.assert_array_equal(found[part.results[0]], constant.T if part.order else constant)


def test_equal_layers_are_written_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pipelines: list[str] = []
    run_passes = passes.run_passes

    def counted(module: ir.Module, pipeline: str) -> None:
        pipelines.append(pipeline)
        run_passes(module, pipeline)

    monkeypatch.setattr(outlining, "run_passes", counted)
    counts = []
    for layers in (2, 6):
        pipelines.clear()
        payload = PayloadText()
        hidden = payload.argument(4, 8)
        for _ in range(layers):
            hidden = payload.unary("relu", linear(payload, hidden, 8))
        made = formed(payload.text(hidden))
        assert len(made.program.fusions) == layers
        assert len({fusion.text for fusion in made.program.fusions}) == 1
        counts.append(len(pipelines))
    assert counts[0] == counts[1] > 0


def test_a_concatenation_of_weights_is_computed_once() -> None:
    made = formed(with_weights(text_beside(__file__, "JOINED_WEIGHTS")))
    (fusion,) = made.program.fusions
    assert fusion.ops == ("linalg.matmul",)
    assert "tensor.concat" in made.program.init
    x = np.eye(4, dtype=np.float32)
    (found,) = FusedFunction(made)(x)
    np.testing.assert_array_equal(found, np.concatenate(made.weights, 1))


def test_heads_are_views_and_a_producer_writes_inside_of_the_padding_of_its_reader() -> None:
    program = formed(text_of("attention")).program
    assert [fusion.ops for fusion in program.fusions].count(("linalg.transpose",)) == 1
    queries, _ = program.fusions[2].inputs
    assert queries.strides == (4, 24, 1)
    (mixed,) = program.fusions[4].outputs
    assert (mixed.type.shape, mixed.strides) == ((2, 5, 4), (4, 8, 1))
    program = formed(text_of("convolution")).program
    padded = [number for number, each in enumerate(program.buffers) if each.padding is not None]
    assert [program.buffers[number].padding for number in padded] == [0.0, 0.0]
    (inside,) = program.fusions[1].outputs
    assert (inside.buffer in padded, inside.offset) == (True, 9)
    assert program.fusions[2].inputs[0].buffer in padded


def test_a_number_for_each_row_is_computed_once_and_what_no_schedule_is_for_in_loops() -> None:
    (fusion,) = formed(text_of("layer_norm")).program.fusions
    assert fusion.text.count("math.exp") == 1
    power = next(line for line in fusion.text.splitlines() if "math.exp" in line)
    generic = fusion.text[: fusion.text.index(power)].rsplit("linalg.generic", 1)[1]
    assert 'iterator_types = ["parallel"]' in generic
    program = formed(text_beside(__file__, "GATHER"))
    (fusion,) = program.program.fusions
    assert (fusion.kind, fusion.reason) == ("loops", "no schedule is for linalg.index in a linalg.generic")
    rows, table = np.array([8, 0, 3]), RNG.standard_normal((9, 4)).astype(np.float32)
    np.testing.assert_array_equal(FusedFunction(program)(rows, table)[0], table[rows])


def test_integers_of_64_bits_are_fused() -> None:
    program = formed(text_beside(__file__, "BUCKETS"))
    (fusion,) = program.program.fusions
    assert (fusion.kind, fusion.reason) == ("elementwise", "")
    x, y = RNG.integers(-(2**40), 2**40, (2, 3, 5))
    x[0, 0], y[0, 0] = -(2**63), 1  # wraps
    (found,) = FusedFunction(program)(x, y)
    np.testing.assert_array_equal(found, np.where(x - y < 0, -1, (x - y).astype(np.int32)))


def test_identical_fusions_have_one_text_and_indices_that_nobody_uses_are_dropped() -> None:
    payload = PayloadText()
    x = payload.unary("tanh", payload.sliced(payload.argument(9, 8), [1, 0], [4, 8]))
    programs = [formed(text).program for text in (mlp(), mlp(), payload.text(x, linear(payload, x, 8)))]
    first, again, other = ([fusion.text for fusion in program.fusions] for program in programs)
    assert first == again
    assert first[1] == other[-1]
    program = formed(text_beside(__file__, "MAXIMUM"))
    (fusion,) = program.program.fusions
    assert fusion.kind == "rows"
    assert "i64" not in fusion.text
    given = RNG.standard_normal((3, 5)).astype(np.float32)
    np.testing.assert_array_equal(FusedFunction(program)(given)[0], given.max(1))


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "bf16", "i64", "i32", "i8", "i1"])
def test_weights_of_each_element_type_are_read(element: str) -> None:
    numbers = {"f": "1.0, -2.5, 3.0", "b": "1.0, -2.5, 3.0", "i": "1, -2, 3"}[element[0]]
    numbers = "true, false, true" if element == "i1" else numbers
    kind = f"tensor<3x{element}>"
    text = f"{{ %w = arith.constant dense<[{numbers}]> : {kind} return %x, %w : {kind}, {kind} }}"
    program = formed(f"func.func @main(%x: {kind}) -> ({kind}, {kind}) {text}")
    (found,) = program.weights
    wanted = [True, False, True] if element == "i1" else [float(each) for each in numbers.split(",")]
    np.testing.assert_array_equal(found.astype(np.float64), wanted)
    assert [buffer.type.element for buffer in program.program.buffers if buffer.owner == WEIGHT] == [element]


@pytest.mark.parametrize(("options", "text"), cases(text_beside(__file__, "REFUSED")))
def test_a_program_that_must_stay_whole_is_refused_with_reason(options: dict[str, str], text: str) -> None:
    refused = fuse_program(text)
    assert isinstance(refused, NotFused)
    assert re.search(options["refused"], refused.reason)
    assert "\n" not in refused.reason


def test_constants_without_data_and_text_that_does_not_parse_are_refused() -> None:
    with pytest.raises(CandidateError, match="dense_resource<w> has no data after the module"):
        fuse_program(text_beside(__file__, "WITHOUT_DATA"))
    with pytest.raises(CandidateError, match="payload: "):
        fuse_program("func.func @main() {")


def test_a_fill_by_a_number_of_an_argument_is_computed_at_each_call() -> None:
    function = FusedFunction(formed(text_beside(__file__, "FILLED")))
    rng = np.random.default_rng(0)
    for _ in range(2):
        x, y = rng.standard_normal((4, 8), np.float32), rng.standard_normal((8, 4), np.float32)
        filled, added, product, _ = function(x, y)
        assert np.array_equal(filled, np.full((4, 8), x[0, 0]))
        assert np.array_equal(added, np.tile(x[0, 0] + np.arange(1, 9, dtype=np.float32), (4, 1)))
        assert np.allclose(product, x @ y + x[0, 0], atol=1e-5)


def test_a_convolution_is_added_to_the_argument_that_it_starts_from() -> None:
    rng = np.random.default_rng(0)
    x, w, bias = (rng.standard_normal(shape, np.float32) for shape in ((2, 3, 10), (4, 3, 3), (2, 4, 8)))
    kept = bias.copy()
    compiled = compiler_of(TargetName("cpu")).compile(text_beside(__file__, "STARTED"), as_fusions=True)
    assert compiled.image is not None
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, 2)  # batch, channel, place, window
    expected = bias + np.einsum("bcpw,fcw->bfp", windows, w)
    np.testing.assert_allclose(host_function(compiled)(x, w, bias), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(bias, kept)


SIZES = st.sampled_from([1, 2, 3, 4, 6])
RNGS = st.integers(0, 9).map(np.random.default_rng)


@st.composite
def programs(draw: Any) -> str:
    """A program of up to eight steps, each on one of the last values, with up to three results.

    Where a step cannot be applied, tanh is.
    """
    payload = PayloadText()
    values = [payload.argument(draw(SIZES), draw(SIZES))]
    for _ in range(draw(st.integers(1, 8))):
        (ranks, apply), value = draw(st.sampled_from(STEPS)), draw(st.sampled_from(values[-3:]))
        is_applied = len(value.shape) in ranks
        values.append(apply(draw, payload, value, values) if is_applied else payload.unary("tanh", value))
    results = draw(st.lists(st.sampled_from(values), min_size=0, max_size=2))
    return payload.text(values[-1], *results)


def _padded(draw: Any, payload: PayloadText, value: Tensor, _: list[Tensor]) -> Tensor:
    paddings = st.lists(st.integers(0, 2), min_size=len(value.shape), max_size=len(value.shape))
    return payload.padded(value, draw(paddings), draw(paddings))


def _concatenated(draw: Any, payload: PayloadText, value: Tensor, values: list[Tensor]) -> Tensor:
    others = [each for each in values if each.shape == value.shape]
    dimension = draw(st.integers(0, len(value.shape) - 1))
    return payload.concatenated([value, draw(st.sampled_from(others))], dimension)


def _inserted(draw: Any, payload: PayloadText, value: Tensor, _: list[Tensor]) -> Tensor:
    if draw(st.booleans()):
        into = payload.filled([size + 1 for size in value.shape], "%zero")
    else:
        into = payload.padded(value, [0] * len(value.shape), [1] * len(value.shape))
    return payload.inserted(value, into, [draw(st.integers(0, 1)) for _ in value.shape])


def _overwritten(draw: Any, payload: PayloadText, value: Tensor, values: list[Tensor]) -> Tensor:
    """Another value with a part of this one in it; later steps may read the other value as it was."""
    rank = len(value.shape)
    of_rank = (each for each in values if len(each.shape) == rank)
    larger = [each for each in of_rank if all(a >= b for a, b in zip(each.shape, value.shape, strict=True))]
    into = draw(st.sampled_from(larger))
    room = zip(into.shape, value.shape, strict=True)
    return payload.inserted(value, into, [draw(st.integers(0, size - part)) for size, part in room])


def _linear(draw: Any, payload: PayloadText, value: Tensor, _: list[Tensor]) -> Tensor:
    weights = weight(payload, draw(SIZES), value.shape[1], rng=draw(RNGS))
    return payload.matmul(value, payload.transpose(weights, (1, 0)))


def _expanded(_: Any, payload: PayloadText, value: Tensor, __: list[Tensor]) -> Tensor:
    first, *others = value.shape
    is_even = first % 2 == 0
    return payload.reshape(value, (2, first // 2, *others)) if is_even else payload.unary("tanh", value)


def _sliced(_: Any, payload: PayloadText, value: Tensor, __: list[Tensor]) -> Tensor:
    *others, last = value.shape
    sizes, offsets = [*others, last - 1], [0] * len(others) + [1]
    return payload.sliced(value, offsets, sizes) if last > 1 else payload.unary("tanh", value)


Apply = Callable[[Any, PayloadText, Tensor, list[Tensor]], Tensor]
ANY, ROWS, MATRICES = range(9), range(1, 9), range(2, 9)  # ranks
STEPS: tuple[tuple[Sequence[int], Apply], ...] = (  # the ranks of its values, and what it does
    ((2,), _linear),
    (ROWS, lambda draw, it, value, _: it.binary("add", value, weight(it, value.shape[-1], rng=draw(RNGS)))),
    (ANY, lambda _, it, value, __: it.unary("relu", value)),
    (ANY, lambda _, it, value, __: it.unary("tanh", value)),
    (ROWS, lambda _, it, value, __: it.softmax(value)),
    (MATRICES, lambda draw, it, x, _: it.transpose(x, draw(st.permutations(range(len(x.shape)))))),
    (ROWS, lambda _, it, value, __: it.by_row("sub", value, it.unary("tanh", it.reduced("sum", value)))),
    (MATRICES, lambda _, it, value, __: it.reshape(value, (math.prod(value.shape),))),
    ((1, 2, 3), _expanded),
    (ROWS, _sliced),
    (ROWS, _padded),
    (ANY, lambda _, it, value, __: it.binary("add", value, it.unary("square", value))),
    (ROWS, _concatenated),
    (ROWS, _inserted),
    (ROWS, _overwritten),
    ((3,), lambda _, it, value, __: it.matmul(value, it.transpose(value, (0, 2, 1)))),
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 9))
@pytest.mark.slow
def test_fusions_compute_what_the_whole_program_computes(text: str, seed: int) -> None:
    require_same_results(text, np.random.default_rng(seed), tolerance=1e-5)
