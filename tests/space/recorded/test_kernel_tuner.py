import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.core.errors import Failure, Stage, UsageError
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import RecordedTime


def cache(**changes: Any) -> dict[str, Any]:
    """Returns a cache as Kernel Tuner writes it: one point of every kind."""
    times: list[object] = [2.5, "CompilationFailedConfig", "RuntimeFailedConfig", "InvalidConfig", 1e20, 0.5]
    entries = {
        f"{2**place},0": {
            "block_size_x": 2**place,
            "vector": 0,
            "time": time,
            "times": [2.0, 3.0] if place == 0 else [],
            "compile_time": 100.0,
            "GFLOP/s": 3.5,
        }
        for place, time in enumerate(times)
    }
    return {
        "device_name": "NVIDIA A100",
        "kernel_name": "stencil",
        "problem_size": [64, 64],
        "tune_params_keys": ["block_size_x", "vector"],
        "tune_params": {"block_size_x": [32, 16, 8, 4, 2, 1], "vector": [0]},
        "objective": "time",
        "cache": entries,
        **changes,
    }


def write(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "stencil_a100.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path


def test_a_cache_becomes_a_space_in_seconds(tmp_path: Path) -> None:
    space = read_recorded(write(tmp_path, cache()))
    assert (space.name, space.machine.name, space.problem) == ("stencil_a100", "NVIDIA A100", None)
    assert [knob.name for knob in space.knobs] == ["block_size_x", "vector"]
    assert space.knobs[0].choices == (32, 16, 8, 4, 2, 1)  # in the order of tune_params
    assert (space.rows, space.forbidden) == (5, 1)  # InvalidConfig was not allowed in the first place
    assert space.outcomes == (
        RecordedTime(0.5e-3),
        Failure(Stage.MEASURE, "recorded without a time"),
        Failure(Stage.RUN, "RuntimeFailedConfig"),
        Failure(Stage.COMPILE, "CompilationFailedConfig"),
        RecordedTime(2.5e-3, (2e-3, 3e-3)),
    )
    assert np.isnan(space.times_s).tolist() == [False, True, True, True, False]


def test_every_point_is_code_of_its_own(tmp_path: Path) -> None:
    space = read_recorded(write(tmp_path, cache()))
    assert len(set(space.codes)) == space.rows


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cache": {}}, "no point was tried"),
        ({"cache": {"1": {"time": "InvalidConfig"}}}, "no point was tried"),
        ({"tune_params_keys": ["nowhere"]}, "found no 'nowhere' where its format has one, allowed T4 or a"),
        ({"tune_params_keys": None}, "found another form"),
        ({"cache": {"1": 5}}, "found another form"),
        ({"kernel_name": "k\x1b[2J"}, r"strategy or knob: found 'k\\x1b\[2J', allowed a printable name"),
        ({"kernel_name": "a\0b"}, "allowed a printable name"),  # SQLite would end the text there
        (
            {"tune_params": {"block_size_x": ["\x1b[31m"], "vector": [0]}},
            "allowed numbers and printable texts",
        ),
    ],
)
def test_a_damaged_cache_is_refused_in_one_line(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        read_recorded(write(tmp_path, cache(**changes)))


def test_a_time_that_is_none_is_a_failure(tmp_path: Path) -> None:
    document = cache()
    for entry, time in zip(
        document["cache"].values(), [0, -1, float("nan"), 10**400, 1e-300, 1.0], strict=True
    ):
        entry["time"] = time
    space = read_recorded(write(tmp_path, document))
    assert np.count_nonzero(np.isfinite(space.times_s)) == 1


@pytest.mark.parametrize(
    "samples",
    [
        [],
        [1.0, 0.0],
        [1.0, float("nan")],
        [float("nan"), 1.0],
        [1.0, None],
        ["1.0"],
        [1e20],
        [-1.0],
        [1e-300],
    ],
)
def test_samples_count_only_where_all_are_times(tmp_path: Path, samples: list[object]) -> None:
    document = cache()
    document["cache"]["1,0"]["times"] = samples
    assert read_recorded(write(tmp_path, document)).outcomes[-1] == RecordedTime(2.5e-3)


def test_no_word_of_a_file_moves_the_terminal(tmp_path: Path) -> None:
    document = cache(device_name="dev\x1b[31m")
    document["cache"]["1,0"]["time"] = "Boom\x1b]0;title\x07"
    space = read_recorded(write(tmp_path, document))
    assert space.machine.name == "dev\\x1b[31m"
    assert Failure(Stage.RUN, "Boom\\x1b]0;title\\x07") in space.outcomes
