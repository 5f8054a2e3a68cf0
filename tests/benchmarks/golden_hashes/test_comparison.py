"""What differs is named by item and part, and ends with exit code 1."""

import pytest

from benchmarks.golden_hashes.__main__ import compared
from benchmarks.golden_hashes.comparison import differences
from benchmarks.golden_hashes.tuner_names import packages

THEN = {"01 one": {"script": "a", "code": "b"}, "02 two": {"script": "c", "code": "d"}}


def test_equal_hashes_differ_in_nothing() -> None:
    assert differences(THEN, dict(reversed(THEN.items()))) == []


def test_a_changed_part_is_named_with_its_item() -> None:
    assert differences(THEN, THEN | {"02 two": {"script": "x", "code": "y"}}) == ["02 two: script, code"]
    assert differences(THEN, THEN | {"01 one": {"script": "a", "code": "y"}}) == ["01 one: code"]


def test_what_is_missing_and_what_is_new_differs() -> None:
    now = {"01 one": {"script": "a", "shown": "b"}, "03 three": {"script": "e"}}
    assert differences(THEN, now) == [
        "01 one: code (missing), shown (new)",
        "02 two: script (missing), code (missing)",
        "03 three: script (new)",
    ]


def test_the_exit_code_says_whether_all_is_equal(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"item": name, "sha256": hashes} for name, hashes in THEN.items()]
    before = {"rows": rows, "settings": {"packages": dict(packages())}}
    assert compared(before, THEN) == 0
    assert capsys.readouterr().err == "all of 2 items are equal\n"
    assert compared(before, THEN | {"01 one": {"script": "a", "code": "y"}}) == 1
    assert capsys.readouterr().err == "01 one: code\n"


def test_differences_between_compilers_are_pointed_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        compared({"rows": [], "settings": {"packages": {"torch-mlir": "1"}}}, {"01 one": {"code": "b"}}) == 1
    )
    assert "other compilers: {'torch-mlir': '1'} then, " in capsys.readouterr().err
