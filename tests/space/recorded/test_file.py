import gzip
import hashlib
import json
from pathlib import Path

import pytest

from tuner.core.errors import UsageError
from tuner.space.recorded import recording
from tuner.space.recorded.recording import name_of, open_recorded


@pytest.mark.parametrize("name", ["space.json", "space.t4.json", "space.t4.json.gz", "space.json.gz"])
def test_a_file_is_read_compressed_or_not(tmp_path: Path, name: str) -> None:
    content = json.dumps({"results": []}).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    opened = open_recorded(path)
    assert (opened.name, opened.document) == ("space", {"results": []})
    assert opened.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_compression_is_seen_from_the_content(tmp_path: Path) -> None:
    path = tmp_path / "space.json"
    path.write_bytes(gzip.compress(b"{}"))
    assert open_recorded(path).document == {}


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/gemm.v2.t4.json.gz", "gemm.v2"), ("a\x1b[31m\nb.json", "a\\x1b[31m b"), ("\udcff.json", "\\udcff")],
)
def test_only_known_suffixes_leave_the_name_and_what_prints_stays(path: str, name: str) -> None:
    assert name_of(Path(path)) == name


@pytest.mark.parametrize(
    "end",
    [',\n"b": {"time": 2.0},', ',\n"b": {"time": 2.0}', ',\n"b": {"time": 2.0}}', ',\n"b": {"time": 2.0}}}'],
)
def test_the_cache_of_an_unfinished_run_is_closed(tmp_path: Path, end: str) -> None:
    """Kernel Tuner writes the closing braces when a run ends, and not before."""
    path = tmp_path / "cache.json"
    path.write_text('{"kernel_name": "k", "cache": {\n"a": {"time": 1.0}' + end)
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


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json: cannot be read \(No such file"):
        open_recorded(tmp_path / "none.json")


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "BYTES_LIMIT", 1000)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * 1001))
    for file in (path, Path("/dev/zero")):  # which has no end
        with pytest.raises(UsageError, match="found more than 1000 bytes, allowed 1000"):
            open_recorded(file)


def test_a_pair_of_surrogates_is_a_character(tmp_path: Path) -> None:
    path = tmp_path / "space.json"
    path.write_text('{"name": "\\ud83d\\ude00"}')
    assert open_recorded(path).document == {"name": "\U0001f600"}
