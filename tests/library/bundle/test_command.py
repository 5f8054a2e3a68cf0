import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.library.bundle.values import GPU, NOW, PROVENANCE, pending, program
from tests.targets.gpu.simulated_cuda import FACTS
from tuner.core.errors import TunerError, UsageError
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.library.bundle.archive import ResultsFile, pack, read_bundle
from tuner.library.bundle.command import MeasuringRequest, main, measure
from tuner.library.bundle.session import Gpu
from tuner.runtime.workers.processes import TimingLock
from tuner.runtime.workers.protocol import Factory


def no_baseline(problem: Problem, effort: Effort, seed: int) -> Baseline:
    raise TunerError("none here")


def no_evaluator(chip: str) -> Factory:
    raise AssertionError("nothing is to be judged")


def alone(problem: Problem, report: Callable[[str], None]) -> TimingLock:
    return TimingLock("test", "a test", report, Path("/nowhere"))  # a folder that takes no file locks nothing


def here() -> Gpu:
    return Gpu(FACTS, alone, no_evaluator, no_baseline)


@pytest.fixture
def request_(tmp_path: Path) -> MeasuringRequest:
    """Gives a request for a bundle of one candidate."""
    (tmp_path / "pending.bundle").write_bytes(pack((pending(0),), 0, "0.1.0", NOW))
    return MeasuringRequest(tmp_path / "pending.bundle")


def test_results_go_next_to_the_bundle(tmp_path: Path) -> None:
    assert MeasuringRequest(tmp_path / "x.bundle").results_file == tmp_path / "x.bundle.results.jsonl"


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match=r"^seconds: found .*, allowed more than 0$"):
        MeasuringRequest(Path("x"), seconds)


def test_code_for_another_chip_is_reported_with_both_chips(tmp_path: Path) -> None:
    path = tmp_path / "other.bundle"
    path.write_bytes(pack((pending(0, code=replace(program(), chip="sm_80")),), 0, "0.1.0", NOW))
    message = r"^bundle: has code for sm_80, but this GPU is Simulated GPU, sm_90$"
    with pytest.raises(UsageError, match=message):
        measure(MeasuringRequest(path), here)
    assert not MeasuringRequest(path).results_file.exists()


def test_an_empty_bundle_is_done_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.bundle"
    path.write_bytes(pack((), 0, "0.1.0", NOW))
    assert measure(MeasuringRequest(path, as_json=True), here) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["measured"] == 0


def test_results_of_another_bundle_are_not_added_to(request_: MeasuringRequest) -> None:
    ResultsFile(request_.results_file, PROVENANCE).close()
    with pytest.raises(UsageError, match=r"has results of bundle abababababab on Stub GPU"):
        measure(request_, here)


def test_results_of_another_machine_are_not_added_to(request_: MeasuringRequest) -> None:
    other = replace(PROVENANCE, bundle=read_bundle(request_.bundle).sha256, machine=GPU)
    ResultsFile(request_.results_file, other).close()
    with pytest.raises(UsageError, match=r"on Stub GPU, tuner 0\.1\.0; name another file: --results FILE"):
        measure(request_, here)


def test_the_bundle_is_read_before_a_gpu_is_looked_for(tmp_path: Path) -> None:
    def no_gpu() -> Gpu:
        raise AssertionError("looked for")

    with pytest.raises(UsageError, match=r"none\.bundle: cannot be read"):
        measure(MeasuringRequest(tmp_path / "none.bundle"), no_gpu)


def test_a_defect_is_one_line_and_its_trace_is_for_debug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path) -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr("tuner.library.bundle.command.read_bundle", broken)
    assert main(["--bundle", "x"]) == 1
    assert capsys.readouterr().err == "error: defect: RuntimeError: odd\nhint: --debug shows where\n"
    assert main(["--bundle", "x", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tuner.library.bundle.command.read_bundle", interrupted)
    assert main(["--bundle", "x"]) == 130
