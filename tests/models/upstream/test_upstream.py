"""Programs that upstream's passes have compiled wrongly: each file says its issue and the right outputs.

Each is compiled as a user's program, and interpreted as written, which no pass can change.

Such a file has lines ``// name: value``: ``issue``; ``arguments``, numbers and lists; ``outputs``: the
results, then each memref, all of which the program writes; ``printed``. With ``defect`` the
program is known to go wrong: the file fails this test once a newer MLIR or a rewrite of ours mends it. A
file may have its own schedule: then ``tuner run`` compares by default, and finds what the schedule changes.
"""

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.file_check import directives
from tests.support.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.core.numpy_types import DTYPES
from tuner.gpu.interpreter.host_functions import read_function
from tuner.mlir.script_linking import SCHEDULE
from tuner.models.comparison import outputs
from tuner.models.execution import host_function
from tuner.models.reference import AS_WRITTEN
from tuner.models.request import ProgramRequest
from tuner.models.run_work import run_program
from tuner.targets.children import apply_script

pytestmark = pytest.mark.mlir
PROGRAMS = sorted(Path(__file__).parent.glob("*.mlir"))
SCHEDULED = [path for path in PROGRAMS if SCHEDULE in path.read_text()]
ISSUE = re.compile(r"https://github\.com/llvm/(?:llvm-project|torch-mlir)/(?:issues|pull)/([0-9]+)")
EXTREMES = {"inf": np.inf, "nan": np.nan}


def values(text: str) -> list[Any]:
    """Returns the values of a directive: numbers and lists of numbers, with commas between."""
    tree = ast.parse(f"[{text}]", mode="eval")
    return list(eval(compile(tree, "directive", "eval"), {"__builtins__": {}}, EXTREMES))


def typed(value: Any, element: str) -> Any:
    return np.array(value, DTYPES[element]) if isinstance(value, list) else value


def compiled_outputs(text: str) -> tuple[list[Any], str]:
    """Returns the outputs of a program on the CPU, compiled as a user's, and what it prints."""
    if SCHEDULE in text:
        scheduled = apply_script(text, text, False)
    else:
        scheduled = text
    compiled = compiler_of(TargetName("cpu")).compile(scheduled, as_fusions=True)
    given = values(directives(text).get("arguments", ""))
    kinds = [kind.element for kind in compiled.code.arguments]
    arguments = tuple(typed(value, kind) for value, kind in zip(given, kinds, strict=True))
    printed: list[str] = []
    results = host_function(compiled, printed.append)(*arguments)
    return list(outputs(compiled.code, results, arguments)), "".join(printed)


def require_right(text: str, found: list[Any], printed: str) -> None:
    expected = directives(text)
    for value, right in zip(found, values(expected.get("outputs", "")), strict=True):
        np.testing.assert_array_equal(np.asarray(value).astype(np.asarray(right).dtype), right)
    assert "".join(printed.split("\n")) == expected.get("printed", "")


def test_there_are_programs_of_many_issues_each_named_by_its_own() -> None:
    issues = set()
    for path in PROGRAMS:
        found = ISSUE.fullmatch(directives(path.read_text())["issue"])
        assert found is not None, path.name
        assert path.name.startswith(f"{found[1]}_")
        issues.add(found[1])
    assert len(issues) >= 25


def interpreted_outputs(text: str) -> tuple[list[Any], str]:
    """Returns the outputs of a program that is interpreted as written, and what it prints."""
    function = read_function(text, "main")
    given = values(directives(text).get("arguments", ""))
    kinds = function.arguments
    arguments = tuple(typed(value, kind.element.name) for value, kind in zip(given, kinds, strict=True))
    printed: list[str] = []
    results = function(arguments, printed.append)
    buffers = [value for value, kind in zip(arguments, kinds, strict=True) if kind.holder == "memref"]
    return [*results, *buffers], "".join(printed)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_interpreted_as_its_text_says(path: Path) -> None:
    text = path.read_text()
    require_right(text, *interpreted_outputs(text))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_compiled_as_its_text_says(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    defect = directives(text).get("defect")
    if defect is not None:
        request.applymarker(pytest.mark.xfail(reason=defect, strict=True))
    require_right(text, *compiled_outputs(text))


@pytest.mark.parametrize("path", SCHEDULED, ids=lambda path: path.stem)
def test_a_schedule_that_changes_the_outputs_is_found_by_default(path: Path) -> None:
    text = path.read_text()
    numbers = enumerate(values(directives(text)["arguments"]))
    given = tuple(f"{index}={value}" for index, value in numbers if isinstance(value, int))
    scheduled = apply_script(text, text, False)
    request = ProgramRequest(scheduled, TargetName("cpu"), written=text, arguments=given, is_timed=False)
    report = run_program(request)
    assert (report.reference, report.is_right) == (AS_WRITTEN, "defect" not in directives(text))
