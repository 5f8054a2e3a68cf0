"""A model that torch-mlir exports, as fusions on the simulated GPU."""

import pytest

from tests.programs.gpu_fusions.simulated import simulated, without_fusions

pytestmark = pytest.mark.mlir

NO_TORCH = "needs PyTorch: pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
pytest.importorskip("torch", reason=NO_TORCH)
corpus = pytest.importorskip("tests.programs.exports.corpus")
comparison = pytest.importorskip("tests.programs.exports.comparison")


@pytest.mark.slow
def test_an_encoder_is_ten_launches() -> None:
    made, text = corpus.built("encoder"), corpus.text_of("encoder")
    arguments = [comparison.array_of(each) for each in made.inputs]
    ran = simulated(text, *arguments)
    comparison.require_equal(ran.results, made.expected, corpus.EXPORTS["encoder"].tolerance)
    before = without_fusions(text)
    assert (len(ran.compiled.code.fusions), ran.work.launches) == (10, 10)
    assert before.launches == 70
    assert ran.work.copied_in_bytes == sum(each.nbytes for each in arguments) < before.copied_in_bytes
