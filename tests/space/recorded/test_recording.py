import gzip
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.space.recorded import values
from tuner.core.errors import Failure, Stage, UsageError
from tuner.space.recorded import recording
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import Points, Raw, RecordedTime, feasible_set_of, name_of, open_recorded

NAN = float("nan")


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("name", ["space.json", "space.t4.json", "space.t4.json.gz", "space.json.gz"])
def test_a_file_is_read_compressed_or_not(tmp_path: Path, name: str, is_compressed: bool) -> None:
    content = b'{"results": ["\\ud83d\\ude00"]}'  # a pair of surrogates is a character
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if is_compressed else content)
    opened = open_recorded(path)
    assert (opened.name, opened.document) == ("space", {"results": ["\U0001f600"]})
    assert opened.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/gemm.v2.t4.json.gz", "gemm.v2"), ("a\x1b[31m\nb.json", "a\\x1b[31m b"), ("\udcff.json", "\\udcff")],
)
def test_only_known_suffixes_leave_the_name_and_what_prints_stays(path: str, name: str) -> None:
    assert name_of(Path(path)) == name


@pytest.mark.parametrize("end", ["},", "}", "}}", "}}}"])
def test_the_cache_of_an_unfinished_run_is_closed(tmp_path: Path, end: str) -> None:
    """Kernel Tuner writes the closing braces when a run ends, and not before."""
    path = tmp_path / "cache.json"
    path.write_text('{"kernel_name": "k", "cache": {\n"a": {"time": 1.0},\n"b": {"time": 2.0' + end)
    assert open_recorded(path).document["cache"] == {"a": {"time": 1.0}, "b": {"time": 2.0}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"{]", "is not JSON"),
        (b"[1, 2]", "is not JSON|is JSON but no object"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"size": ' + b"9" * 5000 + b"}", "is not JSON"),  # Python reads no integer so long
        (b'{"name": "\\ud800"}', "half of a surrogate pair, which UTF-8 cannot write"),
        (gzip.compress(b"{}", mtime=0)[:-4], "damaged gzip"),
        (b"\x1f\x8bnonsense", "damaged gzip"),
    ],
)
def test_what_is_no_recording_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "space.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message) as error:
        open_recorded(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_a_missing_or_too_large_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"none\.json: cannot be read \(No such file"):
        open_recorded(tmp_path / "none.json")
    monkeypatch.setattr(recording, "BYTES_LIMIT", 1000)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * 1001))
    for file in (path, Path("/dev/zero")):  # which has no end
        with pytest.raises(UsageError, match="found more than 1000 bytes, allowed 1000"):
            open_recorded(file)


def cache(**changes: Any) -> dict[str, Any]:
    """Returns a cache as Kernel Tuner writes it: one point of every kind."""
    times: list[object] = [2.5, "CompilationFailedConfig", "RuntimeFailedConfig", "InvalidConfig", 1e20, 0.5]
    plain = {"vector": 0, "times": [], "compile_time": 100.0, "GFLOP/s": 3.5}
    entries: dict[str, Any] = {
        f"{2**place},0": {"block_size_x": 2**place, **plain, "time": time} for place, time in enumerate(times)
    }
    entries["1,0"]["times"] = [2.0, 3.0]
    head = {"device_name": "NVIDIA A100", "kernel_name": "stencil", "problem_size": [64, 64]}
    knobs = {"block_size_x": [32, 16, 8, 4, 2, 1], "vector": [0]}
    tuned = {"tune_params_keys": [*knobs], "tune_params": knobs, "objective": "time"}
    return {**head, **tuned, "cache": entries, **changes}


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
    assert len(set(space.codes)) == space.rows  # every point is code of its own


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
        ({"tune_params": {"block_size_x": ["\x1b["], "vector": [0]}}, "allowed numbers and printable texts"),
    ],
)
def test_a_damaged_cache_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_recorded(write(tmp_path, cache(**changes)))


def test_a_time_that_is_none_is_a_failure_and_no_word_of_a_file_moves_the_terminal(tmp_path: Path) -> None:
    document = cache()
    times = [0, -1, float("nan"), 10**400, 1e-300, 1.0]
    for entry, time in zip(document["cache"].values(), times, strict=True):
        entry["time"] = time
    space = read_recorded(write(tmp_path, document))
    assert np.count_nonzero(np.isfinite(space.times_s)) == 1
    document = cache(device_name="dev\x1b[31m")
    document["cache"]["1,0"]["time"] = "Boom\x1b]0;title\x07"
    space = read_recorded(write(tmp_path, document))
    assert space.machine.name == "dev\\x1b[31m"
    assert Failure(Stage.RUN, "Boom\\x1b]0;title\\x07") in space.outcomes


@pytest.mark.parametrize(
    "samples", [[], [1.0, 0.0], [1.0, NAN], [NAN, 1.0], [1.0, None], ["1.0"], [1e20], [-1.0], [1e-300]]
)
def test_samples_count_only_where_all_are_times(tmp_path: Path, samples: list[object]) -> None:
    document = cache()
    document["cache"]["1,0"]["times"] = samples
    assert read_recorded(write(tmp_path, document)).outcomes[-1] == RecordedTime(2.5e-3)


ROWS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["a", "b", "c"])), min_size=1, max_size=40)


def points(values: list[tuple[Raw, ...]], listed: tuple[tuple[Raw, ...], ...]) -> Points:
    return Points("s", tuple("xyz"[: len(listed)]), listed, values, list(range(len(values))))


def points_of_x(*values: Raw, listed: tuple[Raw, ...] = ()) -> Points:
    return points([(value,) for value in values], (listed,))


@given(ROWS)
def test_every_point_is_a_row_and_of_equal_ones_the_last_counts(rows: list[tuple[int, str]]) -> None:
    feasible, entries = feasible_set_of((points([*rows], ((), ())),))
    assert feasible.rows == len(set(rows)) == len(entries)
    for row, entry in enumerate(entries):
        candidate = feasible.candidate(row)
        assert tuple(dict(candidate.choices).values()) == rows[entry]
        assert feasible.row_of(candidate) == row
        assert entry == max(place for place, other in enumerate(rows) if other == rows[entry])


def test_choices_keep_the_order_that_the_file_lists_and_are_not_too_many() -> None:
    feasible, _ = feasible_set_of((points([(4, "m"), (8, "a"), (2, "z")], ((8, 2), ())),))
    x, y = feasible.spaces[0].knobs
    assert x.choices == (8, 2, 4)  # listed, then what was met beside
    assert y.choices == ("a", "m", "z")
    feasible, _ = feasible_set_of((points_of_x(*range(4096)),))
    assert feasible.rows == 4096
    with pytest.raises(UsageError, match="knob 'x': found 4097 different values, allowed 4096"):
        feasible_set_of((points_of_x(*range(4097)),))


def test_a_knob_takes_whole_numbers_or_texts() -> None:
    choices: dict[tuple[Raw, ...], tuple[Raw, ...]] = {(True, False): (0, 1), (1.0, 2.0): (1, 2)}
    choices |= {(0.5, 1.0): ("0.5", "1.0"), (1, "auto"): ("1", "auto")}
    for raw, plain in choices.items():
        feasible, _ = feasible_set_of((points_of_x(*raw),))
        assert feasible.spaces[0].knobs[0].choices == plain


def test_strategies_follow_one_another_and_one_without_knobs_is_one_point() -> None:
    second = Points("t", ("x",), ((),), [(3,), (1,)], [7, 9])
    feasible, entries = feasible_set_of((points_of_x(5), second))
    assert [feasible.candidate(row).text for row in range(3)] == ["s(x=5)", "t(x=1)", "t(x=3)"]
    assert entries == (0, 9, 7)
    feasible, entries = feasible_set_of((points([(), ()], ()),))
    assert (feasible.rows, entries) == (1, (1,))


@pytest.mark.parametrize("value", [float("inf"), NAN, 10**400, "\ud800", "\x1b[31m", "\0", [1, 2]])
@pytest.mark.parametrize("is_listed", [False, True])
def test_what_no_knob_can_take_is_refused(value: Raw, is_listed: bool) -> None:
    with pytest.raises(UsageError, match=r"knob 'x': found .*, allowed numbers and printable texts"):
        feasible_set_of((points_of_x(value, 1, listed=(value,) if is_listed else ()),))


def test_times_are_by_row_failures_have_none_and_knobs_are_those_of_every_strategy(tmp_path: Path) -> None:
    space = read_recorded(values.write_recording(tmp_path))
    assert space.knobs == values.KNOBS
    assert len(space.times_s) == space.rows == space.feasible.rows
    for outcome, time_s in zip(space.outcomes, space.times_s, strict=True):
        assert math.isnan(time_s) == isinstance(outcome, Failure)
        assert isinstance(outcome, Failure) or outcome.time_s == time_s
