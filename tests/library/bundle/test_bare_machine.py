"""The whole command where nothing but Python, numpy and a stand-in for the CUDA driver can be imported."""

import json
from pathlib import Path

import pytest

from tests.library.bundle.bare_machine import measure
from tests.library.bundle.numpy_gpu import candidate
from tests.library.bundle.values import NOW
from tuner.core.errors import Failure, Stage
from tuner.core.problem import Matmul
from tuner.core.records import Measurement
from tuner.library.bundle.archive import pack, read_results

F32, BF16 = Matmul(48, 32, 16), Matmul(16, 8, 24, dtype="bf16")


def written(folder: Path, *trials: object) -> Path:
    path = folder / "pending.bundle"
    path.write_bytes(pack(trials, 3, "0.1.0", NOW))  # type: ignore[arg-type]
    return path


@pytest.mark.slow
def test_candidates_are_verified_and_timed_and_no_bad_one_takes_another_with_it(tmp_path: Path) -> None:
    trials = (
        candidate(0, F32),
        candidate(1, F32, "wrong"),
        candidate(2, F32, "lost"),
        candidate(3, F32, "crash"),
        candidate(4, F32, cubin=b"refused"),
        candidate(5, BF16),
        candidate(6, BF16, "wrong"),
    )
    done = measure(tmp_path, "--pending", "--bundle", str(written(tmp_path, *trials)), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["counts"] == {"measured": 3, "failed": 4, "left": 0, "other_chips": 0}
    assert [best["problem"] for best in document["best"]] == [F32.key, BF16.key]
    results = read_results(tmp_path / "pending.bundle.results.jsonl")
    assert results.provenance.machine.name == "stub GPU 0"
    found = {trial.origin.number: trial for trial in results.trials}
    assert {number for number, trial in found.items() if isinstance(trial.outcome, Measurement)} == {0, 4, 5}
    assert found[4].code == "ptx"  # the driver did not take its machine code
    failures = {n: trial.outcome for n, trial in found.items() if isinstance(trial.outcome, Failure)}
    stages = {number: failure.stage for number, failure in failures.items()}
    assert stages == {1: Stage.VERIFY, 2: Stage.RUN, 3: Stage.RUN, 6: Stage.VERIFY}
    assert "1 of 1536 elements are wrong; worst at [24, 10]" in failures[1].reason
    assert "CUDA_ERROR_LAUNCH_FAILED" in failures[2].reason
    assert "SIGABRT" in failures[3].reason
    assert found[0].verdict is not None
    assert found[0].verdict.elements == 48 * 32
    assert {final.origin.number for final in results.final_times} == {0, 4}
    assert [floor.problem for floor in results.noises] == [F32]
    assert "no baseline" in done.stderr


@pytest.mark.slow
def test_a_second_call_goes_on_with_what_is_left(tmp_path: Path) -> None:
    path = str(written(tmp_path, candidate(0, F32), candidate(1, F32, "wrong")))
    first = measure(tmp_path, "--bundle", path, "--json")
    second = measure(tmp_path, "--bundle", path, "--json")
    assert json.loads(first.stdout)["counts"]["measured"] == 1
    assert second.returncode == 0
    assert json.loads(second.stdout)["counts"] == {"measured": 0, "failed": 0, "left": 0, "other_chips": 0}
    assert json.loads(second.stdout)["best"] == json.loads(first.stdout)["best"]


@pytest.mark.slow
def test_a_kernel_that_hangs_is_ended_with_the_time_and_stays_pending(tmp_path: Path) -> None:
    others = [candidate(number, Matmul(8 * number, 8, 24, dtype="bf16")) for number in range(1, 6)]
    path = str(written(tmp_path, candidate(0, F32, "hang"), *others))
    done = measure(tmp_path, "--bundle", path, "--seconds", "60", "--json")  # 10 each, and what is left over
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"measured": 5, "failed": 0, "left": 1, "other_chips": 0}


@pytest.mark.slow
def test_only_wrong_candidates_is_exit_1(tmp_path: Path) -> None:
    done = measure(tmp_path, "--bundle", str(written(tmp_path, candidate(0, F32, "wrong"))))
    assert done.returncode == 1
    assert "0 measured, 1 failed, 0 left" in done.stdout


def test_without_a_driver_one_line_says_what_is_missing(tmp_path: Path) -> None:
    path = str(written(tmp_path, candidate(0, F32)))
    done = measure(tmp_path, "--bundle", path, has_driver=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: no CUDA driver: libcuda.so.1 cannot be loaded; it comes with the NVIDIA driver; "
        "nvidia-smi shows what is there\n"
    )


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pending",), "measure: --bundle FILE is missing; only where the whole of tuner is installed"),
        (("--bundle", "none"), "none: cannot be read (No such file or directory), expected a bundle"),
        (("--bundle", "x", "--seconds", "0"), "seconds: found 0, allowed more than 0"),
        (("--bundle", "x", "--fast"), "measure: unrecognized arguments: --fast"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_2(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = measure(tmp_path, *options, has_driver=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


def test_the_help_needs_nothing_else_either(tmp_path: Path) -> None:
    done = measure(tmp_path, "--help", has_driver=False)
    assert done.returncode == 0
    assert "Example: tuner measure --bundle pending.bundle" in done.stdout
