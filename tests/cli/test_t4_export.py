"""The trials of all runs of a campaign, as T4 files that a search replays."""

import gzip
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tuner.space.recorded.reading import read_recorded

SHAPES = "- {shape: 8x8x8, name: first}\n- {shape: 64x8x8, dtype: f64, align: 64}\n"
NAMES = ("matmul_8x8x8_f32_nn_none_run1.t4.json.gz", "matmul_64x8x8_f64_nn_none_align_64_run2.t4.json.gz")


@pytest.fixture
def grouped(tuner: Tuner, tmp_path: Path) -> Tuner:
    """Gives a database with one campaign of two problems."""
    shapes = tmp_path / "shapes.yaml"
    shapes.write_text(SHAPES)
    done = tuner("tune", "--shapes", str(shapes), "--trials", "11", "--target", "fake")
    assert done.code == 0, done.err
    return tuner


@pytest.mark.slow
def test_a_campaign_is_a_folder_of_recordings_with_all_trials_of_each_problem(
    grouped: Tuner, tmp_path: Path
) -> None:
    folder = tmp_path / "t4"
    done = grouped("export", "--format", "t4", "--campaign", "1", "-o", str(folder), "--json")
    assert done.code == 0, done.err
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES)
    assert done.json["files"] == [str(folder / name) for name in NAMES]
    assert [each["run"] for each in done.json["runs"]] == [1, 2]
    for run, name in zip((1, 2), NAMES, strict=True):
        history = grouped("history", "--run", str(run), "--json").json
        results = json.loads(gzip.decompress((folder / name).read_bytes()))["results"]
        assert len(results) == len(history)
        space = read_recorded(folder / name)
        assert space.problem is not None
        assert space.problem.key.replace(" ", "_").replace("=", "_") == name.partition("_run")[0]
        assert sorted(space.times_s.tolist()) == sorted(trial["median_s"] for trial in history)


@pytest.mark.slow
def test_each_recording_is_replayed(grouped: Tuner, tmp_path: Path) -> None:
    folder = tmp_path / "t4"
    grouped("export", "--format", "t4", "--campaign", "1", "-o", str(folder))
    options = ("64x8x8", "--dtype", "f64", "--align", "64", "--sampler", "exhaustive", "--json")
    done = grouped("tune", "matmul", *options, "--target", f"replay:{folder / NAMES[1]}")
    assert done.code == 0, done.err
    best = grouped("tune", "--resume", "campaign:1", "--json").json["problems"][1]["best"]
    assert done.json["best"]["knobs"] == best["knobs"]


@pytest.mark.slow
def test_runs_are_named_one_by_one_too(grouped: Tuner, tmp_path: Path) -> None:
    folder = tmp_path / "t4"
    done = grouped("export", "--format", "t4", "--run", "2", "--run", "2", "-o", str(folder))
    assert done.code == 0, done.err
    assert [path.name for path in folder.iterdir()] == [NAMES[1]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--campaign", "1"), "--format t4: writes a file per run into a folder\nhint: -o DIR"),
        (("--campaign", "1", "-o", "OUT", "matmul", "8x8x8"), "--campaign cannot be combined with matmul"),
        (("--run", "1", "-o", "OUT", "--stock"), "--run cannot be combined with --stock: all trials"),
        (("--campaign", "1", "-o", "OUT", "--trial", "3"), "--campaign cannot be combined with --trial"),
        (("--campaign", "7", "-o", "OUT"), "campaign: found 7, allowed 1 to 1"),
        (("--run", "9", "-o", "OUT"), "9"),
        (("--campaign", "1", "-o", "FILE"), "is a file, not a folder to write into"),
    ],
)
def test_what_has_no_file_per_run_is_refused(
    grouped: Tuner, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "file").write_text("")
    places = {"OUT": str(tmp_path / "out"), "FILE": str(tmp_path / "file")}
    named = (places.get(each, each) for each in options)
    assert message in grouped.refused("export", "--format", "t4", *named)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_run_without_trials_is_named_and_left_out(grouped: Tuner, tmp_path: Path) -> None:
    shapes = tmp_path / "shapes.yaml"
    grouped("tune", "--shapes", str(shapes), "--trials", "1", "--target", "fake")
    done = grouped("export", "--format", "t4", "--campaign", "2", "-o", str(tmp_path / "out"))
    assert done.code == 0, done.err
    assert "note: run 4: has no trials: matmul 64x8x8 f64 nn none align=64" in done.err
    assert len(list((tmp_path / "out").iterdir())) == 1


@pytest.mark.slow
def test_a_replay_is_no_recording_of_its_own(grouped: Tuner, tmp_path: Path) -> None:
    folder = tmp_path / "t4"
    grouped("export", "--format", "t4", "--run", "1", "-o", str(folder))
    target = f"replay:{folder / NAMES[0]}"
    grouped("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--target", target)
    refused = grouped.refused("export", "--format", "t4", "--run", "3", "-o", str(tmp_path / "out"))
    assert "t4: run 3: is a replay" in refused
