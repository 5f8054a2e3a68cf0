"""Every row of the table ends as expected under its orders of the simulator's streams."""

from typing import Any

import numpy as np
import pytest

from tests.programs.payload_rows import Row, rows
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError
from tuner.programs.request import DeviceOptions
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

SIMULATOR = TargetName.parse("simulator:sm_90")
ROWS = rows()


def outcomes(row: Row) -> list[tuple[Any, ...]]:
    """Compiles once and runs under each order; returns results and written arguments of each run."""
    from benchmarks.program_compiler import compiler_of
    from tuner.programs.comparison import outputs
    from tuner.programs.execution import copies
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.simulator.device.simulated_device import SimulatedDevice

    options = DeviceOptions(form=row.form)
    code = compiler_of(SIMULATOR).compile(row.text, "main", None, options).code
    found = []
    for order in row.orders:
        device = SimulatedDevice("sm_90", order, seed=0)  # type: ignore[arg-type] # one of its words
        arguments = copies(row.arguments)
        loaded = DeviceFunction(code, device)
        try:
            found.append(outputs(code, loaded(*arguments), arguments))
        finally:
            loaded.close()
        assert list(map(str, device.reports)) == []
        assert device.counts.allocations == device.counts.frees
    return found


@pytest.mark.drawn(2)
@pytest.mark.parametrize("row", [row for row in ROWS if not row.refusal], ids=lambda row: row.name)
def test_a_payload_computes_what_it_says(row: Row) -> None:
    for found in outcomes(row):
        assert len(found) == len(row.expected)
        for one, other in zip(found, row.expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("row", [row for row in ROWS if row.refusal], ids=lambda row: row.name)
def test_a_payload_is_refused_in_one_line(row: Row) -> None:
    with pytest.raises(TunerError, match=row.refusal) as caught:
        outcomes(row)
    assert "\n" not in str(caught.value)


def test_the_table_is_long_and_has_no_name_twice() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert len(names) >= 120
    assert {order for row in ROWS for order in row.orders if len(row.orders) == 1} == {*ORDERS}
