"""The payload on padded views: what a script may ask for, and the text that comes of it."""

from collections.abc import Callable

import pytest

from tuner.core.errors import UsageError
from tuner.core.problem import Matmul, Problem
from tuner.payload.gpu import Views, gpu_payload_mlir, views_in

PROBLEM = Matmul(200, 136, 72, "f16")


def test_a_script_says_the_padding_and_what_it_adds() -> None:
    script = "// padding: 256 192 96\n// workspace: 3\n// packed: a b\nmodule {\n}\n"
    assert views_in(script, PROBLEM) == Views((256, 192, 96), 3, ("a", "b"))


def test_a_script_that_says_nothing_gets_the_true_sizes() -> None:
    assert views_in("module {\n}\n", PROBLEM) == Views((200, 136, 72))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("// padding: 256 192", r"script: padding: found '256 192', allowed 3 numbers"),
        ("// padding: 256 192 x", r"script: padding: found '256 192 x', allowed 3 numbers"),
        ("// padding: 199 192 96", r"script: padding m: found 199, allowed 200\.\.2147483647"),
        ("// padding: 256 192 64", r"script: padding k: found 64, allowed 72\.\."),
        ("// padding: 256 192 99999999999", r"script: padding k: found 99999999999, allowed 72\.\."),
        ("// workspace: 0", r"script: workspace: found 0, allowed 1\.\.64 that divide 72"),
        ("// workspace: 5", r"script: workspace: found 5, allowed 1\.\.64 that divide 72"),
        ("// workspace: 2 2", r"script: workspace: found '2 2', allowed 1 numbers"),
        ("// packed: c", r"script: packed: found c, allowed a, b"),
        ("// packed: a a", r"script: packed: found a a, allowed a, b"),
    ],
)
def test_what_cannot_be_is_refused(script: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        views_in(script, PROBLEM)


@pytest.mark.parametrize(
    ("name", "problem", "script"),
    [
        ("plain", Matmul(200, 136, 72, "f16"), "// padding: 256 256 96"),
        ("tn_bf16_epilogue", Matmul(15, 30, 7, "bf16", "tn", "bias_relu", "bf16"), "// padding: 16 32 16"),
        ("nt_tf32_true_sizes", Matmul(16, 32, 8, "tf32", "nt"), ""),
        (
            "packed_workspace",
            Matmul(15, 31, 7, "f16", epilogue="bias_relu"),
            "// padding: 16 32 64\n// workspace: 4\n// packed: a b",
        ),
    ],
)
def test_the_payload_reads(
    name: str, problem: Problem, script: str, golden: Callable[[str, str], None]
) -> None:
    golden(f"gpu_{name}.mlir", gpu_payload_mlir(problem, views_in(script, problem)))


@pytest.mark.mlir
@pytest.mark.parametrize("dtype", ["f16", "bf16", "tf32", "f32", "f64"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_every_kind_of_payload_is_valid(dtype: str, layout: str) -> None:
    from tuner.mlir import interpreter
    from tuner.mlir.bindings import ir

    outputs = ("", dtype) if dtype in ("f16", "bf16") else ("",)
    with interpreter.new_context(), ir.Location.unknown():
        for epilogue in ("none", "bias_relu"):
            for output in outputs:
                problem = Matmul(15, 31, 7, dtype, layout, epilogue, output)
                for slices, packed in ((1, ()), (4, ()), (1, ("a", "b"))):
                    text = gpu_payload_mlir(problem, Views((16, 32, 64), slices, packed))
                    assert interpreter.parse(text, "payload").operation.verify()
