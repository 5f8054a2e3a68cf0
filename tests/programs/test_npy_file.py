import io
from pathlib import Path

import numpy as np
import pytest

from tuner.core.errors import UsageError
from tuner.programs.arguments import read_npy


def claiming(path: Path, shape: str, dtype: str = "<f4") -> Path:
    """Writes a file whose header claims a shape, and 64 bytes of content."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (16,)})
    header = file.getvalue().replace(b"'<f4'", repr(dtype).encode()).replace(b"(16,)", shape.encode())
    head, text = header[:10], header[10:].rstrip()
    text += b" " * (-(len(head) + len(text) + 1) % 64) + b"\n"
    path.write_bytes(head[:8] + len(text).to_bytes(2, "little") + text + bytes(64))
    return path


def test_an_array_is_read_as_it_was_written(tmp_path: Path) -> None:
    array = np.arange(6.0).reshape(2, 3)
    np.save(tmp_path / "x.npy", array)
    assert np.array_equal(read_npy(tmp_path / "x.npy", "x"), array)
    np.save(tmp_path / "none.npy", np.zeros((0, 3)))
    assert read_npy(tmp_path / "none.npy", "x").shape == (0, 3)
    assert np.array_equal(read_npy(claiming(tmp_path / "y.npy", "(16,)"), "y"), np.zeros(16, np.float32))


@pytest.mark.parametrize(
    "shape",
    ["(17,)", "(10**3,)", f"({2**40},)", f"({2**70},)", f"({2**40}, {2**40})", "(-1,)", "(1e9,)", "7"],
)
def test_a_header_that_claims_more_than_there_is_or_no_shape_is_refused(tmp_path: Path, shape: str) -> None:
    path = claiming(tmp_path / "x.npy", shape)
    with pytest.raises(UsageError, match=r"^x: cannot be read as \.npy: .") as caught:
        read_npy(path, "x")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"text", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{"])
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"^x: cannot be read as \.npy: ."):
        read_npy(path, "x")


def test_objects_and_several_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object))
    with pytest.raises(UsageError, match=r"^x: cannot be read as \.npy: "):
        read_npy(tmp_path / "x.npy", "x")
    np.savez(tmp_path / "x.npz", np.zeros(1), np.zeros(2))
    with pytest.raises(UsageError, match=r"^x: several arrays in one file: save one as \.npy$"):
        read_npy(tmp_path / "x.npz", "x")
