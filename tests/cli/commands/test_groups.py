"""A product of groups of rows from the command line: tuned, listed, exported, checked, refused."""

from pathlib import Path

import pytest

from tests.cli.conftest import Tuner, require
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

PROBLEM = "grouped_matmul 4x70x72x48 --dtype bf16 --layout nt --target simulator:sm_90"
KEY = "grouped_matmul 4x70x72x48 bf16 nt none"


@pytest.mark.slow
def test_groups_are_tuned_listed_exported_and_checked(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", real_backends())
    tuned = tuner.done(f"tune {PROBLEM} --trials 1").out
    require(tuned, f"problem   {KEY}, for", "1 trial: 1 verified, 0 failed")
    (trial,) = tuner("history --op grouped_matmul --shape 4x70x72x48 --json").json
    assert (trial["problem"]["op"], trial["status"]) == ("grouped_matmul", "verified")
    path = tmp_path / "verified.mlir"
    tuner.done("export --trial 1 -o", str(path))
    require(path.read_text(), f"// {KEY} on simulator:sm_90", '"tuner.choose_groups"')
    assert tuner.done("check", str(path)).out == "correct; 5040 elements verified, nothing timed\n"


@pytest.mark.slow
def test_shapes_of_a_file_may_have_groups(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", real_backends())
    file = tmp_path / "shapes.yaml"
    file.write_text("- {op: grouped_matmul, shape: 3x40x40x32, dtype: bf16}\n")
    tuned = tuner.done(f"tune --shapes {file} --target simulator:sm_90 --trials 1").out
    require(tuned, "grouped_matmul 3x40x40x32 bf16 nn")


def test_the_payload_says_what_is_computed(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", real_backends())
    payload = tuner.done(f"lower {PROBLEM} --to source").out
    require(payload, "%offsets: memref<5xi32>", "%b: memref<4x72x48xbf16>", "scf.for %group")


@pytest.mark.parametrize(
    ("arguments", "line", "hint"),
    [
        ("4x8x8x16", "dtype of grouped_matmul: found 'f32', allowed f16, bf16", ""),
        ("8x8x16", "shape: found '8x8x16', allowed GxMxNxK such as 8x4096x1024x2048", "of one group it is"),
        (
            "4x8x8x16 --dtype f16 --epilogue relu",
            "epilogue of grouped_matmul: found 'relu', allowed none",
            "",
        ),
        ("4x8x8x16 --dtype f16 --weights i4", "--weights cannot be combined with grouped_matmul", "matmul"),
        ("4x8x8x16 --dtype f16 --target cpu", "no strategy can do grouped_matmul", "allowed ptx"),
    ],
)
def test_a_wrong_use_of_groups_is_one_line(arguments: str, line: str, hint: str, tmp_path: Path) -> None:
    refused = Tuner(tmp_path / "results.db", real_backends()).refused(f"tune grouped_matmul {arguments}")
    assert line in refused
    assert hint in refused
