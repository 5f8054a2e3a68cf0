"""What each op makes of small functions, and what it refuses, by the tables of the test module of its file.

BECOMES has the golden file of each result, REFUSED the reasons, UNCHANGED why there is nothing to do. A
docstring shows the first row of its op in BECOMES, unless SHOWN has another.
"""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from tests.mlir.ops.one_op import apply
from tests.targets.evaluation import fails
from tuner.core.errors import Stage
from tuner.mlir.dialect import all_ops

FILES = dict.fromkeys(op.__module__.rpartition(".")[2] for op in all_ops())
TABLES = [vars(import_module(f"tests.mlir.ops.test_{file}")) for file in FILES]
BECOMES = {name: call for table in TABLES for name, call in table.get("BECOMES", {}).items()}
ROWS = [*reversed(BECOMES.values()), *(row for table in TABLES for row in table.get("SHOWN", ()))]
SHOWN = {re.findall(r'"tuner\.(\w+)"', line)[-1]: (line, text) for line, text in ROWS}
REFUSED, UNCHANGED = (
    [row for table in TABLES for row in table.get(key, ())] for key in ("REFUSED", "UNCHANGED")
)
MARK = 'transform.annotate %func "seen" : !transform.any_op'


@pytest.mark.drawn(len(BECOMES))
@pytest.mark.parametrize("name", BECOMES)
def test_a_function_becomes_its_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.mlir", apply(*BECOMES[name]))


@pytest.mark.drawn(len(REFUSED))
@pytest.mark.parametrize(("line", "text", "reason"), REFUSED, ids=[reason for *_, reason in REFUSED])
def test_what_an_op_refuses_is_named(line: str, text: str, reason: str) -> None:
    (op,) = set(re.findall(r'"tuner\.(\w+)"', line))
    with fails(Stage.COMPILE, rf"^tuner\.{op} at script:.*{reason}"):
        apply(line, text)


@pytest.mark.drawn(len(UNCHANGED))
@pytest.mark.parametrize(("line", "text", "why"), UNCHANGED, ids=[why for *_, why in UNCHANGED])
def test_what_is_not_for_an_op_stays_and_its_handle_as_well(line: str, text: str, why: str) -> None:
    assert apply(f"{line}\n    {MARK}", text) == apply(MARK, text), why


def test_every_golden_file_is_that_of_a_function() -> None:
    golden = Path(__file__).parent / "golden"
    assert {path.stem for path in golden.glob("*.mlir")} == set(BECOMES)
