"""``tuner run --sizes``: which sizes are called and compared, and what cannot be combined with it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tuner
from tests.docs.guide import ROOT, blocks_of
from tests.programs.dynamic.programs import EXAMPLES
from tuner.programs import execution, service
from tuner.programs.dynamic import checked_run
from tuner.programs.run.fused_program import FusedFunction
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

TEXTS = {example.name: example.text for example in EXAMPLES}


@pytest.fixture
def tuner(here: Path, monkeypatch: pytest.MonkeyPatch) -> Tuner:
    def call(_name: str, work: Callable[[], Any], _timeout_s: float) -> Any:
        return work()

    monkeypatch.setattr(service, "call_in_child", call)
    (here / "softmax.mlir").write_text(TEXTS["SOFTMAX"])
    return Tuner(here / "results.db", real_backends())


@pytest.mark.slow
def test_a_range_is_run_at_both_ends_and_between_compiled_sizes_as_the_guide_shows(tuner: Tuner) -> None:
    out = tuner.done("run softmax.mlir --target cpu --sizes 1..40").out
    pages = (ROOT / "docs/guides/programs.md").read_text()
    shown = next(block.text for block in blocks_of(pages) if "--sizes 1..40" in block.text)
    _, *lines = shown.splitlines()
    without_errors = [line.partition(": error")[0] for line in out.splitlines()]
    assert [line for line in lines if line.partition(": error")[0] not in without_errors] == []
    assert "WRONG" not in out


def test_one_size_is_a_range_and_a_document_has_each_check(tuner: Tuner) -> None:
    document = tuner.done("run softmax.mlir --target cpu --sizes 7 --json").json
    assert (document["sizes"], document["compiled_sizes"], document["right"]) == ([7, 7], [7], True)
    (check,) = document["checks"]
    assert (check["n"], check["compiled_size"]) == (7, 7)
    assert check["reference"] == "the text as written, before any pass"
    assert document["results"] == ["3xnxf32"]


def test_a_wrong_result_at_one_size_is_said_and_the_command_fails(
    tuner: Tuner, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = execution.host_function

    def wrong(compiled: Any) -> Callable[..., Any]:
        function = right(compiled)
        assert isinstance(function, FusedFunction)
        return lambda *arrays: function(*arrays) + 1

    monkeypatch.setattr(checked_run, "host_function", wrong)
    out = tuner.failed("run softmax.mlir --target cpu --sizes 7").out
    assert "WRONG   n = 7 in 7, result 0: error 1, allowed" in out


def test_a_refused_operation_has_the_files_name_its_line_and_a_hint(tuner: Tuner, here: Path) -> None:
    (here / "f.mlir").write_text(TEXTS["VIEWS"].replace("%x[0, 1] [%n, 2]", "%x[%n, 1] [%n, 2]"))
    error = tuner.refused("run f.mlir --target cpu --sizes 1..8")
    assert "f.mlir:7:11: tensor.extract_slice: it begins or steps at n: allowed numbers without n" in error
    assert "hint: compile it at one size" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--sizes 4..2", "sizes: found 4..2, allowed a range of 1 to 1048576"),
        ("--sizes 1..9 --explain", "--explain cannot be combined with --sizes"),
        ("--sizes 1..9 --target simulator", "programs of a dynamic size run on a CPU"),
    ],
)
def test_what_does_not_go_together_is_one_line(tuner: Tuner, options: str, message: str) -> None:
    target = "" if "--target" in options else "--target cpu "
    assert message in tuner.refused(f"run softmax.mlir {target}{options}")
