import threading

import numpy as np
import pytest

from tuner.core.interfaces import Script
from tuner.core.problem import Matmul
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.choice import default_script
from tuner.targets.cpu.callables import AddressCall, address_of
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator

PROBLEM = Matmul(9, 33, 17)


def test_addresses_are_those_of_the_first_element() -> None:
    array = np.ones((4, 6), np.float32)
    read_only = array.copy()
    read_only.flags.writeable = False
    for each in (array, array[1:], array.T, array[:, 1:], read_only, np.asfortranarray(array)):
        assert address_of(each) == each.ctypes.data


@pytest.mark.mlir
def test_threads_call_one_kernel_at_once() -> None:
    script = default_script(PROBLEM, describe_machine())
    assert isinstance(script, Script)
    call = AddressCall(CpuEvaluator(1).load(PROBLEM, CpuCompiler().compile(PROBLEM, script)))
    rng = np.random.default_rng(0)
    wrong: list[float] = []

    def repeat(seed: int) -> None:
        a = rng.standard_normal((9, 17)).astype(np.float32) * seed
        b = np.ones((17, 33), np.float32)
        for _ in range(200):
            c = np.full((9, 33), np.nan, np.float32)
            call(address_of(a), address_of(b), address_of(c))
            wrong.extend(np.abs(c - a @ b).max(initial=0.0, where=~np.isclose(c, a @ b, atol=1e-3)).ravel())

    threads = [threading.Thread(target=repeat, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 800
    assert max(wrong) == 0.0
