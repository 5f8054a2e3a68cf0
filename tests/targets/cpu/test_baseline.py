"""The baseline beside: it answers right for every problem it is asked, and is timed for real."""

import re
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
import threadpoolctl

from tuner.core.errors import TunerError
from tuner.core.interfaces import Effort
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import LAYOUTS, Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.workers.worker import call_in_child
from tuner.targets.cpu.baseline import BaselineService
from tuner.targets.cpu.baseline_libraries import LIBRARIES, ONEDNN_TORCH, OPENBLAS, baseline_environment
from tuner.targets.cpu.blas import CompiledLibraryMatmul, openblas_code

pytestmark = pytest.mark.mlir
QUICK = Effort(budget_s=0.005, min_samples=3, max_samples=6)
SIZES = ((1, 1, 1), (1, 97, 33), (97, 1, 33), (5, 7, 1), (64, 64, 64), (33, 77, 41))
# of the smallest problems torch multiplies some without oneDNN
ONEDNN = r"oneDNN 3\.\d+\.\d+ [\w:]+(, by a SYCL queue)?"
TORCH = r"(oneDNN 3\.[\d.]+ [\w:]+ through )?torch [\w.+]+ \(called from Python{}\)"
NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: no oneDNN")


def require_right(problem: Problem) -> CompiledLibraryMatmul:
    rng = np.random.default_rng(0)
    inputs = draw(problem, draw_base(problem, rng), rng)
    matmul = CompiledLibraryMatmul(problem, inputs, 1, openblas_code)
    matmul.result.fill(np.nan)
    matmul.repeat(2)
    assert compare(inputs, matmul.result)[0].max_error <= 1.0
    return matmul


@pytest.mark.drawn(2)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_openblas_answers_right(sizes: tuple[int, int, int], layout: str, dtype: str) -> None:
    require_right(MatmulProblem("matmul", sizes, dtype, layout))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("m", [1, 5])
def test_openblas_answers_each_pair_of_a_batch_right(m: int, layout: str) -> None:
    assert require_right(BatchMatmul(3, m, 7, 4, layout=layout)).name.endswith(", a call for each matrix")


def verified_in_a_child(library: str, problems: tuple[Problem, ...], threads: int = 1) -> tuple[str, ...]:
    """Returns the names of a library for problems, each verified in a process as a run starts it."""
    if LIBRARIES[library].find() is None:
        pytest.skip(f"{library} is not installed: {LIBRARIES[library].install}")
    if describe_machine().isa in LIBRARIES[library].slow_isas and any(
        each.dtype == "i8" for each in problems
    ):
        pytest.skip(f"{library}: sums of bytes saturate on this processor")
    work = partial(names_of, library, problems, threads)
    return call_in_child("baseline", work, 120.0, environment=baseline_environment(library, threads))


def names_of(library: str, problems: tuple[Problem, ...], threads: int) -> tuple[str, ...]:
    """Returns the library's name for each problem; a wrong result raises TunerError."""
    return tuple(BaselineService(problem, threads, 0, library).name for problem in problems)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("library", "dtype", "name"),
    [
        *(("mkl", dtype, r"MKL \d{4}\.\d+ \w+") for dtype in ("f32", "f64", "bf16")),
        *(("blis", dtype, r"BLIS \d[\w.]* \w+") for dtype in ("f32", "f64")),
        *(("onednn", dtype, ONEDNN) for dtype in ("f32", "bf16", "f16", "i8")),
        ("onednn-torch", "bf16", TORCH.format(r", bf16 result")),
        ("onednn-torch", "f16", TORCH.format(r", f16 result")),
        ("onednn-torch", "i8", TORCH.format("")),
    ],
)
def test_each_library_is_right_for_every_layout_and_named_with_its_kernel(
    library: str, dtype: str, name: str
) -> None:
    singles = [MatmulProblem("matmul", sizes, dtype, layout) for sizes in SIZES for layout in LAYOUTS]
    for found in verified_in_a_child(library, tuple(singles)):
        assert re.fullmatch(name, found)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["mkl", "blis", "onednn", "onednn-torch"])
def test_each_library_multiplies_each_pair_of_a_batch_right(library: str) -> None:
    dtype = LIBRARIES[library].dtypes[0]
    batches = tuple(BatchMatmul(3, m, 7, 4, dtype, layout) for m in (1, 5) for layout in LAYOUTS)
    names = verified_in_a_child(library, batches)
    assert {name.endswith(", a call for each matrix") for name in names} == {library in ("mkl", "blis")}


@pytest.mark.slow
@pytest.mark.parametrize("library", ["onednn", "onednn-torch"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_a_narrow_result_is_right(library: str, dtype: str) -> None:
    (name,) = verified_in_a_child(library, (Matmul(33, 77, 41, dtype, output=dtype),))
    assert "result" not in name  # that is what was asked for


def test_mkl_is_right_on_two_threads() -> None:
    assert len(verified_in_a_child("mkl", (Matmul(64, 64, 64),), threads=2)) == 1


@NEEDS_TORCH
def test_torch_multiplies_no_batch_of_bytes() -> None:
    with pytest.raises(TunerError, match=r"^torch multiplies no batch of i8$"):
        BaselineService(BatchMatmul(3, 5, 7, 4, "i8"), 1, 0, ONEDNN_TORCH)


@pytest.mark.parametrize(("dtype", "output"), [("i8", ""), ("bf16", ""), ("bf16", "bf16"), ("f16", "f16")])
def test_openblas_multiplies_narrow_types_as_f32_and_says_so(dtype: str, output: str) -> None:
    problem = Matmul(33, 77, 41, dtype, "nt", output=output)
    service = BaselineService(problem, 1, 0, OPENBLAS)  # refuses a wrong answer
    assert re.fullmatch(f"openblas .*, f32 for {dtype}", service.name)
    assert service.measure(QUICK).name == service.name


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_bf16_without_torch_says_what_is_missing() -> None:
    with pytest.raises(TunerError, match=r"^not installed; pip install torch$"):
        BaselineService(Matmul(8, 8, 8, "bf16"), 1, 0, ONEDNN_TORCH)


def test_the_baseline_is_measured_without_an_epilogue_and_named_with_its_kernel() -> None:
    baseline = BaselineService(Matmul(64, 64, 64, epilogue="bias_relu"), 1, seed=0).measure(QUICK)
    assert re.fullmatch(r"openblas \d\S* [a-zA-Z0-9]+", baseline.name)
    assert baseline.threads == 1
    assert 0 < baseline.measurement.median_s < 1e-2


def test_a_constant_b_is_compared_with_the_product_of_any_b() -> None:
    problem = Matmul(8, 64, 48, weights="constant", cache="weights-cold")
    baseline = BaselineService(problem, 1, seed=0).measure(QUICK)
    assert baseline.name == BaselineService(Matmul(8, 64, 48), 1, seed=0).name


def test_the_library_is_numpys_where_scipy_has_loaded_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = threadpoolctl.threadpool_info()
    other = {"user_api": "blas", "filepath": "/scipy.libs/libscipy_openblas.so", "internal_api": "openblas"}
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [other, *own])
    require_right(MatmulProblem("matmul", (8, 8, 8), "f32", "nn"))


def test_a_wrong_answer_of_the_library_is_no_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(self: CompiledLibraryMatmul, times: int) -> None:
        self.result.fill(1e9)

    monkeypatch.setattr(CompiledLibraryMatmul, "repeat", spoil)
    with pytest.raises(TunerError, match=r"^64 of 64 elements are wrong; worst at"):
        BaselineService(Matmul(8, 8, 8), 1, seed=0)
