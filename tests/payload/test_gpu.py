"""The payload of a GPU: what a script may ask for, and the text that comes of it."""

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.mlir.kernels import parsed
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.mlir.cpu.lowering import lower_to_llvm
from tuner.mlir.ir.memrefs import copy_by_loops
from tuner.mlir.passes import run_passes
from tuner.payload.gpu import Scratch, gpu_payload_mlir, scratch_in
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

PROBLEM = Matmul(200, 136, 72, "f16")
WITH_BIAS = Matmul(15, 31, 7, "f16", epilogue="bias_relu")
FUNCTION = re.compile("func.func @.*")
BUFFERIZE = "builtin.module(one-shot-bufferize,func.func(promote-buffers-to-stack))"  # no malloc
BUFFER = re.compile(r'tuner.buffer = "(\w+)"')


def test_a_script_says_which_buffers_it_adds() -> None:
    script = "// workspace: 3 256 192\n// packed: a b\nmodule {\n}\n"
    assert scratch_in(script, PROBLEM) == Scratch((3, 256, 192), ("a", "b"))
    assert scratch_in("module {\n}\n", PROBLEM) == Scratch()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("// workspace: 4", r"script: workspace: expected 3 numbers \(slices, m, n\), got '4'"),
        ("// workspace: 4 256 x", r"script: workspace: expected 3 numbers \(slices, m, n\), got '4 256 x'"),
        ("// workspace: 0 256 192", r"script: workspace: found 0 slices, allowed 1\.\.64"),
        ("// workspace: 65 256 192", r"script: workspace: found 65 slices, allowed 1\.\.64"),
        ("// workspace: 4 199 192", r"script: workspace m: found 199, allowed 200\.\.2147483647"),
        ("// workspace: 4 256 99999999999", r"script: workspace n: found 99999999999, allowed 136\.\."),
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
    ],
)
def test_payloads_read(name: str, problem: Problem, script: str, golden: Callable[[str, str], None]) -> None:
    golden(f"gpu_{name}.mlir", gpu_payload_mlir(problem, scratch_in(script, problem)))


@pytest.mark.mlir
@pytest.mark.parametrize("dtype", ["f16", "bf16", "tf32", "f32", "f64"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_every_kind_of_payload_is_valid(dtype: str, layout: str) -> None:
    outputs = ("", dtype) if dtype in ("f16", "bf16") else ("",)
    scratches = (Scratch(), Scratch((4, 16, 32)), Scratch(packed=("a", "b")))
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
    functions = [(line.split("@")[1].split("(")[0], BUFFER.findall(line)) for line in FUNCTION.findall(text)]
    with parsed(text) as module:
        run_passes(module, BUFFERIZE)
        copy_by_loops(module)
        code = JittedModule(lower_to_llvm(module), tuple(name for name, _ in functions))
    for name, buffers in functions:
        arguments = PackedArguments(*(arrays[each].ctypes.data for each in buffers))
        CompiledFunction(code.addresses[name])(arguments)
    a, b = arrays["a"].T if layout == "tn" else arrays["a"], arrays["b"].T if layout == "nt" else arrays["b"]
    np.testing.assert_allclose(arrays["c"], np.maximum(a @ b + arrays["bias"], 0), rtol=1e-5, atol=1e-5)
