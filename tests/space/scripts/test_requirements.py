"""What a script needs by its ops; a payload that a script is not for is refused with one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.golden_hashes.candidates import GoldenCandidate, build, golden_candidates
from tests.gpu.target.strategies.points import mma_sync, naive, simt, wgmma
from tests.models.library.values import product, script_of
from tests.support.llvm_tools import MLIR_OPT, NO_MLIR_OPT, apply_by_stock
from tuner.core.errors import CandidateError
from tuner.core.instruction_sets import AVX512_BF16
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import Scratch
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.needed_instructions import instructions_needed, script_instructions
from tuner.payload.cpu import payload_mlir
from tuner.payload.partitions import partitions_in
from tuner.space.scripts.header import custom_ops

pytestmark = pytest.mark.mlir
AMX = '"tuner.amx_block"(%block) {tiles_m = 2 : i64} : (!transform.any_op) -> ()'
VNNI = '"tuner.vnni_block"(%block) {{tile_m = 6 : i64, lanes = {} : i64}} : (!transform.any_op) -> ()'
WORDS = VNNI.replace("}}", ", words = 1 : i64}}")
QUANTIZED = '"tuner.quantized_matmul"(%f) {{scheme = "dots", lanes = {} : i64{}}} : (!transform.any_op) -> ()'
PAIRS = '"tuner.pair_block"(%block) {{tile_m = 6 : i64, dots = {} : i64}} : (!transform.any_op) -> ()'
MATRICES = '"tuner.matrix_block"(%block) {tile_m = 8 : i64} : (!transform.any_op) -> ()'
CONVOLUTION = (
    '"tuner.convolution_block"(%f) {{along = "filters", lanes = {} : i64}} : (!transform.any_op) -> ()'
)
PATTERN = "transform.apply_patterns.x86.vector_contract_to_{}_dot_product"


@pytest.mark.parametrize(
    ("line", "dtype", "needs"),
    [
        (AMX, "bf16", ("amx-bf16",)),
        (AMX, "i8", ("amx-int8",)),
        (f"    // {AMX}", "bf16", ()),
        ('"tuner.vnni_block"(%block) : (!transform.any_op) -> ()', "i8", ("avx512", "vnni")),
        (VNNI.format(16), "i8", ("avx512", "vnni")),
        (VNNI.format(8), "i8", ("vnni",)),
        (VNNI.format(4), "i8", ("dotprod",)),
        (WORDS.format(8), "i8", ("avx2",)),
        (WORDS.format(16), "i8", ("avx2", "avx512")),
        (f"{VNNI.format(8)}\n{WORDS.format(8)}", "i8", ("avx2", "vnni")),
        (f"{VNNI.format(8)}\n{VNNI.format(16)}", "i8", ("avx512", "vnni")),
        (f"{VNNI.format(8)}\n{AMX}", "i8", ("amx-int8", "vnni")),
        (QUANTIZED.format(16, ""), "f32", ("avx512", "vnni")),
        (QUANTIZED.format(8, ""), "f32", ("vnni",)),
        (QUANTIZED.format(8, "").replace("dots", "bytes"), "f32", ("vnni",)),
        (QUANTIZED.format(8, ", words = 1 : i64"), "f32", ("avx2",)),
        (QUANTIZED.format(16, ", words = 1 : i64"), "f32", ("avx2", "avx512")),
        (PAIRS.format(1), "bf16", ("avx512-bf16",)),
        (PAIRS.format(0), "bf16", ()),
        (MATRICES, "bf16", ("arm-bf16",)),
        (MATRICES, "i8", ("i8mm",)),
        (PAIRS.format(1).replace("dots", "lanes = 4 : i64, dots"), "bf16", ("arm-bf16",)),
        (VNNI.format('4 : i64, instruction = "smmla", words = 0'), "i8", ("i8mm",)),
        (VNNI.format('8 : i64, instruction = "vpmaddwd", words = 0'), "i8", ("avx2",)),
        (PAIRS.format('1 : i64, instruction = "fma", lanes = 16'), "bf16", ()),
        (QUANTIZED.format(4, ""), "f32", ("dotprod",)),
        (QUANTIZED.format(16, "").replace("dots", "singles"), "f32", ("avx512",)),
        (QUANTIZED.format(16, "").replace("dots", "tiles"), "i8", ("amx-int8", "avx512")),
        (CONVOLUTION.format(16), "f32", ()),
        (CONVOLUTION.format(16), "bf16", ("avx512-bf16",)),
        (CONVOLUTION.format(8), "bf16", ()),
        (CONVOLUTION.format(8), "i8", ("vnni",)),
        (CONVOLUTION.format(4), "i8", ("dotprod",)),
        (PATTERN.format("amx"), "i8", ("amx-int8",)),
        (PATTERN.format("packed_type"), "bf16", ("avx512-bf16",)),
        (PATTERN.format("packed_type"), "f32", ()),
        ("transform.structured.vectorize %tile vector_sizes [12, 32, 1] : !transform.any_op", "f32", ()),
    ],
)
def test_ops_decide_what_a_script_needs_sorted(line: str, dtype: str, needs: tuple[str, ...]) -> None:
    assert script_instructions(f"module {{\n{line}\n}}\n", dtype) == needs


ON_CPU = [golden for golden in golden_candidates() if golden.target.is_on_cpu]
NARROW = [golden for golden in ON_CPU if golden.problem.multiplied_dtype in ("bf16", "i8")]


@pytest.mark.parametrize("golden", NARROW, ids=lambda golden: f"{golden.number} {golden.candidate.strategy}")
def test_a_script_needs_what_its_code_needs(golden: GoldenCandidate) -> None:
    candidate = build(golden)
    needs = set(script_instructions(candidate.script.text, golden.problem.multiplied_dtype))
    code = candidate.artifact.code.text
    of_code = set(instructions_needed(code))
    if "llvm.fptrunc" in code:  # to bf16, as the processor here does it
        of_code -= {AVX512_BF16} - needs
    assert needs == of_code


def test_custom_ops_are_found_in_code_and_not_in_comments() -> None:
    script = '// "tuner.a"(%x)\n"tuner.prefetch"(%x) : (!a) -> ()\n %y = "tuner.dot"(%x)\n"transform.b"(%x)\n'
    assert custom_ops(script) == ("tuner.dot", "tuner.prefetch")
    assert custom_ops("module attributes {transform.with_named_sequence} {\n}\n") == ()


# Exported scripts on payloads of others: what fits is transformed as it was timed, the rest is refused.

PROBLEM = Matmul(24, 64, 32)
Run = Callable[[str, str], str]  # (script, payload) -> the payload after it, or the error's first line


def run_wheel(script: str, payload: str) -> str:
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(payload, "payload")
        try:
            transform.apply_script(module, transform.parse(script, "script"))
        except CandidateError as error:
            return f"error: {error}"
        return str(module)


@pytest.fixture(params=["wheel", "stock"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    if request.param == "wheel":
        return run_wheel
    if MLIR_OPT is None:
        pytest.skip(NO_MLIR_OPT)

    def run_stock(script: str, payload: str) -> str:
        done = apply_by_stock(script, payload, tmp_path)
        return done.stdout if done.returncode == 0 else done.stderr.splitlines()[0]

    return run_stock


def buffers(problem: Problem, name: str = "of_others") -> str:
    return product(name, problem, on_buffers=True).text


def matmul_of_buffers(m: int, n: int, k: int, name: str = "f") -> str:
    a, b, c = (f"memref<{rows}x{columns}xf32>" for rows, columns in ((m, k), (k, n), (m, n)))
    head = f"func.func @{name}(%a: {a}, %b: {b}, %c: {c})"
    return f"{head} {{ linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) return }}\n"


def test_the_name_of_the_function_does_not_matter(run: Run) -> None:
    script = script_of(PROBLEM)
    payload = payload_mlir(PROBLEM, partitions_in(script, PROBLEM))
    renamed = run(script, payload.replace("@matmul", "@of_others"))
    assert renamed.replace("@of_others", "@matmul") == run(script, payload)


def test_no_fill_is_needed_and_a_function_may_take_and_return_tensors(run: Run) -> None:
    payload = buffers(PROBLEM).replace("outs(%cleared", "outs(%start")
    lines = [line for line in payload.splitlines(keepends=True) if "linalg.fill" not in line]
    of_tensors = run(script_of(PROBLEM), product("of_others", PROBLEM).text)
    for transformed in (run(script_of(PROBLEM), "".join(lines)), of_tensors):
        assert ("vector." in transformed, "linalg." in transformed) == (True, False)
    assert "tensor<" not in of_tensors


def test_other_functions_and_their_contractions_are_left_alone(run: Run) -> None:
    transformed = run(script_of(PROBLEM), buffers(PROBLEM) + buffers(Matmul(24, 64, 33), "other"))
    assert transformed.count("linalg.matmul") == 1
    assert "tuner." not in transformed
    mine, left = transformed.split("func.func @")[1:]
    assert "vector." in mine
    assert "linalg.fill" in left


UNFIT = (
    'error: loc("this schedule is for one linalg.matmul, tensor<24x32xf32> * tensor<32x64xf32> to '
    'tensor<24x64xf32>; such matmuls"): expected parameter to be equal to 1, got '
)


@pytest.mark.parametrize(
    "problem",
    [
        *(Matmul(24, 96, 32), Matmul(48, 64, 32), Matmul(25, 64, 32), Matmul(24, 64, 16)),
        *(Matmul(24, 64, 32, dtype="f64"), Matmul(24, 64, 32, layout="nt"), Matmul(24, 64, 32, layout="tn")),
    ],
)
def test_another_contraction_is_refused_by_one_line(problem: Problem, run: Run) -> None:
    assert f"{UNFIT}0" in run(script_of(PROBLEM, block_k=16), buffers(problem))


def test_no_matmul_one_on_buffers_and_two_that_fit_are_refused(run: Run) -> None:
    two = buffers(PROBLEM, "one") + buffers(PROBLEM, "two")
    nothing, in_place = "func.func @nothing() { return }\n", matmul_of_buffers(24, 64, 32)
    for payload, found in ((nothing, 0), (in_place, 0), (two, 2)):
        assert f"{UNFIT}{found}" in run(script_of(PROBLEM), payload)


def test_a_second_contraction_and_a_missing_epilogue_are_refused(run: Run) -> None:
    text = buffers(PROBLEM)
    (fill,) = [line for line in text.splitlines(keepends=True) if "linalg.fill" in line]
    small, a, b = "tensor<24x24xf32>", "tensor<24x32xf32>", "tensor<32x24xf32>"
    second = (
        f"  %e = tensor.empty() : {small}\n"
        f"  %t = bufferization.to_tensor %A restrict : memref<24x32xf32> to {a}\n"
        f"  %u = tensor.empty() : {b}\n"
        f"  %s = linalg.matmul ins(%t, %u : {a}, {b}) outs(%e : {small}) -> {small}\n"
    )
    refused = run(script_of(PROBLEM, block_k=16), text.replace(fill, second + fill))
    assert 'this schedule is for a function with one linalg.matmul; such ops"): ' in refused
    assert "expected parameter to be equal to 1, got 2" in refused
    refused = run(script_of(Matmul(24, 64, 32, epilogue="bias_relu")), text)
    assert "one linalg.matmul and one linalg.generic (bias_relu to f32); such ops" in refused
    assert "expected parameter to be equal to 2, got 1" in refused


# Scripts for GPUs: the same guard, for functions that take buffers.

F16 = Matmul(64, 96, 64, "f16", epilogue="bias_relu", output="f16")
GPU_SCRIPTS = {
    "naive": naive(F16),
    "simt": simt(Matmul(64, 96, 64, "f32")),
    "mma_sync": mma_sync(F16),
    "packed": mma_sync(Matmul(65, 97, 67, "bf16"), pack=1),
    "workspace": mma_sync(Matmul(64, 96, 256, "i8", "nt"), splits=2, split_by="workspace"),
    "tf32": mma_sync(Matmul(64, 96, 64, "tf32", "tn")),
    "wgmma": wgmma(F16),
    "wgmma of bytes": wgmma(Matmul(64, 64, 128, "e4m3", "nt"), block_k=128),
    "wgmma of uneven rows": wgmma(Matmul(40, 72, 60, "f16")),
}


def gpu_payload(problem: Problem) -> str:
    return gpu_payload_mlir(problem, Scratch())


def unfit_for(problem: Problem) -> list[tuple[str, int]]:
    """Returns payloads that a problem's script is not for, and how many fitting matmuls each has."""
    m, n, k = problem.sizes
    mine = gpu_payload(problem)
    function = mine[mine.index("  func.func") : mine.rindex("}")]
    kind = (problem.dtype, problem.layout, problem.epilogue, problem.output)
    others = [
        *(Matmul(*sizes, *kind) for sizes in ((m + 8, n, k), (m, n + 8, k), (m, n, k + 8))),
        *(Matmul(m, n, k, problem.dtype, each) for each in ("nn", "nt", "tn") if each != problem.layout),
        Matmul(m, n, k, "f16" if problem.dtype == "f32" else "f64", problem.layout),
    ]
    return [
        *((gpu_payload(each), 0) for each in others),
        (f"module {{\n{function}{function.replace('@matmul', '@second')}}}\n", 2),
        ("func.func @matmul() { return }\n", 0),
        (matmul_of_buffers(64, 96, 64, "matmul"), 0),
    ]


@pytest.mark.parametrize("name", GPU_SCRIPTS)
def test_a_script_for_gpus_refuses_other_payloads_by_one_line(name: str) -> None:
    one = GPU_SCRIPTS[name]
    script = one.script()
    for payload, found in unfit_for(one.problem):
        said = run_wheel(script, payload)
        assert said.startswith('error: loc("this schedule is for one linalg.matmul, ')
        assert said.count("\n") == 0
        assert f"expected parameter to be equal to 1, got {found}" in said


@pytest.mark.parametrize("name", ["naive", "mma_sync", "wgmma"])
def test_a_script_for_gpus_refuses_a_function_without_the_epilogue(name: str) -> None:
    m, n, k = F16.sizes
    refused = run_wheel(GPU_SCRIPTS[name].script(), gpu_payload(Matmul(m, n, k, "f16")))
    assert "one linalg.matmul and one linalg.generic (bias_relu to f16); such ops" in refused
