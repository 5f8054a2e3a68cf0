"""Fusions with a thread for each element: batches of matmuls, gathers, and what they refuse."""

import numpy as np
import pytest

from tests.programs.fusions.payload_text import PayloadText
from tests.programs.gpu_fusions.group_texts import ROWS_OF_A_TABLE
from tests.programs.gpu_fusions.simulated import compiled, require_close, simulated
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.fusions import LOOPS, Fusion
from tuner.core.gpu import DeviceError
from tuner.mlir.bindings import ir
from tuner.mlir.transform import new_context
from tuner.programs.gpu_fusions.element_kernels import fusion_function, launch_elements
from tuner.programs.run.device_function import DeviceFunction
from tuner.simulator.device.simulated_device import SimulatedDevice

pytestmark = pytest.mark.mlir

RNG = np.random.default_rng(9)
SHARED_SUM = text_beside(__file__, "SHARED_SUM")


def test_a_batch_of_matmuls_with_its_epilogue_is_one_launch() -> None:
    payload = PayloadText()
    a, b = payload.argument(3, 5, 7), payload.argument(3, 7, 6)
    text = payload.text(payload.unary("exp", payload.matmul(a, b)))
    given = [RNG.standard_normal(each.shape).astype(np.float32) for each in (a, b)]
    ran = simulated(text, *given)
    require_close(ran.results[0], np.exp(given[0].astype(np.float64) @ given[1]))
    assert ran.work.launches == 1


def test_rows_of_a_table_are_gathered() -> None:
    rows, table = np.array([8, 0, 3, 3, 1]), RNG.standard_normal((9, 8)).astype(np.float32)
    ran = simulated(ROWS_OF_A_TABLE, rows, table)
    np.testing.assert_array_equal(ran.results[0], table[rows])
    assert ran.work.launches == 1


def test_an_index_outside_of_the_table_is_an_error_of_the_call() -> None:
    program = DeviceFunction(compiled(ROWS_OF_A_TABLE).code, SimulatedDevice("sm_90"))
    with pytest.raises(DeviceError, match="an index into tensor<9x8xf32> is outside of dimension 0"):
        program(np.array([0, 1, 9, 0, 0]), np.zeros((9, 8), np.float32))


def test_a_sum_that_many_elements_need_is_refused() -> None:
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%a: memref<4x8xf32>, %b: memref<4x8xf32>) { return }")
        block = module.body.operations[0].regions[0].blocks[0]
        fusion = Fusion(LOOPS, SHARED_SUM, (), (), ())
        function = fusion_function(fusion, list(block.arguments), is_generalized=True)
        with (
            ir.InsertionPoint.at_block_begin(block),
            pytest.raises(CandidateError, match="several elements need the same sum"),
        ):
            launch_elements(function)
