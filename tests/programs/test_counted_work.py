"""What a program asks of a device, counted from its code: the same as when it runs."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tests.programs.gpu_fusions.group_texts import CONVOLUTION
from tests.programs.gpu_fusions.simulated import SIMULATOR, simulated, without_fusions
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_counted_is_what_a_call_does() -> None:
    softmax = (EXAMPLES / "softmax.mlir").read_text()
    for text, shapes in ((softmax, ((40, 96),)), (CONVOLUTION, ((1, 3, 7, 6), (4, 3, 3, 3), (4,), (4,)))):
        arguments = [np.ones(shape, np.float32) for shape in shapes]
        assert without_fusions(text) == simulated(text, *arguments, as_fusions=False).work


def test_launches_in_a_loop_are_not_counted() -> None:
    assert compiler_of(SIMULATOR).work_without_fusions(text_beside(__file__, "LOOP"), None) is None
