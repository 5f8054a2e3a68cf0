"""Loops over the matrices of a batch: each is called once, where its matrices lie."""

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.core.interfaces import Partition
from tuner.mlir.cpu.lowering import with_batch_loops
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

pytestmark = pytest.mark.mlir

ADD_ONE = text_beside(__file__, "ADD_ONE")


def test_each_matrix_is_visited_once() -> None:
    partitions = (Partition("matmul", 0, 0, 1, 2, 1, 4), Partition("matmul", 0, 0, 1, 2, 5, 1))
    text = with_batch_loops(ADD_ONE, partitions, (8, 0, 4))
    code = JittedModule(text, ("matmul", "matmul_x4"))
    a, b, c = np.arange(10, dtype=np.float32), np.full(1, 100, np.float32), np.zeros(6, np.float32)
    arguments = PackedArguments(a.ctypes.data, b.ctypes.data, c.ctypes.data)
    CompiledFunction(code.addresses["matmul_x4"])(arguments)
    assert c.tolist() == [100, 102, 104, 106, 0, 0]
    CompiledFunction(code.addresses["matmul"])(arguments)
    assert c.tolist() == [200, 102, 104, 106, 0, 0]


def test_code_without_a_batch_stays_as_it_is() -> None:
    assert with_batch_loops(ADD_ONE, (Partition("matmul", 0, 0, 1, 2),), (8, 0, 4)) is ADD_ONE
