"""A choice stands for installed libraries that multiply the type, or is refused in one line."""

import ctypes
import re
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from tests.runtime.c_libraries import build_library
from tests.tuning.fakes import present
from tuner.core.errors import UsageError
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import Problem
from tuner.core.processors import PROCESSORS
from tuner.runtime.cpu.host import LIMIT_VARIABLE
from tuner.targets.cpu import baseline_libraries
from tuner.targets.cpu.baseline_libraries import (
    BEST,
    DEFAULT,
    LIBRARIES,
    BaselineLibrary,
    chosen_libraries,
    load_library,
    widened_note,
)

F32, F64, BF16, F16, I8 = (Matmul(8, 8, 8, dtype) for dtype in ("f32", "f64", "bf16", "f16", "i8"))
Names = tuple[str, ...]
BYTES_IN_BATCHES = BatchMatmul(2, 8, 8, 8, "i8")
ALL = ("mkl", "blis", "onednn", "onednn-torch")
GUIDE = Path(__file__).parents[3] / "docs/guides/tuning.md"
QUANTIZED_LIBRARIES = ("onnxruntime", "openvino")


def by(weights: str, dtype: str = "f32", n: int = 64, k: int = 256, **options: Any) -> Problem:
    """Returns a quantized matmul of a format."""
    return Matmul(2, n, k, dtype, "nt", weights=weights, **options)


def by_constant(dtype: str, **options: Any) -> Problem:
    """Returns a matmul by a constant B."""
    return Matmul(2, 64, 256, dtype, weights="constant", **options)


def install(monkeypatch: pytest.MonkeyPatch, *names: str, processor: str = "znver4") -> None:
    """Makes libraries look installed on a processor: those of ``names`` and OpenBLAS alone."""
    monkeypatch.setattr(baseline_libraries, "describe_machine", lambda _: PROCESSORS[processor].machine)
    paths = {id(LIBRARIES[name]): f"/lib/{name}.so" for name in ("openblas", *names)}
    monkeypatch.setattr(BaselineLibrary, "find", lambda library: paths.get(id(library)))


@pytest.mark.parametrize(
    ("choice", "problem", "installed", "libraries"),
    [
        (DEFAULT, F32, ALL, ("openblas",)),
        (DEFAULT, F64, ("mkl",), ("openblas",)),
        (DEFAULT, BF16, ("mkl", "onednn", "onednn-torch"), ("onednn-torch",)),
        (DEFAULT, BF16, ("mkl", "onednn"), ("onednn",)),
        (DEFAULT, BF16, (), ("openblas",)),  # as f32
        (DEFAULT, replace(BF16, output="bf16"), ("mkl",), ("openblas",)),
        (DEFAULT, I8, ("mkl", "onednn", "onednn-torch"), ("onednn-torch",)),
        (DEFAULT, I8, ("mkl", "onednn"), ("onednn",)),
        (DEFAULT, I8, ("onednn-torch",), ("onednn-torch",)),
        (DEFAULT, I8, ("mkl",), ("openblas",)),  # as f32
        (DEFAULT, BYTES_IN_BATCHES, ("onednn-torch",), ("openblas",)),  # of which torch multiplies none
        # all that multiply the type, and store the result's
        (BEST, F32, (), ("openblas",)),
        (BEST, F32, ALL, ("openblas", "mkl", "blis", "onednn")),
        (BEST, BF16, ALL, ("mkl", "onednn", "onednn-torch")),
        (BEST, replace(BF16, output="bf16"), ALL, ("onednn", "onednn-torch")),
        (DEFAULT, F16, ("mkl", "blis"), ("openblas",)),  # as f32
        (BEST, replace(F16, output="f16"), ALL, ("onednn", "onednn-torch")),
        (BEST, I8, ALL, ("onednn", "onednn-torch")),
        (BEST, I8, ("mkl",), ("openblas",)),
        (BEST, BYTES_IN_BATCHES, ("onednn-torch",), ("openblas",)),
        # a constant B is multiplied as any other
        (DEFAULT, by_constant("f32"), ALL, ("openblas",)),
        (BEST, by_constant("bf16", output="bf16", cache="weights-cold"), ALL, ("onednn", "onednn-torch")),
        ("mkl", by_constant("f64", epilogue="bias_relu"), ("mkl",), ("mkl",)),
        # oneDNN stands for torch where its own library is missing
        ("onednn", BF16, ("onednn-torch",), ("onednn-torch",)),
        ("onednn", BF16, ("onednn", "onednn-torch"), ("onednn",)),
        ("onednn-torch", BF16, ("onednn", "onednn-torch"), ("onednn-torch",)),
    ],
)
def test_a_choice_stands_for_installed_libraries_that_multiply_the_type(
    monkeypatch: pytest.MonkeyPatch, choice: str, problem: Problem, installed: Names, libraries: Names
) -> None:
    install(monkeypatch, *installed)
    assert chosen_libraries(choice, problem) == libraries


@pytest.mark.parametrize(
    ("choice", "problem", "libraries"),
    [
        (DEFAULT, BF16, ("openblas",)),
        (DEFAULT, I8, ("openblas",)),  # exact: oneDNN's sums saturate there
        (BEST, BF16, ("mkl", "onednn", "onednn-torch", "openblas")),
        (BEST, F16, ("onednn", "onednn-torch", "openblas")),
        (BEST, F32, ("openblas", "mkl", "blis", "onednn")),
        ("onednn", BF16, ("onednn",)),
    ],
)
def test_without_avx512_types_below_f32_are_compared_with_products_of_f32(
    monkeypatch: pytest.MonkeyPatch, choice: str, problem: Problem, libraries: Names
) -> None:
    install(monkeypatch, *ALL, processor="znver3")
    assert chosen_libraries(choice, problem) == libraries
    note = widened_note(choice, problem)
    is_widened = (choice, problem) in ((DEFAULT, BF16), (DEFAULT, I8))
    assert note.startswith(f"no library multiplies {problem.dtype} well on this processor: ") == is_widened


@pytest.mark.parametrize(
    ("choice", "problem", "installed", "note"),
    [
        (DEFAULT, I8, (), "no installed library multiplies i8: the baseline is openblas on f32; pip install"),
        (BEST, BF16, ("blis",), "no installed library multiplies bf16: the baseline is openblas on f32"),
        (DEFAULT, replace(BF16, output="bf16"), ("mkl",), "no installed library multiplies bf16: "),
        ("openblas", I8, (), ""),  # as the user says
        (DEFAULT, I8, ("onednn-torch",), ""),
        (DEFAULT, F32, (), ""),
        (DEFAULT, by("i4-g64-f16"), (), ""),
    ],
)
def test_a_note_says_that_the_baseline_multiplies_another_type(
    monkeypatch: pytest.MonkeyPatch, choice: str, problem: Problem, installed: Names, note: str
) -> None:
    install(monkeypatch, *installed)
    found = widened_note(choice, problem)
    assert found.startswith(note)
    assert bool(found) == bool(note)


@pytest.mark.parametrize("choice", [DEFAULT, BEST])
@pytest.mark.parametrize(
    ("problem", "libraries"),
    [
        (by("i4-g32-f16-a8group"), ("onnxruntime", "openvino")),
        (by("i4-g128-bf16-zp-a8row", "bf16"), ("onnxruntime", "openvino")),
        (by("i4-g64-f16"), ("onnxruntime", "openvino")),
        (by("i4-g96-f32", k=192), ("openvino",)),
        (by("i4-g64-f16-zp", "bf16"), ("openvino",)),
        (by("i4-g64-f32", "bf16"), ("openvino",)),
        (by("i8-channel-f16-a8row"), ("openvino",)),
        (by("i8-g128-f16-a8group"), ("onnxruntime", "openvino")),
        (by("i4-g64-f16", "bf16", output="bf16"), ()),
        (by("i4-g64-f16", cache="cold"), ()),
    ],
)
def test_a_quantized_matmul_is_compared_with_all_that_have_its_format(
    monkeypatch: pytest.MonkeyPatch, choice: str, problem: Problem, libraries: Names
) -> None:
    install(monkeypatch, *QUANTIZED_LIBRARIES)
    assert chosen_libraries(choice, problem) == libraries
    install(monkeypatch)
    assert chosen_libraries(choice, problem) == ()


@pytest.mark.parametrize(
    ("choice", "problem", "message", "hint"),
    [
        ("mk", F32, "baseline: found 'mk', allowed best, openblas, mkl, blis, onednn", "did you mean mkl?"),
        ("mkl", F32, "baseline mkl: not installed", "pip install mkl"),
        ("blis", F64, "baseline blis: not installed", "pip install blis"),
        ("onednn", F32, "baseline onednn: not installed", "pip install onednn"),
        ("mkl", I8, "baseline mkl: cannot multiply i8", "one of openblas, onednn, onednn-torch"),
        ("blis", BF16, "baseline blis: cannot multiply bf16", "one of openblas, mkl, onednn, onednn-torch"),
        ("onednn", F64, "baseline onednn: cannot multiply f64", "one of openblas, mkl, blis"),
        ("mkl", replace(BF16, output="bf16"), "baseline mkl: cannot multiply bf16 into bf16", "onednn-torch"),
        ("openblas", by("i4-g32-f16"), "baseline openblas: cannot multiply f32*i4-g32-f16", "openvino"),
        ("onnxruntime", F32, "baseline onnxruntime: cannot multiply f32", "mkl, blis, onednn"),
        ("onnxruntime", by_constant("f32"), "baseline onnxruntime: cannot multiply f32", "mkl, blis, onednn"),
        ("onnxruntime", by("i4-g32-f16"), "baseline onnxruntime: not installed", "onnxruntime onnx"),
    ],
)
def test_what_cannot_be_a_baseline_is_refused_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, choice: str, problem: Problem, message: str, hint: str
) -> None:
    install(monkeypatch)
    with pytest.raises(UsageError) as refused:
        chosen_libraries(choice, problem)
    assert refused.value.message.startswith(message)
    assert re.search(rf"{re.escape(hint)}(?:, [\w-]+)*$", refused.value.hint)  # others may follow


@pytest.mark.parametrize(("name", "library"), LIBRARIES.items())
def test_each_library_has_a_matmul_and_a_row_of_the_guide(name: str, library: BaselineLibrary) -> None:
    assert callable(resolve_name(library.matmul)) if library.matmul else library.weights is not None
    (row,) = (line for line in GUIDE.read_text().splitlines() if line.startswith(f"| `{name}` |"))
    assert [dtype for dtype in (*library.dtypes, *library.widened) if dtype not in row] == []


@pytest.mark.parametrize(
    ("name", "dtype", "choice"),
    [
        ("MKL 2026.2 avx512", "f32", "mkl"),
        ("BLIS 0.9.0 skx", "f64", "blis"),
        ("openblas 0.3.30 SkylakeX, f32 for i8", "i8", "openblas"),
        ("oneDNN 3.13.2 brg_matmul:avx512_core_amx, by a SYCL queue", "bf16", "onednn"),
        ("oneDNN 3.12.0 brg_matmul:avx512_core_amx through torch 2.13.0 (called from Python)", "bf16", ""),
        ("cuBLAS 13.1", "f32", ""),
        ("BLIS 0.9.0 skx", "i8", ""),
    ],
)
def test_a_recorded_library_is_chosen_again_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, name: str, dtype: str, choice: str
) -> None:
    install(monkeypatch, "mkl", "blis", "onednn")  # and no torch
    assert baseline_libraries.recorded_library(name, Matmul(8, 8, 8, dtype)) == choice


@pytest.mark.parametrize(
    ("name", "weights", "dtype", "choice"),
    [
        ("onnxruntime 1.32.0 MatMulNBits, accuracy level 4", "i4-g32-f16-a8row", "f32", "onnxruntime"),
        ("OpenVINO 2026.4.1 in bf16", "i4-g32-f16", "bf16", "openvino"),
        ("torch 2.13.0 int4pack, bf16 result", "i4-g32-f16", "bf16", ""),
    ],
)
def test_a_recorded_library_of_a_quantized_matmul_is_chosen_again(
    monkeypatch: pytest.MonkeyPatch, name: str, weights: str, dtype: str, choice: str
) -> None:
    install(monkeypatch, *QUANTIZED_LIBRARIES)
    assert baseline_libraries.recorded_library(name, by(weights, dtype)) == choice


def test_the_process_of_a_library_has_its_number_of_threads_and_no_foreign_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    environment = dict(baseline_libraries.baseline_environment("mkl", 3))
    assert environment["MKL_NUM_THREADS"] == environment["BLIS_NUM_THREADS"] == "3"
    assert environment["OPENBLAS_CORETYPE"] is environment["MKL_ENABLE_INSTRUCTIONS"] is None
    assert environment["ONEDNN_MAX_CPU_ISA"] is None


@pytest.mark.parametrize(
    ("limit", "openblas", "onednn"),
    [
        ("znver3", "Haswell", "AVX2"),
        ("alderlake", "Haswell", "AVX2_VNNI"),
        ("x86-64-v4", "SkylakeX", "AVX512_CORE"),
        ("znver4", "SkylakeX", "AVX512_CORE_BF16"),
        ("sapphirerapids", "SkylakeX", "AVX512_CORE_AMX"),
    ],
)
def test_libraries_are_held_to_the_instructions_of_a_lesser_processor(
    limit: str, openblas: str, onednn: str
) -> None:
    environment = dict(baseline_libraries.baseline_environment("openblas", 1, limit))
    assert (environment["OPENBLAS_CORETYPE"], environment["ONEDNN_MAX_CPU_ISA"]) == (openblas, onednn)
    assert environment[LIMIT_VARIABLE] == limit


# Libraries are found in the folders of wheels, else by the loader, and load what lies next to them.


def test_the_first_name_that_is_there_is_found_else_by_the_loader(tmp_path: Path) -> None:
    (tmp_path / "libfound.so").touch()
    (tmp_path / "libfound.so.2").touch()
    names = ("libfound.so.3", "libfound.so.2", "libfound.so")
    folders = (tmp_path / "missing", tmp_path)
    assert baseline_libraries.find_shared_library(names, folders) == str(tmp_path / "libfound.so.2")
    found = baseline_libraries.find_shared_library(("libc.so.99",), (tmp_path,))
    assert present(found).startswith("libc.so")
    assert baseline_libraries.find_shared_library(("libnoneofthese.so",), (tmp_path,)) is None


def test_an_extension_is_found_without_importing_its_package() -> None:
    assert baseline_libraries.find_extension("ctypes", "__in*.py") == ctypes.__file__
    assert baseline_libraries.find_extension("ctypes", "*.f90") is None
    assert baseline_libraries.find_extension("no_such_package", "*") is None


@pytest.fixture
def two_libraries(tmp_path: Path) -> Path:
    """Compiles libouter.so, which needs libinner.so of the same folder and says so to nobody."""
    (tmp_path / "inner.c").write_text("int inner(void) { return 41; }")
    (tmp_path / "outer.c").write_text("int inner(void); int outer(void) { return inner() + 1; }")
    # names of this test alone: the loader knows those that it has loaded
    inner, outer = tmp_path / f"libinner_{tmp_path.name}.so", tmp_path / f"libouter_{tmp_path.name}.so"
    build_library(inner, tmp_path / "inner.c", f"-Wl,-soname,{inner.name}")
    return build_library(outer, tmp_path / "outer.c", inner)


def test_a_library_is_loaded_with_what_it_needs_from_its_folder_or_reported(two_libraries: Path) -> None:
    inner = two_libraries.with_name(two_libraries.name.replace("outer", "inner"))
    hidden = inner.rename(inner.with_suffix(".hidden"))
    with pytest.raises(OSError, match=r"^libinner_\w+\.so: cannot open shared object file"):
        load_library(str(two_libraries))
    hidden.rename(inner)
    assert load_library(str(two_libraries)).outer() == 42
