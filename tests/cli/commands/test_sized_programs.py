"""``tuner run`` and ``tuner tune`` with ``--sizes``: which sizes are called, compared and tuned; errors."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tuner as api
from tests.cli.conftest import Tuner
from tests.cli.real import BRIEF, brief_remeasurement, real_candidates
from tests.models.dynamic.programs import EXAMPLES
from tests.tuning import fakes
from tuner.db.store import Store
from tuner.models import execution, service
from tuner.models.compile_work import find_fusions
from tuner.models.dynamic import checked_run
from tuner.models.dynamic.tuned_sizes import SharedLimits
from tuner.models.fusion_tuning import FusionSteps
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.sized_function import SizedFunction
from tuner.models.run_work import run_and_time, run_program

pytestmark = pytest.mark.mlir

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "programs.md"
TEXTS = {example.name: example.text for example in EXAMPLES}


@pytest.fixture
def tuner(here: Path, monkeypatch: pytest.MonkeyPatch) -> Tuner:
    def call(_name: str, work: Callable[[], Any], _timeout_s: float, **_options: Any) -> Any:
        return work()

    monkeypatch.setattr(service, "call_in_child", call)
    for name in ("SOFTMAX", "LINEAR"):
        (here / f"{name.lower()}.mlir").write_text(TEXTS[name])
    return Tuner(here / "results.db", real_candidates())


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tunes, compiles, runs and times programs in this process, each time briefly."""
    steps = FusionSteps(find_fusions, run_program, run_and_time)
    monkeypatch.setattr("tuner.models.fusion_tuning.PROCESSES", 1)
    monkeypatch.setattr("tuner.models.commands.tune_program.child_fusion_steps", lambda: steps)
    monkeypatch.setattr("tuner.models.fusion_times.measure_roofline", lambda *_: fakes.ROOFLINE)
    for module in ("execution", "speedup"):
        monkeypatch.setattr(f"tuner.models.{module}.FINAL_EFFORT", BRIEF)
    with brief_remeasurement():
        yield


@pytest.mark.slow
def test_a_range_is_run_at_both_ends_and_between_compiled_sizes_as_the_guide_shows(tuner: Tuner) -> None:
    out = tuner.done("run softmax.mlir --target cpu --sizes 1..40").out
    (shown,) = re.findall(
        r"^\$ tuner run .+--sizes 1\.\.40.*\n((?:.+\n)+?)```", GUIDE.read_text(), re.MULTILINE
    )
    lines = shown.splitlines()
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
    assert "f.mlir:7:11: tensor.extract_slice: n elements from n on, in steps of 1: allowed a number" in error
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


@pytest.mark.slow
@pytest.mark.usefixtures("briefly")
def test_sizes_of_a_range_are_tuned_as_static_programs_that_the_dynamic_one_then_runs(tuner: Tuner) -> None:
    documents = tuner.done("tune linear.mlir --target cpu --workers 1 --sizes 3..4 --trials 2 --json").json
    assert [document["n"] for document in documents] == [4, 3]
    for document in documents:
        assert document["program"]["right"]
        assert [fusion["origin"] for fusion in document["fusions"]] == ["tuned"]
        (problem,) = document["problems"]
        assert problem["run"]["counts"]["proposed"] == 1
    with Store.open(str(tuner.database)) as store:
        campaigns = [store.campaign(document["campaign"]) for document in documents]
    assert [campaign.settings.source for campaign in campaigns] == ["linear.mlir n=4", "linear.mlir n=3"]
    assert [campaign.settings.program.size for campaign in campaigns if campaign.settings.program] == [4, 3]
    assert "3x12x8" in tuner.done("history").out
    program = api.compile_program("linear.mlir", "cpu", sizes="3..4", db=tuner.database)
    assert isinstance(program, SizedFunction)
    for size in (3, 4):
        static = program.static(size)
        assert isinstance(static, FusedFunction)
        assert [fusion.origin for fusion in static.code.fusions] == ["tuned"]


@pytest.mark.slow
@pytest.mark.usefixtures("briefly")
def test_the_tuning_of_one_size_is_resumed(tuner: Tuner) -> None:
    out = tuner.done("tune softmax.mlir --target cpu --workers 1 --sizes 5..6 --trials 2").out
    assert "size    n = 6, of 5..6" in out
    document = tuner.done("tune --resume campaign:2 --trials 2 --json").json
    assert document["program"]["right"]
    assert document["program"]["results"] == ["3x5xf32"]


def test_a_program_of_a_dynamic_size_without_a_range_has_the_command_with_one(tuner: Tuner) -> None:
    refused = tuner.done("tune linear.mlir --target cpu", code=2).err
    assert "error: linear.mlir: no matmul of static sizes and known types" in refused
    assert "hint: tuner tune linear.mlir --sizes 1..4096" in refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("tune linear.mlir --target simulator --sizes 1..8", "programs of a dynamic size run on a CPU"),
        ("tune model.py:layer --target cpu --sizes 1..8", "cannot be combined with model.py:layer"),
        ("tune linear.mlir --target cpu --sizes 1..8 --space default", "cannot be combined with --sizes"),
        ("tune matmul 8x8x8 --sizes 1..8", "--sizes needs a program"),
    ],
)
def test_sizes_are_of_a_program_on_a_cpu(tuner: Tuner, here: Path, options: str, message: str) -> None:
    (here / "model.py").write_text("layer = None")
    assert message in tuner.refused(options)


def test_programs_share_what_is_left_of_a_budget() -> None:
    def share(limits: SharedLimits, left: int, spent: int, seconds: float) -> SharedLimits:
        return limits.share(left, spent, began_s=10.0, now_s=10.0 + seconds)

    assert share(SharedLimits(10, None), 4, 0, 0.0) == SharedLimits(2, None)
    assert share(SharedLimits(10, None), 1, 6, 0.0) == SharedLimits(4, None)
    assert share(SharedLimits(2, None), 4, 2, 0.0) == SharedLimits(1, None)
    assert share(SharedLimits(None, 60.0), 3, 0, 30.0) == SharedLimits(None, 10.0)
    assert share(SharedLimits(None, 60.0), 3, 0, 30.0).budget == "10.000s"
    assert not share(SharedLimits(None, 60.0), 3, 0, 30.0).is_over
    assert share(SharedLimits(None, 60.0), 1, 0, 70.0).is_over
    assert not SharedLimits(None, None).is_over
    assert SharedLimits(5, None).budget is None
