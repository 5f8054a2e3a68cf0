"""What a script needs is worked out from the ops that it calls."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.library.values import product, script_of
from tuner.core.errors import CandidateError
from tuner.core.problem import Matmul, Problem
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.payload.cpu import partitions_in, payload_mlir
from tuner.space.scripts.requirements import custom_ops, instructions_needed, with_guard

AMX = '"tuner.amx_block"(%block) {tiles_m = 2 : i64} : (!transform.any_op) -> ()'


VNNI = '"tuner.vnni_block"(%block) {{tile_m = 6 : i64, lanes = {} : i64}} : (!transform.any_op) -> ()'


PAIRS = '"tuner.pair_block"(%block) {{tile_m = 6 : i64, dots = {} : i64}} : (!transform.any_op) -> ()'


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
        (f"{VNNI.format(8)}\n{VNNI.format(16)}", "i8", ("avx512", "vnni")),
        (PAIRS.format(1), "bf16", ("avx512-bf16",)),
        (PAIRS.format(0), "bf16", ()),
        (PATTERN.format("amx"), "i8", ("amx-int8",)),
        (PATTERN.format("packed_type"), "bf16", ("avx512-bf16",)),
        (PATTERN.format("packed_type"), "f32", ()),
        ("transform.structured.vectorize %tile vector_sizes [12, 32, 1] : !transform.any_op", "f32", ()),
    ],
)
def test_ops_decide_what_a_script_needs(line: str, dtype: str, needs: tuple[str, ...]) -> None:
    assert instructions_needed(f"module {{\n{line}\n}}\n", dtype) == needs


def test_several_needs_are_sorted() -> None:
    assert instructions_needed(f"{VNNI.format(8)}\n{AMX}", "i8") == ("amx-int8", "vnni")


# Exported scripts on payloads of others: what fits is transformed as it was timed, the rest is refused.

MLIR_OPT = shutil.which("mlir-opt-22")  # Debian: mlir-22-tools


PROBLEM = Matmul(24, 64, 32)


WANTED = "linalg.matmul 24x64x32 f32 nn"


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
    """Gives a function that applies a script to a payload, by each compiler."""
    if request.param == "wheel":
        return run_wheel
    if MLIR_OPT is None:
        pytest.skip("mlir-opt-22 is not installed (Debian: mlir-22-tools)")

    def run_stock(script: str, payload: str) -> str:
        (tmp_path / "script.mlir").write_text(script)
        (tmp_path / "payload.mlir").write_text(payload)
        preload = f"--transform-preload-library=transform-library-paths={tmp_path / 'script.mlir'}"
        command = [str(MLIR_OPT), str(tmp_path / "payload.mlir"), preload, "--transform-interpreter"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else done.stderr.splitlines()[0]

    return run_stock


def own_payload(problem: Problem, script: str) -> str:
    return payload_mlir(problem, partitions_in(script, problem))


def buffers(problem: Problem, name: str = "of_others") -> str:
    """Returns another program's function on buffers, with a fill."""
    return product(name, problem, on_buffers=True).text


def guarded(problem: Problem = PROBLEM, **knobs: Any) -> str:
    return with_guard(script_of(problem, **knobs), problem)


@pytest.mark.mlir
@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("problem", "knobs", "threads"),
    [
        (PROBLEM, {}, 1),
        (PROBLEM, {"block_k": 16, "tile_n": 16, "pack_a": 0}, 1),
        (Matmul(24, 64, 32, layout="nt"), {"pack_a": 0}, 1),
        (Matmul(24, 64, 32, layout="tn"), {}, 1),
        (Matmul(24, 64, 32, epilogue="bias_relu"), {"block_n": 32, "tile_n": 16}, 1),
        (Matmul(24, 64, 32, dtype="f64"), {"tile_n": 16}, 1),
        (Matmul(24, 64, 32, dtype="bf16"), {}, 1),
        (Matmul(24, 64, 32, dtype="i8"), {}, 1),
        (Problem("batch_matmul", (24, 64, 32), "f32", batch=3), {}, 1),
        (Matmul(24, 72, 32), {"split": "n", "tile_n": 16}, 2),
    ],
)
def test_on_its_own_payload_an_exported_script_does_what_was_timed(
    problem: Problem, knobs: dict[str, Any], threads: int, run: Run
) -> None:
    script = script_of(problem, threads, **knobs)
    payload = own_payload(problem, script)
    exported = with_guard(script, problem)
    assert exported != script
    assert run(exported, payload) == run(script, payload)


@pytest.mark.mlir
def test_the_name_of_the_function_does_not_matter(run: Run) -> None:
    payload = own_payload(PROBLEM, script_of(PROBLEM))
    renamed = run(guarded(), payload.replace("@matmul", "@of_others"))
    assert renamed.replace("@of_others", "@matmul") == run(guarded(), payload)


@pytest.mark.mlir
def test_no_fill_is_needed(run: Run) -> None:
    payload = buffers(PROBLEM).replace("outs(%cleared", "outs(%start")
    lines = [line for line in payload.splitlines(keepends=True) if "linalg.fill" not in line]
    transformed = run(guarded(), "".join(lines))
    assert "vector." in transformed
    assert "linalg." not in transformed


@pytest.mark.mlir
def test_other_functions_and_their_contractions_are_left_alone(run: Run) -> None:
    other = buffers(Matmul(24, 64, 33), "other")
    transformed = run(guarded(), buffers(PROBLEM) + other)
    assert transformed.count("linalg.matmul") == 1
    assert "tuner." not in transformed
    mine, left = transformed.split("func.func @")[1:]
    assert "vector." in mine
    assert "linalg.fill" in left


@pytest.mark.mlir
@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            Matmul(24, 96, 32),
            f'this script is for {WANTED}; its n"): expected parameter to be equal to 64, got 96',
        ),
        (
            Matmul(48, 64, 32),
            f'this script is for {WANTED}; its m"): expected parameter to be equal to 24, got 48',
        ),
        (Matmul(25, 64, 32), 'its m"): expected parameter to be equal to 24, got 25'),
        (Matmul(24, 64, 16), 'its k"): expected parameter to be equal to 32, got 16'),
        (Matmul(24, 64, 32, dtype="f64"), 'its bits of A"): expected parameter to be equal to 32, got 64'),
        (
            Matmul(24, 64, 32, layout="nt"),
            'matmuls of layout nt"): expected parameter to be equal to 0, got 1',
        ),
        (
            Matmul(24, 64, 32, layout="tn"),
            'matmuls of layout tn"): expected parameter to be equal to 0, got 1',
        ),
    ],
)
def test_another_contraction_is_refused_by_one_line_with_both(
    problem: Problem, message: str, run: Run
) -> None:
    refused = run(guarded(block_k=16), buffers(problem))
    assert 'error: loc("this script is for linalg.matmul 24x64x32 f32 nn; ' in refused
    assert message in refused


@pytest.mark.mlir
def test_a_payload_without_a_matmul_is_refused(run: Run) -> None:
    refused = run(guarded(), "func.func @nothing() {\n  return\n}\n")
    assert f'this script is for one {WANTED} on tensors; how many there are"): ' in refused
    assert "expected parameter to be equal to 1, got 0" in refused


@pytest.mark.mlir
def test_a_matmul_on_buffers_is_refused(run: Run) -> None:
    kinds = "memref<24x32xf32>, memref<32x64xf32>"
    head = "func.func @f(%a: memref<24x32xf32>, %b: memref<32x64xf32>, %c: memref<24x64xf32>)"
    payload = f"{head} {{\n  linalg.matmul ins(%a, %b : {kinds}) outs(%c : memref<24x64xf32>)\n  return\n}}\n"
    assert f"this script is for one {WANTED} on tensors; how many there are" in run(guarded(), payload)


@pytest.mark.mlir
def test_two_matmuls_that_fit_are_refused(run: Run) -> None:
    refused = run(guarded(), buffers(PROBLEM, "one") + buffers(PROBLEM, "two"))
    assert 'how many there are"): expected parameter to be equal to 1, got 2' in refused


@pytest.mark.mlir
def test_a_second_contraction_in_the_function_is_refused(run: Run) -> None:
    text = buffers(PROBLEM)
    (fill,) = [line for line in text.splitlines(keepends=True) if "linalg.fill" in line]
    small, a, b = "tensor<24x24xf32>", "tensor<24x32xf32>", "tensor<32x24xf32>"
    second = (
        f"  %e = tensor.empty() : {small}\n"
        f"  %t = bufferization.to_tensor %A restrict : memref<24x32xf32> to {a}\n"
        f"  %u = tensor.empty() : {b}\n"
        f"  %s = linalg.matmul ins(%t, %u : {a}, {b}) outs(%e : {small}) -> {small}\n"
    )
    refused = run(guarded(block_k=16), text.replace(fill, second + fill))
    assert f'this script is for a function with one {WANTED}; its matmuls"): ' in refused
    assert "expected parameter to be equal to 1, got 2" in refused


@pytest.mark.mlir
def test_tensors_at_the_boundary_of_the_function_are_refused(run: Run) -> None:
    """Bufferized alone, such a function would read its arguments with strides that nobody knows."""
    refused = run(guarded(), product("of_others", PROBLEM).text)
    assert f'A of {WANTED} must be read from a buffer, by bufferization.to_tensor"): ' in refused
    assert "could not find a producer" in refused


@pytest.mark.mlir
def test_a_missing_epilogue_is_refused(run: Run) -> None:
    with_bias = guarded(Matmul(24, 64, 32, epilogue="bias_relu"))
    refused = run(with_bias, buffers(PROBLEM))
    assert (
        'with bias_relu to f32; its linalg.generic ops"): expected parameter to be equal to 1, got 0'
        in refused
    )


@pytest.mark.mlir
def test_a_script_of_another_form_stays_as_it_is() -> None:
    script = "module attributes {transform.with_named_sequence} {\n}\n"
    assert with_guard(script, PROBLEM) == script


def test_custom_ops_are_found_in_code_and_not_in_comments() -> None:
    script = '// "tuner.a"(%x)\n"tuner.prefetch"(%x) : (!a) -> ()\n %y = "tuner.dot"(%x)\n"transform.b"(%x)\n'
    assert custom_ops(script) == ("tuner.dot", "tuner.prefetch")
    assert custom_ops("module attributes {transform.with_named_sequence} {\n}\n") == ()
