"""Schedules as others write them: next to their payload, in nested modules, several, in the old form."""

from pathlib import Path

import pytest

from tuner.cli.models import read_payload_text
from tuner.core.errors import CandidateError
from tuner.core.interfaces import Script
from tuner.core.problem import Matmul
from tuner.targets.children import apply_script
from tuner.targets.cpu.compiler import CpuCompiler

FILE = Path(__file__).with_suffix(".mlir")
BOTH = FILE.read_text()
PAYLOAD, SCHEDULES = BOTH[: BOTH.index("module @tiles")], BOTH[BOTH.index("module @tiles") :]
TILES = SCHEDULES[: SCHEDULES.index("module @vectors")]
OLD = "transform.sequence failures(propagate) {\n^bb0(%root: !transform.any_op):\n}\n"


def test_schedules_of_a_file_are_applied_to_its_functions_one_after_another() -> None:
    applied = apply_script(BOTH, BOTH, allows_effects=False)
    assert applied == apply_script(SCHEDULES, PAYLOAD, allows_effects=False)
    assert applied.count("scf.for") == 2
    assert "vector.transfer_read" in applied
    assert "transform." not in applied
    assert read_payload_text(FILE) == applied


def test_the_old_form_of_a_script_is_named() -> None:
    with pytest.raises(
        CandidateError, match=r"found transform\.sequence, the old form of a script, allowed "
    ):
        apply_script(OLD, PAYLOAD, allows_effects=False)


@pytest.mark.parametrize("text", [TILES, f"module {{\n{TILES}}}\n", PAYLOAD + TILES, BOTH])
def test_a_schedule_that_leaves_tensors_is_bufferized_after_it(text: str) -> None:
    code = CpuCompiler().compile(Matmul(64, 64, 64), Script.of(text)).code
    assert "llvm.func @matmul(" in code
