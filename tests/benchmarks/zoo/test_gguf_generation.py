"""Rows of whole language models: what is right, speeds by rounds, files whose weights are as drawn."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

gguf = pytest.importorskip("gguf", reason="gguf is not installed")

from benchmarks.zoo.gguf_files import BF16, MODELS, random_rows, write_random  # noqa: E402 - which needs gguf
from benchmarks.zoo.gguf_generation import (  # noqa: E402
    COLD,
    LLAMA,
    ROUNDED,
    TOKENS,
    TUNER,
    GgufGeneration,
    ratio_of,
    seconds_of,
)

RIGHT = GgufGeneration("llama_1b", "Q4_0", activations=ROUNDED, taken=2, equal=TOKENS)
KINDS = ("Q4_0", "Q8_0", "Q6_K", BF16)


def test_the_prompt_is_the_first_difference_and_a_token_the_median_of_the_others() -> None:
    ours = iter([(None, [0.0, 3.0, 4.0, 6.0, 7.0]), (None, [10.0, 12.0, 12.5, 13.0, 20.0])])
    seconds = seconds_of({TUNER: lambda: next(ours)}, 2)
    assert seconds == {TUNER: [(3.0, 1.0), (2.0, 0.5)]}


def test_ways_are_called_one_after_the_other_in_each_round() -> None:
    called = []

    def way(name: str) -> tuple[None, list[float]]:
        called.append(name)
        return None, [0.0, 1.0, 2.0]

    seconds_of({TUNER: lambda: way(TUNER), LLAMA: lambda: way(LLAMA)}, 2)
    assert called == [TUNER, LLAMA, TUNER, LLAMA]


def test_a_ratio_is_that_of_rounds_and_above_1_where_tuner_takes_less() -> None:
    assert ratio_of([2.0, 3.0, 8.0], [1.0, 2.0, 2.0]) == (2.0, 1.5, 4.0)


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        ({}, True),
        ({"equal": 60, "greatest_gap": 0.01}, True),  # rows are rounded
        ({"equal": 60, "greatest_gap": 0.01, "activations": ""}, False),
        ({"equal": 60, "greatest_gap": 0.03, "kind": BF16, "activations": ""}, True),
        ({"equal": 60, "greatest_gap": 0.05, "kind": BF16}, False),
        ({"left": ("no fusions",)}, False),
        ({"in_torch": ("aten.sort",)}, False),
        ({"stopped": {COLD: "timed out"}}, False),
    ],
)
def test_a_row_is_right_with_programs_alone_and_tokens_of_eager_mode(
    change: dict[str, object], is_right: bool
) -> None:
    row = replace(RIGHT, **change)  # type: ignore[arg-type]
    assert row.is_right == is_right


def test_a_row_names_its_figures_and_why_a_stage_was_stopped() -> None:
    row = replace(
        RIGHT,
        compile_s={COLD: 38.21},
        peak_mb={COLD: 3456.0},
        tokens_per_s={f"{TUNER} decode 1": 12.34},
        over_llama={"decode 1": (1.2, 1.1, 1.3)},
        stopped={"export": "timed out after 9 s"},
    )
    assert row.text == (
        "llama_1b Q4_0 i8: compiled cold 38.2 s; peak cold 3,456 MB; equal 64 of 64, gap 0.0e+00; "
        "tokens/s tuner decode 1 12.3; over llama.cpp decode 1 1.20; "
        "exported 0 equal by numpy, 0 in C; stopped export: timed out after 9 s"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_random_matrices_have_the_deviation_that_is_asked_for(kind: str) -> None:
    rows = random_rows(kind, 64, 512, 0.5, np.random.default_rng(0))
    numbers = gguf.dequantize(rows, gguf.GGMLQuantizationType[kind])
    assert numbers.shape == (64, 512)
    assert 0.45 < numbers.std() < 0.65


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_a_file_has_each_tensor_of_its_shapes(architecture: str, tmp_path: Path) -> None:
    sizes = replace(MODELS["tiny"], architecture=architecture)
    write_random(tmp_path / "model.gguf", sizes, "Q4_0", "Q6_K")
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "model.gguf").tensors}
    assert tensors["token_embd.weight"].tensor_type.name == "Q6_K"
    for name, (rows, columns) in sizes.matrices.items():
        found = tensors[f"blk.1.{name}.weight"]
        assert (found.tensor_type.name, list(found.shape)) == ("Q4_0", [columns, rows])
    assert ("blk.0.attn_q_norm.weight" in tensors) == (architecture == "qwen3")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Q4_0", BF16])
def test_a_tiny_model_is_right_and_makes_its_tokens_by_numpy_and_in_c(kind: str) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    stages = ["cold", "check", "export"]
    command = [sys.executable, "-m", "benchmarks.zoo.gguf_generation", "--model", "tiny"]
    subprocess.run([*command, "--kind", kind, "--stage", *stages], check=True)


def test_a_row_with_a_window_says_so() -> None:
    assert replace(RIGHT, window=96).text.startswith("llama_1b Q4_0 i8 window 96: equal 64 of 64")
