"""A choice stands for installed libraries that multiply the type, or is refused in one line."""

from dataclasses import replace
from functools import partial

import pytest

from tuner.core.errors import UsageError
from tuner.core.problem import BatchMatmul, Matmul
from tuner.targets.cpu import baseline_libraries
from tuner.targets.cpu.baseline_libraries import (
    BEST,
    DEFAULT,
    LIBRARIES,
    baseline_environment,
    chosen_libraries,
    recorded_library,
)


def nothing() -> None:
    """Returns None, as for a library that is not installed."""


def install(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Makes libraries look installed: those of ``names`` and OpenBLAS alone."""
    for name, library in LIBRARIES.items():
        is_there = name == "openblas" or name in names
        path = f"/lib/{name}.so" if is_there else None
        monkeypatch.setitem(LIBRARIES, name, replace(library, find=partial(str, path) if path else nothing))
    for name, function in (("onednn", "find_onednn"), ("onednn-torch", "find_torch")):
        monkeypatch.setattr(baseline_libraries, function, LIBRARIES[name].find)


@pytest.mark.parametrize(
    ("dtype", "installed", "library"),
    [
        ("f32", ("mkl", "blis", "onednn", "onednn-torch"), "openblas"),
        ("f64", ("mkl",), "openblas"),
        ("bf16", ("mkl", "onednn", "onednn-torch"), "onednn-torch"),
        ("bf16", ("mkl", "onednn"), "onednn"),
        ("bf16", (), "onednn-torch"),  # which says that torch is missing
        ("i8", ("mkl", "onednn", "onednn-torch"), "onednn"),
        ("i8", ("onednn-torch",), "onednn-torch"),
        ("i8", ("mkl",), "openblas"),  # as f32
    ],
)
def test_the_default_follows_the_type(
    monkeypatch: pytest.MonkeyPatch, dtype: str, installed: tuple[str, ...], library: str
) -> None:
    install(monkeypatch, *installed)
    assert chosen_libraries(DEFAULT, Matmul(8, 8, 8, dtype)) == (library,)


@pytest.mark.parametrize(
    ("dtype", "installed", "libraries"),
    [
        ("f32", (), ("openblas",)),
        ("f32", ("mkl", "blis", "onednn", "onednn-torch"), ("openblas", "mkl", "blis", "onednn")),
        ("bf16", ("mkl", "blis", "onednn", "onednn-torch"), ("mkl", "onednn", "onednn-torch")),
        ("i8", ("mkl", "blis", "onednn", "onednn-torch"), ("onednn", "onednn-torch")),
        ("i8", ("mkl",), ("openblas",)),
    ],
)
def test_the_best_is_sought_among_all_that_multiply_the_type(
    monkeypatch: pytest.MonkeyPatch, dtype: str, installed: tuple[str, ...], libraries: tuple[str, ...]
) -> None:
    install(monkeypatch, *installed)
    assert chosen_libraries(BEST, Matmul(8, 8, 8, dtype)) == libraries


def test_a_result_of_bf16_is_compared_with_libraries_that_store_one(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "mkl", "onednn", "onednn-torch")
    problem = Matmul(8, 8, 8, "bf16", output="bf16")
    assert chosen_libraries(BEST, problem) == ("onednn", "onednn-torch")
    with pytest.raises(
        UsageError, match=r"^baseline mkl: cannot multiply bf16 into bf16; --baseline best, or"
    ):
        chosen_libraries("mkl", problem)


def test_torch_is_no_choice_for_a_batch_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "onednn-torch")
    assert chosen_libraries(BEST, BatchMatmul(2, 8, 8, 8, "i8")) == ("openblas",)
    assert chosen_libraries(DEFAULT, BatchMatmul(2, 8, 8, 8, "i8")) == ("openblas",)


def test_onednn_stands_for_torch_where_its_own_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "onednn-torch")
    assert chosen_libraries("onednn", Matmul(8, 8, 8, "bf16")) == ("onednn-torch",)
    install(monkeypatch, "onednn", "onednn-torch")
    assert chosen_libraries("onednn", Matmul(8, 8, 8, "bf16")) == ("onednn",)
    assert chosen_libraries("onednn-torch", Matmul(8, 8, 8, "bf16")) == ("onednn-torch",)


@pytest.mark.parametrize(
    ("choice", "dtype", "message", "hint"),
    [
        ("mk", "f32", "baseline: found 'mk', allowed best, openblas, mkl, blis, onednn", "did you mean mkl?"),
        ("mkl", "f32", "baseline mkl: not installed", "pip install mkl"),
        ("blis", "f64", "baseline blis: not installed", "pip install blis"),
        ("onednn", "f32", "baseline onednn: not installed", "pip install onednn"),
        ("mkl", "i8", "baseline mkl: cannot multiply i8", "one of openblas, onednn, onednn-torch"),
        ("openblas", "bf16", "baseline openblas: cannot multiply bf16", "one of mkl, onednn, onednn-torch"),
        ("onednn", "f64", "baseline onednn: cannot multiply f64", "one of openblas, mkl, blis"),
    ],
)
def test_what_cannot_be_a_baseline_is_refused_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, choice: str, dtype: str, message: str, hint: str
) -> None:
    install(monkeypatch)
    with pytest.raises(UsageError) as refused:
        chosen_libraries(choice, Matmul(8, 8, 8, dtype))
    assert refused.value.message.startswith(message)
    assert refused.value.hint.endswith(hint)


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
    assert recorded_library(name, Matmul(8, 8, 8, dtype)) == choice


def test_the_process_of_a_library_has_its_number_of_threads_and_no_foreign_settings() -> None:
    environment = dict(baseline_environment("mkl", 3))
    assert environment["MKL_NUM_THREADS"] == environment["BLIS_NUM_THREADS"] == "3"
    assert environment["OPENBLAS_CORETYPE"] is environment["MKL_ENABLE_INSTRUCTIONS"] is None
    assert environment["ONEDNN_MAX_CPU_ISA"] is None
