"""Constant and quantized weights: texts of formats, what is refused, keys and documents of problems."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.default_suite import ALL
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_documents import ProblemDocument
from tuner.core.quantization import WeightFormat
from tuner.core.serialization import decode, encode


@st.composite
def formats(draw: st.DrawFn) -> WeightFormat:
    group = draw(st.sampled_from((0, 32, 64, 128, 4096)))
    activations = draw(st.sampled_from(("", "row", *(["group"] if group else []))))
    scale = draw(st.sampled_from(("f16", "bf16", "f32")))
    return WeightFormat(draw(st.sampled_from((4, 8))), group, scale, draw(st.booleans()), activations)


@given(formats())
def test_a_format_is_read_from_its_text(weights: WeightFormat) -> None:
    assert WeightFormat.of_text(str(weights)) == weights
    assert Matmul(2, 3, 4096, weights=str(weights)).weights == str(weights)


PROBLEMS = [
    Matmul(1, 48, 64, weights="i4", group_size=32),
    Matmul(1, 48, 64, "bf16", output="bf16", weights="i8", group_size="channel", zero_points=True),
    Matmul(8, 48, 64, weights="i4", group_size=64, activations="i8", scale_dtype="f32", cache="weights-cold"),
    Matmul(8, 48, 64, "bf16", "nt", "bias_relu", "bf16", weights="constant"),
    Matmul(8, 48, 64, "i8", weights="constant", align=64),
]
KEYS = [
    "quantized_matmul 1x48x64 f32*i4-g32-f16 nt none",
    "quantized_matmul 1x48x64 bf16*i8-channel-f16-zp->bf16 nt none",
    "quantized_matmul 8x48x64 f32*i4-g64-f32-a8group nt none cache=weights-cold",
    "contraction 8x48x64 bf16*constant->bf16 nt bias_relu",
    "contraction 8x48x64 i8*constant nn none align=64",
]


@pytest.mark.parametrize(("problem", "key"), list(zip(PROBLEMS, KEYS, strict=True)), ids=KEYS)
def test_a_key_has_the_weights_and_a_document_brings_the_problem_back(problem: Problem, key: str) -> None:
    assert problem.key == key
    document = json.loads(json.dumps(encode(ProblemDocument.of(problem))))
    assert "group" not in document
    assert decode(ProblemDocument, document, "problem").problem == problem


def test_only_what_is_moved_and_multiplied_is_counted() -> None:
    quantized = Matmul(2, 48, 64, weights="i4", group_size=32, zero_points=True)
    assert quantized.flop == 2 * 2 * 48 * 64
    assert quantized.bytes == 4 * 2 * 64 + 48 * 64 // 2 + 48 * 2 * (2 + 1) + 4 * 2 * 48
    assert quantized.multiplied_dtype == "f32"
    assert Matmul(2, 48, 64, weights="i4", group_size=32, activations="i8").multiplied_dtype == "i8"
    constant = Matmul(2, 48, 64, weights="constant")
    assert (constant.flop, constant.bytes) == (Matmul(2, 48, 64).flop, Matmul(2, 48, 64).bytes)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"weights": "i5"}, r"^weights: found 'i5', allowed i4, i8"),
        ({"weights": "i4-g64"}, r"^scale dtype: found '', allowed f16, bf16, f32$"),
        ({"weights": "i4-g64-f16-x"}, r"^weights: found 'i4-g64-f16-x', allowed texts such as i4-g64-f16$"),
        (
            {"group_size": 48},
            r"^group size: found 48, allowed channel or multiples of 32, such as 32, 64, 128",
        ),
        ({"weights": "i8-g16-f16-a8row"}, r"^group size: found 16, allowed channel or multiples of 32"),
        ({"weights": "i8-g24-f16"}, r"^group size: found 24, allowed channel or multiples of 16"),
        ({"group_size": "half"}, r"^group size: found 'half', allowed 32, 64, 128, \.\.\. or channel$"),
        ({"group_size": 128}, r"^group size: found 128, which does not divide k = 64; allowed are divisors"),
        ({"scale_dtype": "f8"}, r"^scale dtype: found 'f8', allowed f16, bf16, f32$"),
        ({"activations": "i4"}, r"^activations: found 'i4', allowed i8, i8-group, i8-row"),
        (
            {"activations": "i8-group", "group_size": "channel"},
            r"^activations: found i8 by group with weights by channel, allowed by row$",
        ),
        ({"layout": "tn"}, r"^layout with quantized weights: found 'tn', allowed nn, nt"),
        ({"epilogue": "bias_relu"}, r"^epilogue with quantized weights: found 'bias_relu', allowed none"),
        ({"dtype": "f64"}, r"^dtype with quantized weights: found 'f64', allowed f32, bf16"),
        (
            {"weights": "", "zero_points": True},
            r"^activations and zero points: only of quantized weights; add weights",
        ),
        (
            {"weights": "constant", "dtype": "tf32"},
            r"^dtype with constant weights: found 'tf32', allowed f32",
        ),
        (
            {"weights": "constant", "layout": "tn"},
            r"^layout with constant weights: found 'tn', allowed nn, nt",
        ),
    ],
    ids=str,
)
def test_what_is_not_allowed_is_named(given_: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"weights": "i4", "group_size": 32}
    with pytest.raises(UsageError, match=message):
        Matmul(8, 48, 64, **(usual | given_))
