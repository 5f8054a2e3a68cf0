"""GGUF files of language models of real shapes, with random weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gguf
import ml_dtypes
import numpy as np
import numpy.typing as npt

EPSILON = 1e-5  # of the norms
CONTEXT = 4096  # tokens
# of a type of blocks: what the greatest integer is, of a scale of 1, and where a block has its f16 scale
BLOCKS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"Q4_0": (8, 0), "Q8_0": (128, 0), "Q6_K": (2048, 208)}
)
BF16 = "BF16"
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class DecoderSizes:
    """Sizes of a decoder whose head shares the embeddings. ``size``: of a head; ``theta``: of positions."""

    architecture: str
    hidden: int
    inner: int
    layers: int
    heads: int
    key_heads: int
    size: int
    vocabulary: int
    theta: float = 500_000.0

    @property
    def has_head_norms(self) -> bool:
        """Returns whether rows of queries and keys are normalized, as in Qwen3."""
        return self.architecture == "qwen3"

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """Returns the (rows, columns) of the matrices of a layer."""
        queries = self.heads * self.size
        keys = self.key_heads * self.size
        return {
            "attn_q": (queries, self.hidden),
            "attn_k": (keys, self.hidden),
            "attn_v": (keys, self.hidden),
            "attn_output": (self.hidden, queries),
            "ffn_gate": (self.inner, self.hidden),
            "ffn_up": (self.inner, self.hidden),
            "ffn_down": (self.hidden, self.inner),
        }


MODELS: Mapping[str, DecoderSizes] = MappingProxyType(
    {
        "tiny": DecoderSizes("llama", 256, 704, 2, 4, 2, 64, 1024),
        "llama_1b": DecoderSizes("llama", 2048, 8192, 16, 32, 8, 64, 128_256),  # Llama 3.2 1B
        "qwen3_600m": DecoderSizes("qwen3", 1024, 3072, 28, 16, 8, 128, 151_936, 1e6),  # Qwen3-0.6B
    }
)


def write_random(path: Path, sizes: DecoderSizes, kind: str, head_kind: str = "") -> None:
    """Writes a model with random matrices of the type ``kind``, one after the other; norms are ones.

    ``head_kind``: type of the embeddings, which are the head; "" for ``kind``.
    """
    writer = gguf.GGUFWriter(path, sizes.architecture)
    _add_settings(writer, sizes)
    matrices = {"token_embd": (sizes.vocabulary, sizes.hidden)}
    for layer in range(sizes.layers):
        matrices |= {f"blk.{layer}.{name}": shape for name, shape in sizes.matrices.items()}
    kinds = dict.fromkeys(matrices, kind) | {"token_embd": head_kind or kind}
    norms = _norms(sizes)
    for name, (rows, columns) in matrices.items():
        type_ = gguf.GGMLQuantizationType[kinds[name]]
        elements, size = gguf.GGML_QUANT_SIZES[type_]
        row_bytes = columns // elements * size
        shape = (rows, row_bytes)
        writer.add_tensor_info(f"{name}.weight", shape, np.dtype(np.uint8), rows * row_bytes, type_)
    for name, length in norms.items():
        writer.add_tensor_info(f"{name}.weight", (length,), np.dtype(np.float32), 4 * length)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    rng = np.random.default_rng(0)
    for name, (rows, columns) in matrices.items():
        deviation = 1.0 if name == "token_embd" else columns**-0.5
        writer.write_tensor_data(random_rows(kinds[name], rows, columns, deviation, rng))
    for length in norms.values():
        writer.write_tensor_data(np.ones(length, np.float32))
    writer.close()


def _add_settings(writer: Any, sizes: DecoderSizes) -> None:
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(sizes.vocabulary)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(sizes.hidden)
    writer.add_feed_forward_length(sizes.inner)
    writer.add_block_count(sizes.layers)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.key_heads)
    writer.add_key_length(sizes.size)
    writer.add_value_length(sizes.size)
    writer.add_rope_dimension_count(sizes.size)
    writer.add_rope_freq_base(sizes.theta)
    writer.add_layer_norm_rms_eps(EPSILON)


def _norms(sizes: DecoderSizes) -> dict[str, int]:
    """Returns the length of each norm's weight."""
    norms = {"output_norm": sizes.hidden}
    for layer in range(sizes.layers):
        norms |= {f"blk.{layer}.{name}": sizes.hidden for name in ("attn_norm", "ffn_norm")}
        if sizes.has_head_norms:
            norms |= {f"blk.{layer}.{name}": sizes.size for name in ("attn_q_norm", "attn_k_norm")}
    return norms


def random_rows(kind: str, rows: int, columns: int, deviation: float, rng: np.random.Generator) -> Array:
    """Returns the bytes of a random matrix of a type; its numbers have about this standard deviation."""
    if kind == BF16:
        numbers = rng.standard_normal((rows, columns), np.float32) * np.float32(deviation)
        return numbers.astype(ml_dtypes.bfloat16).view(np.uint8)
    greatest, at = BLOCKS[kind]
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    blocks = rng.integers(0, 256, (rows, columns // elements, size), dtype=np.uint8)
    # integers are drawn evenly from -greatest to greatest: their deviation is greatest / sqrt(3)
    scale = deviation * 3**0.5 / greatest
    scales = (scale * rng.uniform(0.8, 1.2, blocks.shape[:2])).astype("<f2")
    blocks[..., at : at + 2] = scales[..., None].view(np.uint8)
    return blocks.reshape(rows, -1)
