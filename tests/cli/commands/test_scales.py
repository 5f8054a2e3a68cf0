"""A matmul with scales of blocks from the command line: tuned, listed, exported, checked, shown."""

from pathlib import Path

import pytest

from tests.cli.conftest import Tuner, require
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

PROBLEM = "matmul 70x130x144 --dtype e4m3 --layout nt --scales 1x128,128x128 --target simulator:sm_90a"
KEY = "scaled_matmul 70x130x144 e4m3 nt none scales=1x128,128x128"


def test_scales_are_tuned_listed_exported_and_checked(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", real_backends())
    tuned = tuner.done(f"tune {PROBLEM} --trials 1").out
    require(tuned, f"problem   {KEY}, for\n", "1 trial: 1 verified, 0 failed")
    require(tuner.done("history").out, "scaled_matmul 70x130x144 e4m3 nt", "simulator:sm_90a")
    (trial,) = tuner("history --op scaled_matmul --json").json
    assert (trial["problem"]["op"], trial["status"]) == ("scaled_matmul", "verified")
    path = tmp_path / "verified.mlir"
    tuner.done("export --trial 1 -o", str(path))
    require(path.read_text(), f"// {KEY} on simulator:sm_90a", '"tuner.set_aside_scales"(%matmul)')
    assert tuner.done("check", str(path)).out == "correct; 9100 elements verified, nothing timed\n"


def test_without_a_search_a_configuration_is_chosen_and_its_payload_has_both_scales(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", real_backends())
    payload = tuner.done(f"lower {PROBLEM} --to source").out
    require(payload, "%scale_a: memref<70x2xf32>", "%scale_b: memref<2x2xf32>", "k floordiv 128")
    path = tmp_path / "untuned.mlir"
    tuner.done(f"export {PROBLEM} --untuned -o", str(path))
    require(path.read_text(), "scales=1x128,128x128", "not tuned")


@pytest.mark.parametrize(
    ("command", "line", "hint"),
    [
        (
            "tune scaled_matmul 8x8x16",
            "operation: found 'scaled_matmul', allowed matmul, batch_matmul",
            "matmul 8x8x16 --scales 1x128,128x128",
        ),
        (
            "tune batch_matmul 2x8x8x16 --scales 1x128,128x128",
            "--scales cannot be combined with batch_matmul",
            "allowed is matmul",
        ),
        (
            "tune matmul 8x8x16 --scales 1x128,128x128",
            "dtype with scales: found 'f32', allowed e4m3, e5m2",
            "",
        ),
    ],
)
def test_a_wrong_use_of_scales_is_one_line(command: str, line: str, hint: str, tmp_path: Path) -> None:
    refused = Tuner(tmp_path / "results.db", real_backends()).refused(command)
    assert f"error: {line}" in refused
    assert hint in refused
