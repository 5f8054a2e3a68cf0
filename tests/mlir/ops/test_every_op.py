"""What each op makes of small functions, and what it refuses, by the tables of the test module of its name.

SHOWN is what the docstring shows, BECOMES has the golden file of each result, REFUSED the reasons.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from tests.mlir.ops.conftest import Apply
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.transform import OPS

pytestmark = pytest.mark.mlir

NAMES = [str(op.OPERATION_NAME).partition(".")[2] for op in OPS]
TABLES = {name: vars(import_module(f"tests.mlir.ops.test_{name}")) for name in NAMES}
BECOMES = {name: call for table in TABLES.values() for name, call in table.get("BECOMES", {}).items()}
REFUSED = [(name, *row) for name, table in TABLES.items() for row in table.get("REFUSED", ())]


@pytest.mark.drawn(len(BECOMES))
@pytest.mark.parametrize("name", BECOMES)
def test_a_function_becomes_what_its_golden_file_holds(
    name: str, apply: Apply, golden: Callable[[str, str], None]
) -> None:
    golden(f"{name}.mlir", apply(*BECOMES[name]))


@pytest.mark.drawn(len(REFUSED))
@pytest.mark.parametrize(
    ("op", "line", "text", "reason"), REFUSED, ids=[f"{name}: {reason}" for name, *_, reason in REFUSED]
)
def test_what_an_op_refuses_is_named(op: str, line: str, text: str, reason: str, apply: Apply) -> None:
    with pytest.raises(CandidateError, match=rf"^tuner\.{op} at script:.*{reason}") as caught:
        apply(line, text)
    assert caught.value.stage is Stage.COMPILE


def test_every_golden_file_is_that_of_a_function() -> None:
    golden = Path(__file__).parent / "golden"
    assert {path.stem for path in golden.glob("*.mlir")} == set(BECOMES)
