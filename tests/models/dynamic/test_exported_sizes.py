"""Programs of a dynamic size in a folder: written once, loaded without a compiler, right at each size."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tuner.core.dynamic_sizes import SIZE_N, SizeRange, static_size
from tuner.core.errors import UsageError
from tuner.models.run.exported import DOCUMENT, WEIGHTS, document_text
from tuner.models.run.sized_function import SizedFunction, SizedMember
from tuner.models.run.sized_types import NUMBER, SizeArgument, SizedSignature, SizedType

K, N = 16, 32
LEAST, GREATEST = 5, 8
WEIGHT = np.random.default_rng(0).standard_normal((K, N)).astype(np.float32)
# each row by the weight, and the mean over the rows of its exponentials, which reads a mask and n
PROGRAM = f"""
func.func @mix(%x: tensor<?x{K}xf32>) -> (tensor<?x{N}xf32>, tensor<{N}xf32>) {{
  %w = arith.constant dense<"0x{WEIGHT.tobytes().hex()}"> : tensor<{K}x{N}xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x{K}xf32>
  %to = tensor.empty(%n) : tensor<?x{N}xf32>
  %cleared = linalg.fill ins(%zero : f32) outs(%to : tensor<?x{N}xf32>) -> tensor<?x{N}xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x{K}xf32>, tensor<{K}x{N}xf32>)
                     outs(%cleared : tensor<?x{N}xf32>) -> tensor<?x{N}xf32>
  %row = tensor.empty() : tensor<{N}xf32>
  %start = linalg.fill ins(%zero : f32) outs(%row : tensor<{N}xf32>) -> tensor<{N}xf32>
  %sum = linalg.reduce ins(%y : tensor<?x{N}xf32>) outs(%start : tensor<{N}xf32>) dimensions = [0]
    (%element: f32, %total: f32) {{
      %exponential = math.exp %element : f32
      %more = arith.addf %exponential, %total : f32
      linalg.yield %more : f32
    }}
  return %y, %sum : tensor<?x{N}xf32>, tensor<{N}xf32>
}}
"""
IN_A_FRESH_PROCESS = """
import sys
for name in ("torch", "torch_mlir", "numba_cuda_mlir"):
    sys.modules[name] = None  # cannot be imported
import numpy as np
import tuner
program = tuner.load(sys.argv[1])
x = np.load(sys.argv[2])
results = [array for n in (6, 5, 8) for array in program(x[:n])]
np.savez(sys.argv[3], *results)
try:
    program(x)
except tuner.UsageError as error:
    print(error)
"""


def rows(n: int) -> "np.ndarray[Any, np.dtype[Any]]":
    return np.random.default_rng(1).standard_normal((n, K)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("exported") / "mix"
    program = tuner.compile_program(PROGRAM, "cpu", sizes=f"{LEAST}..{GREATEST}")
    assert isinstance(program, SizedFunction)
    program.export(path)
    return path


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A folder that a test may change."""
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_a_process_without_torch_and_a_compiler_runs_all_sizes(folder: Path, tmp_path: Path) -> None:
    x = rows(GREATEST + 1)
    np.save(tmp_path / "x.npy", x)
    paths = map(str, (folder, tmp_path / "x.npy", tmp_path / "results.npz"))
    command = [sys.executable, "-c", IN_A_FRESH_PROCESS, *paths]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.stdout, ran.stderr) == ("mix: found n = 9, allowed 5..8\n", "")
    with np.load(tmp_path / "results.npz") as results:
        for number, n in enumerate((6, 5, 8)):
            expected = x[:n] @ WEIGHT
            np.testing.assert_allclose(results[f"arr_{2 * number}"], expected, rtol=1e-5, atol=1e-5)
            sums = np.exp(expected).sum(0)
            np.testing.assert_allclose(results[f"arr_{2 * number + 1}"], sums, rtol=1e-5, atol=1e-5)


def test_each_weight_is_written_once_and_a_loaded_program_is_exported_again(folder: Path, copy: Path) -> None:
    document = json.loads((folder / DOCUMENT).read_text())
    assert {file.name for file in folder.iterdir()} == {
        DOCUMENT,
        WEIGHTS,
        *(f"code-{n}.o" for n in (5, 8)),
    }
    assert [made["size"] for made in document["programs"]] == [5, 8]
    assert document["weight_bytes"] == [WEIGHT.nbytes]
    (copy / "code-7.o").write_bytes(b"")  # of an export of more sizes
    program = tuner.load(copy)
    assert isinstance(program, SizedFunction)
    assert repr(program) == "SizedFunction(mix, n = 5..8; 0 of 2 programs compiled)"
    program.export(copy)
    assert {file.name: file.read_bytes() for file in copy.iterdir()} == {
        file.name: file.read_bytes() for file in folder.iterdir()
    }


def test_a_static_program_may_take_and_return_in_another_order() -> None:
    rows_of_n = SizedType((SIZE_N, static_size(2)), "f32")
    number = SizedType((), "f32")
    signature = SizedSignature("f", (rows_of_n, number), (rows_of_n, number), reads=(1, 0), returns=(1, 0))
    added = (SizeArgument(NUMBER, SIZE_N, (), "i64"),)

    def function(factor: Any, x: Any, n: Any) -> Any:
        assert x.shape == (4, 2)
        return (np.float32(n) + factor, x * factor)

    member: Any = SizedMember(4, added, function)  # type: ignore[arg-type]
    program = SizedFunction(signature, SizeRange(1, 4), (4,), lambda _: member)
    for n in (4, 3):
        x = np.ones((n, 2), np.float32)
        scaled, count = program(x, np.array(2, np.float32))
        np.testing.assert_array_equal(scaled, x * 2)
        assert count == n + 2


@pytest.mark.parametrize("name", ["code-5.o", WEIGHTS])
def test_a_changed_file_is_refused(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[-1] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(UsageError, match=rf"{name}: was changed after the export: its \S+ is another$"):
        tuner.load(copy)


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("sizes", [5, 9], "is damaged: its programs are not of sizes up to 9"),
        ("sizes", [3], r"is damaged: sizes: found \[3\], allowed a list of 2"),
        ("programs", [], "is damaged: its programs are not of sizes up to 8"),
        ("weight_bytes", [], "weights of other sizes|out of range"),
        ("arguments", [{"shape": [1], "element": "f32"}], r"is damaged: arguments\[0\]\.shape\[0\]: found 1"),
    ],
)
def test_a_document_that_does_not_fit_is_refused(copy: Path, key: str, value: object, line: str) -> None:
    document = json.loads((copy / DOCUMENT).read_text())
    hashes = document.pop("files")
    document.pop("sha256")
    (copy / DOCUMENT).write_text(document_text({**document, key: value}, hashes))
    with pytest.raises(UsageError, match=line):
        tuner.load(copy)
