from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Tuner, require_fields
from tests.gpu.ptxsim.ptx.matmuls import DATA
from tests.texts import text_beside

SQUARE = text_beside(__file__, "SQUARE")


@pytest.fixture
def square(tmp_path: Path) -> str:
    path = tmp_path / "square.ptx"
    path.write_text(SQUARE)
    return str(path)


def test_arrays_are_read_and_written_and_a_fault_is_a_line(tuner: Tuner, square: str, tmp_path: Path) -> None:
    saved, array = tmp_path / "out.npz", tmp_path / "x.npy"
    done = tuner(f"ptx --block 64 --arg f32[50]=range --arg u32=50 --save {saved}", square)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("square: 1 block, 22 warp instructions\n")  # (5 + 5 + 1) * 2
    with np.load(saved) as arrays:
        np.testing.assert_array_equal(arrays["arg0"], np.arange(50.0, dtype=np.float32) ** 2)
    np.save(array, np.full((2, 2), 3.0))
    tuner.done(f"ptx --block 4 --arg f32[4]=@{array} --arg u32=4 --save {saved}", square)
    with np.load(saved) as arrays:
        assert arrays["arg0"].tolist() == [9.0] * 4
    done = tuner("ptx --block 64 --arg f32[50]=zeros --arg u32=64", square)
    assert (done.code, done.out) == (1, "")
    assert "out of bounds: thread (50, 0, 0) of block (0, 0, 0): found 4 bytes at byte 200 of x" in done.err


def test_conflicts_and_races_are_reported_and_a_race_fails(tuner: Tuner, tmp_path: Path) -> None:
    where = "--grid 2,2,1 --block 64,2 --shared 24576 --only 1,1"
    arrays = "--arg f16[128,64]=random --arg f16[64,128]=random --arg f32[128,128]=nan"
    document = tuner.done(f"ptx {where} {arrays} --json", str(DATA / "mma_f16.ptx")).json
    require_fields(document, kernel="matmul_kernel", blocks=1, conflict_ratio=1.0, races=[], benign=[])
    keys = {"line", "instruction", "wavefronts", "ideal_wavefronts", "ratio"}
    assert document["conflicts"][0].keys() == keys
    path = tmp_path / "racy.ptx"
    path.write_text((DATA / "transpose.ptx").read_text().replace("bar.sync \t0;", ""))
    text = "--grid 2,2 --block 32,8 --arg f32[64,64]=random --arg f32[64,64]=zeros"
    assert "race in shared memory" in tuner.failed(f"ptx {text}", str(path)).out


def test_wrong_arguments_are_reported(tuner: Tuner, square: str) -> None:
    for text, message in (
        (("--arg", "f32[4]"), "allowed TYPE[SIZES]=CONTENT"),
        (("--arg", "f33[4]=zeros"), "argument: type: found 'f33', allowed f16"),
        (("--arg", "f32[4]=four"), "content: found 'four', allowed random"),
        (("--arg", "u8[4]=300"), "content: found 300, allowed numbers of uint8"),
        (("--arg", "u32[4]=-1"), "content: found -1, allowed numbers of uint32"),
        (("--arg", "s32[4]=nan"), "argument: int32 has no nan"),
        (("--arg", "f32[999999999,9]=zeros"), "allowed up to 4 GiB"),
        (("--arg", "u32=x"), "found 'x', allowed a number"),
        (("--arg", "f32[4]=@none.npy"), "none.npy: cannot be read as .npy"),
        (("--grid", "1,2,3,4"), "grid: found '1,2,3,4', allowed x,y,z"),
        (("--arg", "u32=1"), "found 1 arguments, allowed 2"),
        (("--kernel", "cube"), "found no kernel 'cube', allowed square"),
        (("--arg", "f32[4]=ones", "--arg", "u32=1", "--only", "1"), "blocks: found (1, 0, 0), allowed"),
    ):
        assert message in tuner.refused("ptx", square, *text), text


def test_a_file_without_ptx_and_several_kernels_without_a_name_are_refused(tuner: Tuner, square: str) -> None:
    path = Path(square)
    path.write_text("module {}")
    line = "error: square.ptx:1: found 'module', allowed '.version'\n"
    assert tuner.refused("ptx", square) == f"{line}hint: tuner lower {square} --to ptx\n"
    path.write_text(SQUARE + SQUARE[SQUARE.index(".visible") :].replace("square", "again"))
    assert "kernels square, again\nhint: choose one with --kernel\n" in tuner.refused("ptx", square)
