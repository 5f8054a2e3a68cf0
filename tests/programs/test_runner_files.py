"""Programs in the style of upstream's integration tests: they print what their CHECK lines say."""

from pathlib import Path

import pytest

from tests.programs.file_check import require
from tests.programs.payload_rows import one_order
from tuner.core.candidate import TargetName
from tuner.programs.request import ProgramOptions, ProgramRequest
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

# What streams, launches and the host do may change places in these; the others have a lone kernel.
SEVERAL = (
    "async_fork_join",
    "called_host_functions",
    "concurrent_kernels",
    "gpux_tokens",
    "host_shared",
    "tokens",
    "two_gpu_modules",
    "two_modules",
)
CASES = [
    (path, order)
    for path in sorted((Path(__file__).parent / "runner").glob("*.mlir"))
    for order in (ORDERS if path.stem in SEVERAL else one_order(path.stem))
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("path", "order"), CASES, ids=[f"{path.stem}-{order}" for path, order in CASES])
def test_a_program_prints_what_it_says(path: Path, order: str) -> None:
    from tuner.programs.service import run_program

    source = path.read_text()
    chip = "sm_90a" if path.stem.startswith("sm90_") else "sm_90"
    request = ProgramRequest(
        source, TargetName.parse(f"simulator:{chip}"), options=ProgramOptions(order=order, seed=3)
    )
    report = run_program(request)
    require(source, report.printed)
    assert report.is_right, report.reports
