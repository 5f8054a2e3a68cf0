import gzip
import hashlib
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.space.recorded import values
from tuner.core.errors import Failure, UsageError
from tuner.space.recorded import recording
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import Points, Raw, feasible_set_of, name_of, open_recorded

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
