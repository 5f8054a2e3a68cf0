from pathlib import Path

import pytest

from tuner.core.candidate import TargetName
from tuner.programs.request import ProgramRequest
from tuner.programs.service import time_pair

PROGRAM = Path("examples/two_matmuls.mlir")


@pytest.mark.slow
@pytest.mark.mlir
def test_a_program_and_its_loops_are_timed_interleaved_while_the_machine_is_watched() -> None:
    request = ProgramRequest(PROGRAM.read_text(), TargetName("cpu"))
    pair = time_pair(request)
    timed = (pair.bound, pair.plain, pair.bound_again)
    assert len({len(each.samples_s) for each in timed}) == 1
    assert min(min(each.samples_s) for each in timed) > 0
    assert pair.bound.host is not None
    assert pair.bound.host == pair.plain.host
    assert pair.bound.host.anchor_s > 0
