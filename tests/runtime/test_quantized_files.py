"""Quantized weights of files are those that the formats' libraries, or definitions, say they are."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tuner
from tuner.core.errors import UsageError
from tuner.models.quantized.quantized_files import QuantizedTensor, read_quantized

Array = npt.NDArray[Any]
N, K, GROUPS = 24, 128, 4
AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)  # of the nibbles of a word, from the lowest bits on


def _gguf() -> Any:
    return pytest.importorskip("gguf", reason="gguf is not installed")


def _safetensors() -> Any:
    return pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")


def _gguf_file(folder: Path, weights: Mapping[str, Array], kind: str) -> Path:
    gguf = _gguf()
    file, of_kind = folder / "model.gguf", gguf.GGMLQuantizationType[kind]
    writer = gguf.GGUFWriter(file, "llama")
    for name, numbers in weights.items():
        data = gguf.quantize(numbers, of_kind)
        writer.add_tensor(name, data, raw_dtype=of_kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.mark.parametrize(("kind", "bits"), [("Q4_0", 4), ("Q8_0", 8)])
def test_a_gguf_tensor_has_the_weights_that_gguf_itself_computes(
    kind: str, bits: int, tmp_path: Path
) -> None:
    gguf = _gguf()
    numbers = np.random.default_rng(0).standard_normal((N, K)).astype(np.float32)
    file = _gguf_file(tmp_path, {"other": numbers[:1], "blk.0.ffn_up.weight": numbers}, kind)
    read = tuner.read_quantized(file, "blk.0.ffn_up.weight")
    quantized = gguf.quantize(numbers, gguf.GGMLQuantizationType[kind])
    expected = gguf.dequantize(quantized, gguf.GGMLQuantizationType[kind])
    np.testing.assert_array_equal(read.dequantized(), expected)
    assert (read.format, read.bits, read.group_size, read.zero_points) == (kind, bits, 32, None)
    assert all(each.flags.c_contiguous for each in read.arrays)
    assert read.problem(1).key == f"quantized_matmul 1x{N}x{K} f32*i{bits}-g32-f16 nt none"


def test_tensors_of_other_types_names_and_files_are_refused(tmp_path: Path) -> None:
    numbers = np.ones((N, K), np.float32)
    file = _gguf_file(tmp_path, {"blk.0.ffn_up.weight": numbers}, "Q4_1")
    with pytest.raises(
        UsageError, match=r"ffn_up.weight: found type Q4_1, allowed Q4_0, Q8_0; llama-quantize"
    ):
        read_quantized(file, "blk.0.ffn_up.weight")
    with pytest.raises(UsageError, match=r"has no tensor 'blk.0.ffn_op.weight'; did you mean blk.0.ffn_up"):
        read_quantized(file, "blk.0.ffn_op.weight")
    file.write_bytes(b"GGXX" + bytes(100))
    with pytest.raises(UsageError, match=r"model.gguf: cannot be read as GGUF: "):
        read_quantized(file, "blk.0.ffn_up.weight")


def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("gguf", "safetensors"):
        (tmp_path / f"model.{package}").touch()
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(UsageError, match=f"the package {package} is missing; pip install {package}"):
            read_quantized(tmp_path / f"model.{package}", "blk.0.ffn_up.weight")
    with pytest.raises(UsageError, match=r"found a name that ends in '.bin', allowed .gguf, .safetensors"):
        read_quantized(tmp_path / "model.bin", "layer")


def _words(numbers: Array, bits: int, axis: int) -> Array:
    """Returns unsigned numbers in i32 words along an axis, the first of a word in its lowest bits."""
    moved = np.moveaxis(numbers, axis, -1).astype(np.uint64)
    moved = moved.reshape(*moved.shape[:-1], -1, 32 // bits)
    words = sum(moved[..., each] << np.uint64(bits * each) for each in range(32 // bits))
    return np.ascontiguousarray(np.moveaxis(np.asarray(words), -1, axis).astype(np.uint32).view(np.int32))


def _drawn(bits: int, seed: int) -> tuple[Array, Array, Array]:
    """Returns unsigned weights (k, n), zeros (groups, n) and scales (groups, n) of random numbers."""
    rng, limit = np.random.default_rng(seed), 2**bits
    unsigned, zeros = rng.integers(0, limit, (K, N)), rng.integers(0, limit, (GROUPS, N))
    return unsigned, zeros, rng.uniform(0.001, 0.1, (GROUPS, N)).astype(np.float16)


def _expected(unsigned: Array, zeros: Array, scales: Array) -> Array:
    wide = np.repeat(zeros, K // GROUPS, axis=0), np.repeat(scales, K // GROUPS, axis=0)
    weights: Array = (unsigned - wide[0]).astype(np.float32) * wide[1].astype(np.float32)
    return weights.T


def _gptq(unsigned: Array, zeros: Array, scales: Array, bits: int, less: int = 1) -> dict[str, Array]:
    return {
        "up.qweight": _words(unsigned, bits, 0),
        "up.qzeros": _words((zeros - less) % 2**bits, bits, 1),
        "up.scales": scales,
        "up.g_idx": (np.arange(K) // (K // GROUPS)).astype(np.int32),
    }


def _awq(unsigned: Array, zeros: Array, scales: Array) -> dict[str, Array]:
    def ordered(numbers: Array) -> Array:
        return numbers.reshape(len(numbers), -1, 8)[..., AWQ_COLUMNS].reshape(numbers.shape)

    return {
        "up.qweight": _words(ordered(unsigned), 4, 1),
        "up.qzeros": _words(ordered(zeros), 4, 1),
        "up.scales": scales,
    }


def _saved(folder: Path, tensors: dict[str, Array], **config: object) -> Path:
    _safetensors().save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"quantization_config": config}))
    return folder / "model.safetensors"


@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize(("bits", "checkpoint"), [(4, "gptq"), (4, "gptq_v2"), (8, "gptq"), (8, "gptq_v2")])
def test_a_gptq_layer_is_read(
    bits: int, checkpoint: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    drawn = _drawn(bits, seed)
    tensors = _gptq(*drawn, bits, less=0 if checkpoint == "gptq_v2" else 1)
    read = read_quantized(_saved(tmp_path_factory.mktemp("m"), tensors, checkpoint_format=checkpoint), "up")
    np.testing.assert_array_equal(read.dequantized(), _expected(*drawn))
    assert (read.format, read.bits, read.group_size) == ("GPTQ", bits, K // GROUPS)
    assert all(each.flags.c_contiguous for each in read.arrays)
    assert read.problem(2, "bf16", "i8").weights == f"i{bits}-g32-f16-zp-a8group"


@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_an_awq_layer_is_read(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    drawn = _drawn(4, seed)
    file = _saved(tmp_path_factory.mktemp("m"), _awq(*drawn), version="GEMM")
    read = read_quantized(file, "up.qweight")
    np.testing.assert_array_equal(read.dequantized(), _expected(*drawn))
    assert (read.name, read.format, len(read.arrays)) == ("up", "AWQ", 3)


def test_symmetric_weights_have_no_zero_points_and_one_group_is_a_channel(tmp_path: Path) -> None:
    unsigned, zeros, scales = _drawn(4, 0)
    read = read_quantized(_saved(tmp_path, _gptq(unsigned, np.full_like(zeros, 8), scales, 4)), "up")
    assert read.zero_points is None
    tensors = _gptq(unsigned, zeros[:1], scales[:1], 4) | {"up.g_idx": np.zeros(K, np.int32)}
    of_channel = read_quantized(_saved(tmp_path, tensors), "up")
    assert of_channel.problem(1).weights == "i4-channel-f16-zp"


REFUSED = {
    "order": ({"up.g_idx": np.arange(K, dtype=np.int32) % GROUPS}, {}, "order of their activations"),
    "checkpoint": ({}, {"checkpoint_format": "marlin"}, "checkpoint_format: found 'marlin', allowed gptq"),
    "scales": ({"up.scales": np.ones((GROUPS, N))}, {}, "scales: found float64, allowed f16, bf16, f32"),
    "words": ({"up.qweight": np.zeros((16, N), np.int8)}, {}, "other types than GPTQ and AWQ have"),
    "bits": (
        {"up.qzeros": np.zeros((GROUPS, N * 2 // 32 + 1), np.int32)},
        {},
        "found 2 bits, allowed 4 or 8",
    ),
    "shape": ({"up.qweight": np.zeros((16, N + 8), np.int32)}, {}, r"qweight: found \(16, 32\), allowed"),
    "groups": ({"up.qzeros": np.zeros((3, N // 8), np.int32)}, {}, "with 4 groups of scales"),
}


@pytest.mark.parametrize(("tensors", "config", "reason"), REFUSED.values(), ids=REFUSED)
def test_other_layers_are_refused(
    tensors: dict[str, Array], config: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    file = _saved(tmp_path, _gptq(*_drawn(4, 0), 4) | tensors, **config)
    with pytest.raises(UsageError, match=rf"model.safetensors: up: .*{reason}"):
        read_quantized(file, "up")


def test_a_layer_without_scales_or_in_another_version_is_refused(tmp_path: Path) -> None:
    tensors = _awq(*_drawn(4, 0))
    with pytest.raises(UsageError, match="version: found 'gemv', allowed gemm"):
        read_quantized(_saved(tmp_path, tensors, version="gemv"), "up")
    del tensors["up.scales"]
    with pytest.raises(UsageError, match="up: scales missing, as GPTQ and AWQ have"):
        read_quantized(_saved(tmp_path, tensors), "up")
    with pytest.raises(UsageError, match=r"has no tensor 'down.qweight'"):
        read_quantized(tmp_path / "model.safetensors", "down")
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UsageError, match="cannot be read as safetensors: "):
        read_quantized(tmp_path / "model.safetensors", "up")


def test_the_dequantized_weights_are_integers_less_zero_points_times_scales() -> None:
    integers = np.array([[1] * 32 + [-8] * 32], np.int8)
    scales, points = np.array([[0.5, 2]], np.float32), np.array([[3, -1]], np.int8)
    tensor = QuantizedTensor("w", "AWQ", 4, integers, scales, points)
    np.testing.assert_array_equal(tensor.dequantized()[0, [0, 63]], [-1, -14])
    assert tensor.problem(1, cache="weights-cold").key == (
        "quantized_matmul 1x1x64 f32*i4-g32-f32-zp nt none cache=weights-cold"
    )
