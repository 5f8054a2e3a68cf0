"""Every byte of an access lies in a cell of the race detector that the access is recorded for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.simulator.memory.races import GlobalRaces


@pytest.mark.parametrize("cell_bytes", [1, 2, 4])
@given(st.integers(0, 30), st.integers(1, 32))
def test_an_access_that_begins_at_a_cell_touches_all_of_its_cells(
    cell_bytes: int, cell: int, size: int
) -> None:
    start = cell * cell_bytes
    found = GlobalRaces(1024, cell_bytes).cells(np.array([start]), size)
    assert found.tolist() == [sorted({byte // cell_bytes for byte in range(start, start + size)})]
