"""A library on a program of others: every form of a contraction is right, and the rest is left alone."""

import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from tests.library.values import Array, ProgramFunction, entry, product, two_with_relu
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul, Problem
from tuner.library import library as library_format
from tuner.library.entries import LibraryEntries
from tuner.library.library import library_text, schedule_of, suitable
from tuner.library.script_comparison import lowered
from tuner.library.transform_module import PREFIX
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments
from tuner.runtime.cpu.memory import placed_copy

MLIR_OPT = shutil.which("mlir-opt-22")  # Debian: mlir-22-tools
NO_STOCK = "mlir-opt-22 is not installed (Debian: mlir-22-tools)"
pytestmark = pytest.mark.mlir

PROJECTION, UP, DOWN = Matmul(24, 64, 32), Matmul(16, 96, 32), Matmul(16, 32, 96)
SQUARE = Matmul(16, 48, 48)
TRANSPOSED, EXACT_BATCH = (
    Matmul(20, 32, 48, layout="nt"),
    Problem("batch_matmul", (8, 32, 16), "f32", batch=3),
)
HEADS = replace(PROJECTION, operation="batch_matmul", batch=5)
ENTRIES = (
    entry(PROJECTION, pack_a=0, tile_m=6, block_k=0),
    entry(UP, tile_m=4),
    entry(DOWN, block_k=32, pack_a=0, tile_n=16),
    entry(TRANSPOSED, pack_a=0, tile_n=16, tile_m=6),
    entry(EXACT_BATCH, tile_n=16),
    entry(SQUARE, tile_n=16),
)
FUNCTIONS = (
    product("attention", PROJECTION),
    product("adds_up", PROJECTION, accumulates=True),
    product("heads", HEADS),
    product("heads_add_up", HEADS, accumulates=True),
    product("exact_batch", EXACT_BATCH),
    product("generic", PROJECTION, generic=True),
    product("generic_batch", HEADS, generic=True),
    two_with_relu("mlp", UP, DOWN),
    product("buffers", PROJECTION, on_buffers=True),
    product("transposed", TRANSPOSED),
    # To be left alone: what MLIR 22 would name wrongly, another layout, type, sizes, number of matrices.
    product("generic_transposed", TRANSPOSED, generic=True, taken=0),
    product("square_transposed", replace(SQUARE, layout="nt"), generic=True, taken=0),
    product("transposed_heads", replace(TRANSPOSED, operation="batch_matmul", batch=5), taken=0),
    product("other_layout", replace(PROJECTION, layout="nt"), taken=0),
    product("other_type", replace(PROJECTION, dtype="f64"), taken=0),
    product("other_sizes", Matmul(24, 64, 33), taken=0),
    product("other_batch", replace(EXACT_BATCH, batch=4), taken=0),
)
# An op on buffers: MLIR's matchers of results would crash.
ON_MEMREFS = """func.func @on_memrefs(%a: memref<24x32xf32>, %b: memref<32x64xf32>, %c: memref<24x64xf32>) {
  linalg.matmul ins(%a, %b : memref<24x32xf32>, memref<32x64xf32>) outs(%c : memref<24x64xf32>)
  return
}
"""
PROGRAM = "".join(function.text for function in FUNCTIONS) + ON_MEMREFS


@pytest.fixture(scope="module")
def library() -> str:
    return library_text(ENTRIES)


@pytest.fixture(scope="module")
def applied_by_the_wheel(library: str) -> str:
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(PROGRAM, "payload")
        transform.apply_script(module, transform.parse(library, "library"))
        return str(module)


@pytest.fixture(scope="module")
def applied_by_stock(library: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    if MLIR_OPT is None:
        pytest.skip(NO_STOCK)
    folder = tmp_path_factory.mktemp("stock")
    (folder / "library.mlir").write_text(library)
    (folder / "program.mlir").write_text(PROGRAM)
    preload = f"--transform-preload-library=transform-library-paths={folder / 'library.mlir'}"
    command = [MLIR_OPT, str(folder / "program.mlir"), preload, "--transform-interpreter"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module", params=["wheel", "stock"])
def applied(request: pytest.FixtureRequest) -> str:
    """Gives the program after the library, by both compilers."""
    return str(request.getfixturevalue(f"applied_by_{'the_wheel' if request.param == 'wheel' else 'stock'}"))


def run(function: ProgramFunction, code: JittedModule) -> tuple[Array, Array]:
    """Returns the result of a function, and numpy's in float64."""
    rng = np.random.default_rng(0)
    arrays = [placed_copy(rng.standard_normal(shape).astype(function.kind)) for shape in function.shapes]
    wanted = function.reference(*(array.astype(np.float64) for array in arrays))
    if function.has_result:
        arrays.append(placed_copy(np.full(wanted.shape, np.nan, function.kind)))
    CompiledFunction(code.addresses[function.name])(PackedArguments(*(each.ctypes.data for each in arrays)))
    return arrays[-1], wanted


@pytest.mark.slow
def test_every_function_equals_numpy(applied: str) -> None:
    with transform.new_context(), ir.Location.unknown():
        code = lowered(transform.parse(applied, "applied"))
    jitted = JittedModule(code, tuple(function.name for function in FUNCTIONS))
    for function in FUNCTIONS:
        found, wanted = run(function, jitted)
        assert np.abs(found - wanted).max() <= 2e-6 * np.abs(wanted).max(), function.name


def test_each_contraction_of_an_entry_is_tuned_and_nothing_else(applied: str) -> None:
    functions = applied.split("func.func ")[1:]
    tuned = [text for text in functions if text.startswith("private @tuned_")]
    assert len(tuned) == sum(function.taken for function in FUNCTIONS)
    assert all("vector." in text and "linalg." not in text for text in tuned)
    for function in FUNCTIONS:
        (text,) = [text for text in functions if text.startswith(f"@{function.name}(")]
        contractions = ("linalg.matmul", "linalg.batch_matmul", '"reduction"]')
        assert sum(map(text.count, contractions)) == function.left, function.name
        assert text.count("call @tuned_") == function.taken
        assert PREFIX not in text


def test_an_op_on_buffers_is_left_alone(applied: str) -> None:
    assert applied.split("@on_memrefs(")[1].count("linalg.matmul") == 1


def test_a_batch_is_not_copied_at_the_boundary_of_its_function(applied: str) -> None:
    """Its outlined function takes whole arrays, and the result is written in place."""
    (text,) = [text for text in applied.split("func.func ") if text.startswith("@heads(")]
    assert "memref.copy" not in text
    assert text.count("memref.alloc(") == 1
    (call,) = [line for line in text.splitlines() if "call @tuned_" in line]
    assert call.endswith("-> ()")


def test_the_entry_sequence_is_the_first_op(library: str) -> None:
    first = next(line for line in library.splitlines() if "transform.named_sequence @" in line)
    assert "@__transform_main(" in first


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            replace(PROJECTION, epilogue="bias_relu"),
            r"no matcher sees what an epilogue computes \(bias_relu\)",
        ),
        (replace(PROJECTION, dtype="bf16"), "no matcher tells bf16 from other types of as many bits"),
    ],
)
def test_a_problem_that_no_matcher_recognizes_is_refused(problem: Problem, message: str) -> None:
    wrong = replace(entry(PROJECTION), problem=problem)
    with pytest.raises(UsageError, match=f"{problem.key}: trial 1: {message}"):
        schedule_of(wrong)


def test_a_script_that_no_library_can_have_is_refused() -> None:
    own = entry(PROJECTION, prefetch=64)
    with pytest.raises(
        UsageError, match=r"calls tuner's transform ops \(tuner.prefetch_reads\), which other"
    ):
        schedule_of(own)
    with pytest.raises(UsageError, match="trial 1: its steps are not those of a shipped strategy"):
        schedule_of(replace(own, script="module {}\n"))


def test_what_no_library_can_have_is_left_out_with_a_note() -> None:
    wrong = replace(entry(PROJECTION), problem=replace(PROJECTION, epilogue="bias_relu"))
    found = suitable(LibraryEntries((wrong, ENTRIES[1]), ("before",)))
    assert found.entries == ENTRIES[1:2]
    assert found.notes[0] == "before"
    assert found.notes[1].startswith("left out: matmul 24x64x32 f32 nn bias_relu: trial 1: no matcher sees")
    with pytest.raises(UsageError, match=r"^matmul 24x64x32 f32 nn bias_relu: trial 1: no matcher"):
        suitable(LibraryEntries((wrong,), ("before",)))


@pytest.mark.slow
def test_the_cost_of_each_entry_is_in_the_header() -> None:
    (file,) = library_format.write_library(ENTRIES[1:2])
    lines = [line for line in file.content.decode().splitlines() if line.startswith("// ")]
    (cost,) = [line for line in lines if "in the library, against its script alone: tensors " in line]
    assert cost.count("99 % interval") == 2
    assert file.name == "library.mlir"


def test_the_cost_is_not_measured_for_another_machine() -> None:
    elsewhere = replace(ENTRIES[1], machine=replace(ENTRIES[1].machine, name="another"))
    (file,) = library_format.write_library((elsewhere,))
    assert "in the library: not timed, for want of the machine" in file.content.decode()
