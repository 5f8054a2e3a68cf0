from pathlib import Path

from tests.cli.conftest import Tuner

NAMES = ("mine.mlir.j2", "mine.yaml", "test_mine.py")


def test_three_files_are_written_and_the_next_command_is_reported(tuner: Tuner, tmp_path: Path) -> None:
    done = tuner("new-strategy", "mine", "--folder", str(tmp_path))
    assert done.code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)
    assert f"--space {tmp_path / 'mine.yaml'} --strategy mine" in done.out
    assert done.err == "".join(f"wrote {tmp_path / name}\n" for name in NAMES)


def test_json_names_the_files(tuner: Tuner, tmp_path: Path) -> None:
    done = tuner("new-strategy", "mine", "--folder", str(tmp_path), "--json")
    assert done.json == {"strategy": "mine", "files": [str(tmp_path / name) for name in NAMES]}


def test_the_space_of_a_new_strategy_can_be_asked_at_once(tuner: Tuner, tmp_path: Path) -> None:
    tuner("new-strategy", "mine", "--folder", str(tmp_path))
    listed = tuner("strategies", "--space", str(tmp_path / "mine.yaml"), "--json").json
    assert listed[0]["name"] == "mine"
    assert listed[0]["knobs"] == ["tile_m", "tile_n", "unroll_k"]


def test_no_file_is_replaced(tuner: Tuner, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine")
    done = tuner("new-strategy", "mine", "--folder", str(tmp_path))
    assert (done.code, [path.name for path in tmp_path.iterdir()]) == (2, ["mine.yaml"])
    assert "mine.yaml: exists, and is not replaced" in done.err
