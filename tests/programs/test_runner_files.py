"""Programs in the style of upstream's integration tests: they print what their CHECK lines say."""

from pathlib import Path

import pytest

from tests.programs.file_check import require
from tuner.core.target_name import TargetName
from tuner.programs.options import ProgramOptions
from tuner.programs.request import ProgramRequest
from tuner.simulator.device.lazy_streams import ORDERS

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

PROGRAMS = sorted((Path(__file__).parent / "runner").glob("*.mlir"))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
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
