from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.library.bundle.values import PROVENANCE, RESULTS, pending, result, timed
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.library.bundle.archive import Line, ResultsFile, read_results


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Gives a file with everything in it."""
    written = tmp_path / "results.jsonl"
    file = ResultsFile(written, PROVENANCE)
    lines: tuple[Line, ...] = (*RESULTS.trials, *RESULTS.final_times, *RESULTS.noises, *RESULTS.baselines)
    for line in lines:
        file.append(line)
    file.close()
    return written


def test_results_come_back_equal(path: Path) -> None:
    assert read_results(path) == RESULTS


def test_each_line_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    with closing(ResultsFile(tmp_path / "results.jsonl", PROVENANCE)) as file:
        for number, trial in enumerate(RESULTS.trials, 1):
            file.append(trial)
            assert len(read_results(tmp_path / "results.jsonl").trials) == number


def test_a_last_line_that_was_cut_off_is_left_out(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])
    assert read_results(path) == replace(RESULTS, baselines=())


def test_a_file_that_was_cut_off_is_gone_on_with(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])
    with closing(ResultsFile(path, PROVENANCE)) as file:
        file.append(RESULTS.baselines[0])
    assert read_results(path) == RESULTS


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tuner-results", "other", r"line 1: found format 'other', allowed 'tuner-results'"),
        ('"version": 3', '"version": 9', r"line 1: found version 9 of tuner-results, allowed 3"),
        ('{"final"', '{"finale"', r"line 4: found 'finale', allowed trial, final, noise, baseline"),
        ('{"final"', "{", r"line 4: is not JSON"),
        ('"median_s": 0.001', '"median_s": 0', r"line 2: found a time of 0 s, allowed 1e-10 s to"),
        (
            '"samples_s": [0.001, 0.001, 0.001, 0.001, 0.001, 0.001]',
            '"samples_s": []',
            r"line 2: found 0 samples, allowed 1 to",
        ),
        ('"median_s": 0.001', '"median_s": 1e-30', r"line 2: found a time of 1e-30 s, allowed 1e-10 s to"),
        ('"elements": 128', '"elements": -7', r"line 2: found -7 compared elements, allowed 0 to 128"),
        ('"noise": 0.01', '"noise": -1.0', r"line 5: found a noise of -1, allowed 0 or more"),
        ('"median_s": 0.001', '"median_s": NaN', r"line 2: .*median_s: found nan, allowed a finite number"),
        ('"median_s": 0.001', '"median_s": 1e999', r"median_s: found inf, allowed a finite number"),
        ('{"final"', "[" * 100000, r"line 4: is not JSON"),
        (
            '"number": 1',
            '"number": null',
            r"line 3: trial\.origin\.number: found None, allowed a whole number",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_reported_by_its_line(
    path: Path, old: str, new: str, message: str
) -> None:
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(UsageError, match=message):
        read_results(path)


def test_a_time_above_the_peak_of_the_gpu_is_refused(tmp_path: Path) -> None:
    large = result(pending(problem=Matmul(4096, 4096, 4096, "f16")), timed(1e-6))
    with closing(ResultsFile(tmp_path / "fast", PROVENANCE)) as file:
        file.append(large)
    with pytest.raises(UsageError, match=r"line 2: found a time of 1e-06 s, .* at most .* on such a machine"):
        read_results(tmp_path / "fast")


def test_an_empty_file_has_no_results(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    with pytest.raises(UsageError, match="is empty; it must be a file of tuner-results"):
        read_results(tmp_path / "empty")


def test_a_file_of_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\n")
    with pytest.raises(UsageError, match="is not text; it must be a file of tuner-results"):
        read_results(tmp_path / "bytes")


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: Is a directory"):
        ResultsFile(tmp_path, PROVENANCE)
