"""``attention_cpu``: attentions of any size compute what numpy computes, infinities and NaN included."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fusion_runs import as_problem, compiled, draw_inputs, error_of, run
from tests.mlir.attention_texts import MASKS, Attention
from tests.mlir.cpu.test_convolutions import AVX2, HERE, feasible, script_of
from tuner.core.machine import Machine
from tuner.core.problem_classes import TextProblem
from tuner.mlir.fusions.hidden_keys import attention_mask, visible_band, with_visible_band
from tuner.mlir.reference.fusion_reference import evaluate
from tuner.space.scripts.choice import first_configuration

SIZES = st.integers(1, 70)
SKIP = "tuner.skip_hidden_keys"


def problem_of(attention: Attention) -> TextProblem:
    return as_problem("attention", attention.text())


def first_script(attention: Attention, machine: Machine = HERE) -> str:
    found = first_configuration(problem_of(attention), machine)
    assert found is not None
    assert found[0].strategy == "attention_cpu"
    return found[1].text


def require(attention: Attention, script: str | None, rng: int = 0, inputs: Any = ()) -> None:
    assert error_of(problem_of(attention).text, script, np.random.default_rng(rng), inputs) <= 1


@st.composite
def attentions(draw: st.DrawFn) -> Attention:
    sizes = (draw(SIZES), draw(st.integers(17, 200)), draw(SIZES), draw(SIZES))
    mask, batch = draw(st.sampled_from(MASKS)), draw(st.integers(0, 3))
    return Attention(sizes, mask, batch, draw(st.booleans()), draw(st.sampled_from(("f32", "f64"))))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(attentions(), st.floats(0, 1, exclude_max=True))
def test_every_configuration_computes_the_attention(attention: Attention, place: float) -> None:
    problem = problem_of(attention)
    some = feasible(problem, HERE, "attention_cpu")
    require(attention, script_of(problem, some.candidate(int(place * some.rows)), HERE))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("sizes", [(1, 17, 1, 1), (7, 100, 20, 33), (49, 130, 16, 80), (97, 128, 64, 64)])
def test_the_first_configuration_computes_the_attention(sizes: tuple[int, int, int, int]) -> None:
    attention = Attention(sizes, batch=2, has_epilogue=True)
    require(attention, first_script(attention))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("keys", [128, 1000, 4096, 40000])
def test_every_first_configuration_has_scores_that_fit_the_cache(keys: int, element: str) -> None:
    attention = Attention((512, keys, 64, 64), batch=8, element=element)
    for processor in (AVX2, replace(AVX2, isa="avx512")):
        found = first_configuration(problem_of(attention), processor)
        assert found is not None
        knobs: dict[str, Any] = dict(found[0].choices)
        bytes_each = 4 if element == "f32" else 8
        assert knobs["block_m"] == 8 or 2 * knobs["block_m"] * keys * bytes_each <= processor.l2_bytes


@pytest.mark.slow
def test_the_scripts_of_avx2_compile() -> None:
    attention = Attention((50, 130, 20, 36), "hidden_rows", batch=2)
    require(attention, first_script(attention, AVX2))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("keys", [32, 40, 201])
@pytest.mark.parametrize("mask", ["bias", "hidden_rows"])
def test_masked_and_infinite_scores_are_those_of_numpy(mask: str, keys: int) -> None:
    """A row of which nothing is seen is NaN; with "hidden_rows" it is 0, as in PyTorch."""
    attention = Attention((9, keys, 4, 20), mask)
    rng = np.random.default_rng(1)
    q, k, v = (np.abs(rng.standard_normal(shape)).astype(np.float32) for shape in attention.shapes[:3])
    inputs = [q, k, np.zeros((9, keys), np.float32), v] if mask == "bias" else [q, k, v]
    if mask == "bias":
        inputs[2][np.triu_indices(9, 1)] = -np.inf  # seen: what came before
        inputs[2][4] = -np.inf
    q[1], q[2, 0], q[3] = -np.inf, np.nan, np.inf
    q[5:7], k[:, 7] = -np.inf, 0.5
    require(attention, first_script(attention), inputs=inputs)


def test_scores_are_in_buffers_of_a_block_of_rows_alone() -> None:
    """No number is kept for each pair of a query and a key: 512 x 384 of them would be allocated."""
    attention = Attention((512, 384, 8, 8))
    code = compiled(problem_of(attention).text, first_script(attention)).llvm_text
    assert any(f"llvm.mlir.constant({48 * 384} : {kind})" in code for kind in ("i64", "index"))
    assert str(512 * 384) not in code


def test_without_a_script_an_attention_is_loops() -> None:
    require(Attention((7, 20, 5, 6), "seen", batch=2), None, rng=3)


Masked = tuple[Attention, tuple[int, int], str]


@st.composite
def masked_attentions(draw: st.DrawFn) -> Masked:
    """Draws an attention, the first and the last key that a row sees, and which input has no number."""
    queries, keys = draw(SIZES), draw(st.integers(17, 200))
    first, last = draw(st.integers(-queries, 0)), draw(st.integers(0, keys))
    attention = Attention(
        (queries, max(keys, queries - 1 + first + 1), draw(SIZES), draw(SIZES)),
        draw(st.sampled_from(("bias", "bias_of_heads", "seen"))),
        draw(st.integers(1, 3)),
        draw(st.booleans()),
        draw(st.sampled_from(("f32", "f64"))),
    )
    return attention, (first, last), draw(st.sampled_from(("", "queries", "keys", "values", "large")))


def require_masked(masked: Masked, place: float) -> None:
    """Fails where skipping what is hidden changes a bit of the result."""
    attention, (first, last), where = masked
    text = problem_of(attention).text
    mask = attention_mask(text)
    assert mask is not None
    rng = np.random.default_rng(7)
    inputs = list(draw_inputs(text, rng))
    rows, keys = np.ogrid[: attention.sizes[0], : attention.sizes[1]]
    seen = np.broadcast_to((keys - rows >= first) & (keys - rows <= last), inputs[2].shape)
    hidden = inputs[2].dtype.type(0 if attention.mask == "seen" else -np.inf)
    inputs[2] = np.where(seen, 1 if attention.mask == "seen" else inputs[2], hidden).astype(inputs[2].dtype)
    number = {"": None, "queries": 0, "keys": 1, "values": 3, "large": 1}[where]
    if number is not None:
        each = inputs[number].reshape(-1)
        each[rng.integers(each.size)] = 3e36 if where == "large" else rng.choice([np.nan, np.inf, -np.inf])
    band = visible_band(mask, inputs[2])
    if band is None:
        return
    problem = as_problem("attention", with_visible_band(text, mask, band))
    some = feasible(problem, HERE, "attention_cpu")
    script = script_of(problem, some.candidate(int(place * some.rows)), HERE)
    whole = "".join(line for line in script.splitlines(keepends=True) if SKIP not in line)
    assert whole != script
    with np.errstate(all="ignore"):
        expected = evaluate(text, tuple(inputs))
    found, alike = (
        run(compiled(problem.text, each), inputs, expected, attention.element)[0] for each in (script, whole)
    )
    np.testing.assert_array_equal(found.view(np.uint8), alike.view(np.uint8))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(masked_attentions(), st.floats(0, 1, exclude_max=True))
def test_what_is_skipped_changes_no_bit_in_any_configuration(masked: Masked, place: float) -> None:
    require_masked(masked, place)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("where", ["", "values", "keys"])
@pytest.mark.parametrize(
    ("band", "sizes"), [((-70, 0), (70, 70)), ((-9, 30), (40, 71)), ((-39, 60), (40, 100))]
)
def test_what_is_skipped_changes_no_bit(where: str, band: tuple[int, int], sizes: tuple[int, int]) -> None:
    require_masked((Attention((*sizes, 5, 20), "bias", 2), band, where), 0.0)


def test_a_causal_attention_of_numbers_computes_what_numpy_computes() -> None:
    attention = Attention((100, 150, 12, 20), "seen", 2)
    text = problem_of(attention).text
    mask = attention_mask(text)
    assert mask is not None
    problem = as_problem("attention", with_visible_band(text, mask, (-99, 50)))
    found = first_configuration(problem, HERE)
    assert found is not None
    assert SKIP in found[1].text
    assert error_of(problem.text, found[1].text, np.random.default_rng(1)) <= 1
