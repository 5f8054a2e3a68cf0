from pathlib import Path

from tests.cli.conftest import Tuner


def test_one_page_is_written(tuned: Tuner, tmp_path: Path) -> None:
    done = tuned("report", "-o", str(tmp_path / "report.html"))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{tmp_path / 'report.html'}: 1 run, the best of 1 problem, ")
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "Run 1: matmul 8x8x8 f32 nn none" in page
    assert "20 measured trials of fake" in page


def test_without_a_file_the_page_is_printed(tuned: Tuner) -> None:
    assert tuned("report").out.rstrip().endswith("</html>")


def test_what_was_written_as_json(tuned: Tuner, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    document = tuned("report", "-o", str(file), "--json").json
    assert document == {"file": str(file), "bytes": file.stat().st_size, "problems": 1, "runs": [1]}


def test_one_run_with_its_problem_alone(tuned: Tuner, tmp_path: Path) -> None:
    assert tuned("tune", "matmul", "9x8x8", "--trials", "3").code == 0
    text = ("report", "-o", str(tmp_path / "r.html"), "--json")
    assert tuned(*text).json["runs"] == [2, 1]
    assert tuned(*text).json["problems"] == 2
    assert tuned(*text, "--limit", "1").json["runs"] == [2]
    assert "1 earlier run left out" in (tmp_path / "r.html").read_text()
    one = tuned(*text, "--run", "1").json
    assert (one["runs"], one["problems"]) == ([1], 1)
    assert "9x8x8" not in (tmp_path / "r.html").read_text()


def test_an_empty_database_gives_a_page_that_says_so(tuner: Tuner) -> None:
    assert "Nothing was tuned yet" in tuner("report").out


def test_a_replay_is_on_the_page_next_to_what_was_measured(tuned: Tuner, tmp_path: Path) -> None:
    recording = tmp_path / "space.t4.json"
    recording.write_text(tuned("history", "--format", "t4").out)
    assert tuned("tune", "matmul", "8x8x8", "--target", f"replay:{recording}", "--trials", "5").code == 0
    document = tuned("report", "-o", str(tmp_path / "r.html"), "--json").json
    assert (document["runs"], document["problems"]) == ([2, 1], 2)
    assert tuned("report", "--run", "2", "-o", str(tmp_path / "r.html"), "--json").json["problems"] == 1
    page = (tmp_path / "r.html").read_text()
    assert "replayed" in page
    assert "tuner export" not in page


def test_passes_that_cannot_be_timed_are_left_out(tuned: Tuner, tmp_path: Path) -> None:
    done = tuned("report", "--compile-time", "-o", str(tmp_path / "report.html"))
    assert (done.code, done.err) == (0, "")
    assert "passes</summary>" not in (tmp_path / "report.html").read_text()  # the fake compiles nothing
