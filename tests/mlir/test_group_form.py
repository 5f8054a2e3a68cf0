"""A fusion's facts, its canonical text, and the form that schedules take."""

import pytest

from tests import group_texts as texts
from tuner.core.errors import CandidateError, Stage
from tuner.core.fusions import facts_of
from tuner.mlir.bindings import ir
from tuner.mlir.fusions import annotate_facts, parse_fusion, prepare

pytestmark = pytest.mark.mlir


def annotated(text: str) -> str:
    with ir.Context(), ir.Location.unknown():
        module = parse_fusion(text)
        annotate_facts(module)
        return str(module)


def prepared(text: str) -> str:
    with ir.Context(), ir.Location.unknown():
        module = parse_fusion(text)
        prepare(module)
        assert module.operation.verify()
        return str(module)


@pytest.mark.parametrize(
    ("text", "loops", "contractions", "weights", "transposed", "copy"),
    [
        (texts.product(8, 16, 4, "bias"), (8, 16), 1, 1, 0, 0),
        (texts.product(8, 16, 4, "silu", pairs=True), (8, 16), 2, 2, 0, 0),
        (texts.product(8, 16, 4), (8, 16), 1, 1, 0, 0),  # its root becomes a copy
        (texts.product(8, 16, 4, batch=3), (3, 8, 16), 1, 0, 0, 0),
        (texts.softmax(5, 7), (5, 7), 0, 0, 0, 0),
        (texts.row_sums(5, 7), (5, 7), 0, 0, 0, 0),
        (texts.transpose((3, 4, 5), (0, 2, 1)), (3, 5, 4), 0, 0, 2, 1),
        (texts.transpose((3, 4, 5), (1, 0, 2)), (4, 3, 5), 0, 0, 0, 1),
        (texts.elementwise((6, 7)), (6, 7), 0, 0, 0, 0),
    ],
)
def test_facts_of_a_fusion(
    text: str, loops: tuple[int, ...], contractions: int, weights: int, transposed: int, copy: int
) -> None:
    found = facts_of(annotated(text))
    assert (found.loops, found.contractions, found.weights) == (loops, contractions, weights)
    assert (found.transposed, found.copy) == (transposed, copy)


def test_bytes_are_those_of_all_arguments() -> None:
    assert facts_of(annotated(texts.product(8, 16, 4, "bias"))).bytes == 4 * (8 * 4 + 4 * 16 + 16 + 8 * 16)


def test_a_canonical_text_stays_as_it_is() -> None:
    once = annotated(texts.softmax(5, 7))
    assert annotated(once) == once
    assert annotated(texts.softmax(5, 7).replace("%most", "%renamed")) == once


def test_an_epilogue_of_several_operations_becomes_one() -> None:
    text = prepared(texts.softmax(5, 7))
    assert text.count("attrs =  {root}") == 1
    assert "outs(%0 : tensor<5x7xf32>) attrs =  {root}" in text  # the output's memory


def test_a_contraction_without_an_epilogue_gets_a_copy_as_its_root() -> None:
    text = prepared(texts.product(8, 16, 4))
    assert "linalg.matmul {contraction}" in text
    assert text.count("attrs =  {root}") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @other() { return }", "fusion: found no function @group"),
        ("func.func @group(", "fusion: "),
    ],
)
def test_what_is_no_fusion_is_refused(text: str, message: str) -> None:
    with ir.Context(), ir.Location.unknown(), pytest.raises(CandidateError, match=message) as caught:
        parse_fusion(text)
    assert caught.value.stage is Stage.BIND
