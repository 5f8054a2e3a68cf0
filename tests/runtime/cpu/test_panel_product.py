import numpy as np
import pytest

from tuner.core.machine import Machine
from tuner.runtime.cpu.describe_host import describe_machine
from tuner.runtime.cpu.panel_product import INNER, ROWS, VALUE, VECTORS, PanelProduct
from tuner.runtime.cpu.thread_team import ThreadTeam

pytestmark = pytest.mark.mlir


@pytest.mark.parametrize("threads", [1, 2])
def test_each_thread_multiplies_panels_of_its_own(threads: int) -> None:
    machine = describe_machine()
    team = ThreadTeam(threads)
    product = PanelProduct(team, machine)
    product.repeat(1)
    team.close()
    assert len(product.arrays) == threads
    for _a, _b, c in product.arrays:
        assert c.shape == (ROWS * VECTORS * machine.vector_bytes // 4,)
        assert np.all(c == INNER * VALUE * VALUE)


def test_the_product_is_that_of_a_panel_of_a_and_one_of_b() -> None:
    machine: Machine = describe_machine()
    team = ThreadTeam(1)
    product = PanelProduct(team, machine)
    a, b, c = product.arrays[0]
    rng = np.random.default_rng(0)
    for array in (a, b):
        array[:] = rng.integers(-3, 4, array.shape)  # exact in f32
    product.repeat(1)
    team.close()
    columns = VECTORS * machine.vector_bytes // 4
    last_of_a = a.reshape(-1, INNER, ROWS)[-1]
    last_of_b = b.reshape(-1, INNER, columns)[-1]
    np.testing.assert_array_equal(c.reshape(ROWS, columns), last_of_a.T @ last_of_b)
