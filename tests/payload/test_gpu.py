"""The payload of a GPU: what a script may ask for, and the text that comes of it."""

import itertools
import re
from collections.abc import Callable

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tests.mlir.kernels import parsed
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import Scratch, scratch_in
from tuner.mlir.cpu.lowering import lower_to_llvm
from tuner.mlir.ir.memrefs import copy_by_loops
from tuner.mlir.passes import run_passes
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

PROBLEM = Matmul(200, 136, 72, "f16")
WITH_BIAS = Matmul(15, 31, 7, "f16", epilogue="bias_relu")
FUNCTION = re.compile("func.func @.*")
BUFFERIZE = "builtin.module(one-shot-bufferize,func.func(promote-buffers-to-stack))"  # no malloc
BUFFER = re.compile(r'tuner.buffer = "(\w+)"')
Floats = npt.NDArray[np.float32]


def test_a_script_says_which_buffers_it_adds() -> None:
    script = "// workspace: 3 256 192\n// packed: a b\nmodule {\n}\n"
    assert scratch_in(script, PROBLEM) == Scratch((3, 256, 192), ("a", "b"))
    assert scratch_in("module {\n}\n", PROBLEM) == Scratch()
    script = "// parts: 3 256 192\n// zeroed: 48\n// packed: a\nmodule {\n}\n"
    assert scratch_in(script, PROBLEM) == Scratch(packed=("a",), parts=(3, 256, 192), zeroed=48)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("// workspace: 4", r"script: workspace: expected 3 numbers \(slices, m, n\), got '4'"),
        ("// workspace: 4 256 x", r"script: workspace: expected 3 numbers \(slices, m, n\), got '4 256 x'"),
        ("// workspace: 0 256 192", r"script: workspace: found 0 slices, allowed 1\.\.64"),
        ("// workspace: 65 256 192", r"script: workspace: found 65 slices, allowed 1\.\.64"),
        ("// workspace: 4 199 192", r"script: workspace m: found 199, allowed 200\.\.2147483647"),
        ("// workspace: 4 256 99999999999", r"script: workspace n: found 99999999999, allowed 136\.\."),
        ("// parts: 4 0 192", r"script: parts m: found 0, allowed 1\.\.2147483647"),
        ("// parts: 4 256 192\n// workspace: 4 256 192", r"script: workspace: cannot be combined with parts"),
        ("// zeroed: -1", r"script: zeroed: expected a number of words, got '-1'"),
        ("// zeroed: 1 2", r"script: zeroed: expected a number of words, got '1 2'"),
        ("// packed: c", r"script: packed: found c, allowed a, b"),
        ("// packed: a a", r"script: packed: found a a, allowed a, b"),
    ],
)
def test_what_cannot_be_is_refused(script: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        scratch_in(script, PROBLEM)


@pytest.mark.parametrize(
    ("name", "problem", "script"),
    [
        ("plain", Matmul(200, 136, 72, "f16"), ""),
        ("tn_bf16_epilogue", Matmul(15, 30, 7, "bf16", "tn", "bias_relu", "bf16"), ""),
        ("nt_tf32", Matmul(16, 32, 8, "tf32", "nt"), ""),
        ("packed_workspace", WITH_BIAS, "// workspace: 4 16 32\n// packed: a b"),
        ("parts", WITH_BIAS, "// parts: 4 16 32\n// zeroed: 12"),
    ],
)
def test_payloads_read(name: str, problem: Problem, script: str, golden: Callable[[str, str], None]) -> None:
    golden(f"gpu_{name}.mlir", gpu_payload_mlir(problem, scratch_in(script, problem)))


@pytest.mark.mlir
@pytest.mark.parametrize("dtype", ["f16", "bf16", "tf32", "f32", "f64"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_every_kind_of_payload_is_valid(dtype: str, layout: str) -> None:
    outputs = ("", dtype) if dtype in ("f16", "bf16") else ("",)
    scratches = (
        Scratch(),
        Scratch((4, 16, 32)),
        Scratch(packed=("a", "b")),
        Scratch(parts=(4, 16, 32), zeroed=12),
    )
    for epilogue, output, scratch in itertools.product(("none", "bias_relu"), outputs, scratches):
        with parsed(gpu_payload_mlir(Matmul(15, 31, 7, dtype, layout, epilogue, output), scratch)) as module:
            assert module.operation.verify()


@pytest.mark.mlir
@pytest.mark.parametrize("scratch", [Scratch(), Scratch((4, 16, 32)), Scratch((2, 16, 31), ("a", "b"))])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_a_payload_is_a_program_without_any_script(layout: str, scratch: Scratch) -> None:
    rng = np.random.default_rng(3)
    m, n, k = 15, 31, 7
    arrays = {
        "a": rng.standard_normal((k, m) if layout == "tn" else (m, k)),
        "b": rng.standard_normal((n, k) if layout == "nt" else (k, n)),
        "bias": rng.standard_normal(n),
        "c": np.full((m, n), np.nan),
        "workspace": np.zeros(scratch.workspace or ()),  # @matmul writes the first slice
        "packed_a": np.full((16, 16), np.nan),
        "packed_b": np.full((32, 32), np.nan),
    }
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    text = gpu_payload_mlir(Matmul(m, n, k, layout=layout, epilogue="bias_relu"), scratch)
    call_functions(text, arrays)
    a, b = arrays["a"].T if layout == "tn" else arrays["a"], arrays["b"].T if layout == "nt" else arrays["b"]
    np.testing.assert_allclose(arrays["c"], np.maximum(a @ b + arrays["bias"], 0), rtol=1e-5, atol=1e-5)


def call_functions(text: str, arrays: dict[str, Floats]) -> None:
    """Compiles the functions of a payload and calls each, in order, on the arrays of its buffers."""
    functions = [(line.split("@")[1].split("(")[0], BUFFER.findall(line)) for line in FUNCTION.findall(text)]
    with parsed(text) as module:
        run_passes(module, BUFFERIZE)
        copy_by_loops(module)
        code = JittedModule(lower_to_llvm(module), tuple(name for name, _ in functions))
    for name, buffers in functions:
        arguments = PackedArguments(*(arrays[buffer].ctypes.data for buffer in buffers))
        CompiledFunction(code.addresses[name])(arguments)


@pytest.mark.mlir
@pytest.mark.parametrize(("layout", "name"), [("tn", "a"), ("tn", "b"), ("nn", "b")])
def test_an_operand_is_copied_by_columns_and_its_low_bits_are_those_of_the_copy(
    layout: str, name: str
) -> None:
    problem = Matmul(15, 31, 7, "tf32x3", layout)
    script = f"// transposed: {name}\n// low: {name}\nmodule {{\n}}\n"
    scratch = scratch_in(script, problem)
    assert scratch == Scratch(low=(name,), transposed=(name,))
    rng = np.random.default_rng(3)
    a = rng.standard_normal(problem.a_shape).astype(np.float32)
    b = rng.standard_normal(problem.b_shape).astype(np.float32)
    copy = (a if name == "a" else b).T
    arrays = {"a": a, "b": b, "c": np.full((15, 31), np.nan, np.float32)}
    arrays |= {
        f"transposed_{name}": np.full(copy.shape, np.nan, np.float32),
        f"low_{name}": np.full(copy.shape, np.nan, np.float32),
    }
    call_functions(gpu_payload_mlir(problem, scratch), arrays)
    np.testing.assert_array_equal(arrays[f"transposed_{name}"], copy)
    high = (np.ascontiguousarray(copy).view(np.int32) & -0x2000).view(np.float32)
    np.testing.assert_array_equal(arrays[f"low_{name}"], copy - high)
    np.testing.assert_allclose(arrays["c"], (a.T if layout == "tn" else a) @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.mlir
def test_operands_are_sums_of_three_matrices_of_bf16_and_what_is_beside_them_is_not_written() -> None:
    problem = Matmul(15, 31, 7, "bf16x6")
    scratch = scratch_in("// planes: a b\nmodule {\n}\n", problem)
    assert scratch == Scratch(planes=("a", "b"))
    rng = np.random.default_rng(3)
    largest = np.finfo(np.float32).max
    inputs = {name: rng.standard_normal(shape) for name, shape in (("a", (15, 7)), ("b", (7, 31)))}
    arrays = {name: array.astype(np.float32) for name, array in inputs.items()}
    arrays["a"][0, :3] = largest, -largest, 2.0**-100
    buffers = {"a": (15, 8), "b": (7, 32)}  # rows of whole 16 bytes
    for name, shape in buffers.items():
        for plane in ("high", "middle", "low"):
            arrays[f"{plane}_{name}"] = np.ones(shape, ml_dtypes.bfloat16)
    call_functions(gpu_payload_mlir(problem, scratch), arrays | {"c": np.empty((15, 31), np.float32)})
    for name, shape in buffers.items():
        planes = [arrays[f"{plane}_{name}"].astype(float) for plane in ("high", "middle", "low")]
        assert all((plane[:, shape[1] - 1] == 1).all() for plane in planes)
        total = np.add.reduce(planes)[:, : shape[1] - 1]
        np.testing.assert_array_equal(total, arrays[name])


@pytest.mark.parametrize(
    "script", ["// planes: a", "// planes: a b\n// packed: a", "// planes: a b\n// low: a"]
)
def test_planes_are_of_both_operands_without_other_copies(script: str) -> None:
    reason = "script: planes: found [ab ]*, allowed a b, of f32, without other copies of operands"
    with pytest.raises(UsageError, match=reason):
        scratch_in(script, Matmul(64, 64, 64, "bf16x6"))
    with pytest.raises(UsageError, match=reason):
        scratch_in("// planes: a b", Matmul(64, 64, 64, "bf16"))


@pytest.mark.parametrize(
    ("layout", "script"),
    [
        ("tn", "// transposed: c"),
        ("nn", "// transposed: a"),
        ("nt", "// transposed: b"),
        ("tn", "// transposed: a b"),
        ("tn", "// transposed: a\n// packed: b"),
    ],
)
def test_what_cannot_be_transposed_is_refused(layout: str, script: str) -> None:
    reason = (
        "script: transposed: found [abc ]*, allowed one operand with k not innermost, without packed ones"
    )
    with pytest.raises(UsageError, match=reason):
        scratch_in(script, Matmul(64, 64, 64, "tf32", layout))
