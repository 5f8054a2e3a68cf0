"""Matmuls by packed weights of a C library: packed as numpy packs them, and what the kernels compute."""

import ctypes
import itertools
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.mlir.ops.quantized import Case, arrays_of, script_of
from tests.models.library.c.c_programs import BARE, NEEDS_CC, cc, shared_object, write
from tests.tuning.fakes import present
from tuner.core.candidate import Candidate
from tuner.core.errors import TunerError
from tuner.core.fusions import QUANTIZED
from tuner.core.instruction_sets import AVX512
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.core.numpy_types import DTYPES
from tuner.core.packings import packings_in, threads_comment
from tuner.core.problem_classes import PackedProblem, quantized_problem
from tuner.core.quantization import BY_GROUP, BY_ROW, CONSTANT, WeightFormat
from tuner.mlir.reference.fusion_reference import evaluate, worst_error
from tuner.models.library.c.packed import packed_name
from tuner.models.library.c.writer import c_files
from tuner.models.library.entries import LibraryEntry
from tuner.payload.packed_weights import pack, packed_shape
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.choice import default_script
from tuner.targets.cpu.compiler import CpuCompiler

HERE = describe_machine()
pytestmark = [
    pytest.mark.mlir,
    NEEDS_CC,
    pytest.mark.skipif(HERE.isa != AVX512 or not HERE.has_vnni, reason="needs AVX-512 with VNNI"),
]
Array = npt.NDArray[Any]
SOURCES = ("tuner_matmul.c", "tuner_kernels.o")
FALLBACK, TUNED = 0, 1
NOTHING, ALL = ctypes.c_uint(0), ctypes.c_uint(-1)
DOTS, SINGLES = (
    {"scheme": "dots", "tile_m": 2, "tile_n": 32},
    {"scheme": "singles", "tile_m": 3, "tile_n": 16},
)
PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)
RUN_PARTS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True)
class PackedCase:
    """A problem with the script and the number of threads of its kernel."""

    problem: PackedProblem
    chosen: str = ""  # the script; "": the one that is tried first here
    threads: int = 1

    @cached_property
    def script(self) -> str:
        return self.chosen or present(default_script(self.problem, HERE)).text

    @property
    def entry(self) -> LibraryEntry:
        knobs = Candidate.of("any", {})
        return LibraryEntry(self.problem, knobs, self.script, HERE, self.threads, 1e-4, "", None, 7)

    @property
    def name(self) -> str:
        return packed_name(self.problem, "tuner")

    @property
    def held(self) -> Array:
        """Returns what C holds before a call."""
        return np.full(self.problem.c_shape, 7, DTYPES[self.problem.result_dtype])

    def arrays(self, seed: int) -> tuple[Array, ...]:
        """Returns A and the weights, of small numbers."""
        rng = np.random.default_rng(seed)
        if self.problem.operation == QUANTIZED:
            return arrays_of(_case(self.problem), rng)
        (m, n, k), given = self.problem.sizes, self.problem
        b = (n, k) if given.layout == "nt" else (k, n)
        shapes: list[tuple[tuple[int, ...], str]] = [((m, k), given.dtype), (b, given.dtype)]
        shapes += [(argument.shape, argument.dtype) for argument in given.extra_arguments]
        return tuple(rng.integers(-9, 10, shape).astype(DTYPES[dtype]) for shape, dtype in shapes)

    def of_payload(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """Returns a caller's arrays as the payload has them: a constant B is k x n there."""
        if self.problem.operation == QUANTIZED or self.problem.layout == "nn":
            return arrays
        a, b, *extra = arrays
        return (a, np.ascontiguousarray(b.T), *extra)

    def packed_once(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """Returns those of a caller's arrays that the function takes that packs."""
        if self.problem.operation == QUANTIZED:
            return arrays[1:]
        rows = [argument.axes == "n" for argument in self.problem.after_product.arguments]
        return tuple(itertools.compress(arrays, (False, True, *rows)))

    def at_each_call(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """Returns the others, A first."""
        once = {id(array) for array in self.packed_once(arrays)}
        return tuple(array for array in arrays if id(array) not in once)


def _case(problem: PackedProblem) -> Case:
    weights = WeightFormat.of_text(problem.weights)
    m, n, k = problem.sizes
    return Case((m, n, k), problem.dtype, weights, problem.result_dtype, {})


def product(
    sizes: tuple[int, int, int], weights: WeightFormat, threads: int = 1, **others: Any
) -> PackedCase:
    usual = DOTS if weights.activations else SINGLES
    given = {"dtype": "f32", "output": "f32", "knobs": usual} | others
    output = "" if given["output"] == "f32" else "bf16"
    problem = quantized_problem(sizes, given["dtype"], weights, output)
    return PackedCase(problem, threads_comment(threads) + script_of(given["knobs"]), threads)


def constant(m: int, n: int, k: int, **others: Any) -> PackedCase:
    """Returns a product by a constant B, with the script that is tried first here."""
    problem = Matmul(m, n, k, weights=CONSTANT, **others)
    assert isinstance(problem, PackedProblem)
    return PackedCase(problem)


PRODUCTS = (
    product((3, 40, 64), WeightFormat(4, 32, activations=BY_GROUP)),  # columns beyond the last panel
    product((5, 33, 50), WeightFormat(4, 0, "bf16", has_zero_points=True, activations=BY_ROW)),  # and rows
    product((1, 7, 192), WeightFormat(4, 64, "f32", has_zero_points=True)),
    product((2, 48, 256), WeightFormat(8, 128, activations=BY_GROUP), dtype="bf16", output="bf16"),
    product((4, 20, 96), WeightFormat(8, 32, has_zero_points=True), knobs=SINGLES | {"lanes": 8}),
    product((9, 130, 300), WeightFormat(8, 0, "f32"), dtype="bf16"),
)
CONSTANTS = (
    constant(3, 40, 30),
    constant(5, 33, 17, epilogue="bias_relu"),
    constant(2, 70, 50, dtype="f64", layout="nt", epilogue="bias_relu"),
    constant(9, 90, 140, dtype="bf16"),
    constant(4, 65, 33, dtype="bf16", output="bf16", epilogue="bias_relu"),
    constant(9, 90, 140, dtype="f16", layout="nt"),
    constant(4, 65, 33, dtype="f16", output="f16", epilogue="bias_relu"),
    constant(6, 50, 300, dtype="i8", layout="nt"),
    constant(7, 20, 9, dtype="i8", epilogue="bias_relu"),
    constant(3, 40, 31, epilogue="bias_gelu"),
    constant(4, 33, 30, epilogue="gelu_tanh", layout="nt"),
    constant(5, 65, 33, dtype="bf16", output="bf16", epilogue="bias_silu"),
    constant(4, 65, 33, dtype="f16", output="f16", epilogue="residual"),
    constant(3, 40, 29, dtype="f64", epilogue="bias_relu_residual"),
    constant(7, 20, 11, dtype="i8", epilogue="bias_residual"),
    constant(3, 40, 28, epilogue="scale"),
    constant(4, 33, 27, epilogue="accumulate", layout="nt"),
    constant(4, 65, 33, dtype="bf16", output="bf16", epilogue="accumulate"),
    constant(7, 20, 10, dtype="i8", epilogue="accumulate"),
)
DIVIDED = (
    product((8, 320, 256), WeightFormat(4, 32, activations=BY_GROUP), 2, knobs=DOTS | {"tile_m": 4}),
    product((8, 320, 256), WeightFormat(4, 32, has_zero_points=True), 2),
)


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest) -> tuple[PackedCase, ...]:
    """Gives the cases of the tests that run: `make test` draws a few, and compiles no others."""
    parameters = (item.callspec.params for item in request.session.items if hasattr(item, "callspec"))
    taken = {case.name for case in (each.get("given") for each in parameters) if isinstance(case, PackedCase)}
    always = (PRODUCTS[1], *DIVIDED)
    others = (case for case in (*PRODUCTS, *CONSTANTS) if case.name in taken and case not in always)
    return (*always, *others)


@pytest.fixture(scope="module")
def folder(cases: tuple[PackedCase, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = tuple(case.entry for case in cases)
    return write(c_files(entries), tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def library(folder: Path) -> ctypes.CDLL:
    return shared_object(folder, *SOURCES)


def _packed(library: ctypes.CDLL, given: PackedCase, weights: tuple[Array, ...]) -> npt.NDArray[np.uint8]:
    count = library[f"{given.name}_packed_bytes"]
    count.restype = ctypes.c_size_t
    packed = np.full(count() + 8, 0x5A, np.uint8)
    pointers = [ctypes.c_void_p(each.ctypes.data) for each in (*weights, packed)]
    pack_function = library[f"{given.name}_pack"]
    pack_function.restype = None
    pack_function(*pointers)
    assert (packed[-8:] == 0x5A).all()  # nothing is written beyond
    return packed[:-8]


def _multiplied(
    library: ctypes.CDLL, given: PackedCase, packed: Array, arrays: tuple[Array, ...]
) -> tuple[int, Array]:
    c = given.held
    a, *others = given.at_each_call(arrays)
    code = library[given.name](*(ctypes.c_void_p(each.ctypes.data) for each in (a, packed, *others, c)))
    return code, c


@pytest.mark.parametrize("given", [*PRODUCTS, *CONSTANTS], ids=lambda each: each.problem.key)
def test_weights_are_packed_as_numpy_packs_them(given: PackedCase, library: ctypes.CDLL) -> None:
    arrays = given.arrays(3)
    packed = _packed(library, given, given.packed_once(arrays))
    in_payload = given.of_payload(arrays)
    code = CpuCompiler().compile(given.problem, Script.of(given.script)).code.text
    packings = packings_in(code)
    at_each_call = {id(array) for array in given.at_each_call(in_payload)}
    start = 0
    for weight, packing in zip(in_payload, packings, strict=True):
        if id(weight) in at_each_call:
            continue
        expected = weight
        if packing is not None:
            expected = np.empty(packed_shape(weight.shape, packing), weight.dtype)
            pack(weight, packing, expected)
        flat = np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
        np.testing.assert_array_equal(packed[start : start + flat.size], flat)
        start += -(-flat.size // 64) * 64
    assert packed.size <= start


@pytest.mark.parametrize("given", [*PRODUCTS, *CONSTANTS, *DIVIDED], ids=lambda each: each.problem.key)
def test_kernels_and_the_portable_loop_compute_the_reference(given: PackedCase, library: ctypes.CDLL) -> None:
    arrays = given.arrays(4)
    packed = _packed(library, given, given.packed_once(arrays))
    read = (given.held,) if given.problem.after_product.reads_output else ()
    expected = evaluate(given.problem.text, (*given.of_payload(arrays), *read))[0]
    code, found = _multiplied(library, given, packed, arrays)
    assert code == TUNED
    assert worst_error(expected, found) <= 1.0
    library.tuner_limit_features(NOTHING)  # as on a processor without any of the instructions
    try:
        code, found = _multiplied(library, given, packed, arrays)
    finally:
        library.tuner_limit_features(ALL)
    assert code == FALLBACK
    assert worst_error(expected, found) <= 1.0


@pytest.mark.parametrize("given", DIVIDED, ids=lambda each: each.problem.key)
def test_a_kernel_of_two_threads_runs_by_the_threads_that_it_is_given(
    given: PackedCase, library: ctypes.CDLL
) -> None:
    arrays = given.arrays(5)
    packed = _packed(library, given, given.packed_once(arrays))
    numbers: list[int] = []

    def run(_context: int, parts: int, part: int, work: int) -> None:
        numbers.extend(range(parts))
        with ThreadPoolExecutor(parts) as pool:
            [*pool.map(lambda number: PART(part)(work, number), range(parts))]

    callback = RUN_PARTS(run)
    library.tuner_use_threads(2, callback, None)
    try:
        code, found = _multiplied(library, given, packed, arrays)
    finally:
        library.tuner_use_threads(1, None, None)
    assert (code, numbers) == (TUNED, [0, 1])
    assert worst_error(evaluate(given.problem.text, given.of_payload(arrays))[0], found) <= 1.0


def test_the_check_of_a_library_passes_without_python(folder: Path, cases: tuple[PackedCase, ...]) -> None:
    cc(folder, "check.c", *SOURCES, "-lm", "-o", "check")
    done = subprocess.run([folder / "check"], env=BARE, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout
    assert len(lines) == 2 * len(cases)
    assert all(line.endswith(" ok") for line in lines)


def test_the_header_declares_three_functions_for_each_problem(folder: Path) -> None:
    header = (folder / "tuner_matmul.h").read_text()
    declared = re.findall(r"^TUNER_API (\w+) (\w+)\((.*)\);", header, re.M)
    given = PRODUCTS[1]
    of_name = [each for each in declared if each[1].startswith(given.name)]
    assert given.name == "tuner_quantized_matmul_5x33x50_f32_i4_channel_bf16_zp_a8row"
    assert of_name == [
        ("size_t", f"{given.name}_packed_bytes", "void"),
        (
            "void",
            f"{given.name}_pack",
            "const int8_t *b, const uint16_t *scales, const int8_t *zero_points, void *packed",
        ),
        ("int", given.name, "const float *a, const void *packed, float *c"),
    ]


def test_of_results_of_a_problem_the_fastest_is_taken(tmp_path: Path) -> None:
    slower = product((3, 40, 64), WeightFormat(4, 32), knobs=SINGLES | {"tile_n": 32}).entry
    faster = product((3, 40, 64), WeightFormat(4, 32)).entry
    files = {
        each.name: each.content.decode(errors="replace")
        for each in c_files((slower, replace(faster, median_s=1e-5, trial=8)))
    }
    assert "trial 8" in files["tuner_matmul.h"]
    assert "trial 7" not in files["tuner_matmul.h"]


LOOPS = """!op = !transform.any_op
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !op {transform.consumed}) {
    %buffers = transform.bufferization.one_shot_bufferize %root : (!op) -> !op
    %loops = transform.apply_registered_pass "convert-linalg-to-loops" to %buffers : (!op) -> !op
    transform.yield
  }
}
"""


def test_a_library_asks_for_tiles_where_a_packed_kernel_needs_these() -> None:
    tiles = {"scheme": "tiles", "tile_m": 16, "tile_n": 32}
    weights = WeightFormat(4, 32, activations=BY_GROUP)
    entry = replace(
        product((16, 64, 64), weights, knobs=tiles).entry, machine=replace(HERE, has_amx_int8=True)
    )
    source = next(each for each in c_files((entry,)) if each.name == "tuner_matmul.c").content.decode()
    assert "ARCH_REQ_XCOMP_PERM" in source
    assert re.search(r"\.kernel = \{.*TUNER_AMX_INT8.*, \w+_run\}", source)


def test_a_script_that_packs_nothing_is_refused() -> None:
    entry = replace(product((3, 40, 64), WeightFormat(4, 32)).entry, script=LOOPS)
    with pytest.raises(TunerError, match="its script leaves weights as they are, where C packs them"):
        c_files((entry,))
