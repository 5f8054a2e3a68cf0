"""A small Llama three times: a GGUF file, what llama.cpp computes, a module with transformers' names."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import torch
from torch import nn

HIDDEN, INNER, HEADS, KEY_HEADS, SIZE, LAYERS, TOKENS = 256, 512, 4, 2, 64, 2, 96
EPSILON = 1e-5
BASE = 10000.0
Array = npt.NDArray[Any]
SHAPES = {
    "attn_q": (HEADS * SIZE, HIDDEN),
    "attn_k": (KEY_HEADS * SIZE, HIDDEN),
    "attn_v": (KEY_HEADS * SIZE, HIDDEN),
    "attn_output": (HIDDEN, HEADS * SIZE),
    "ffn_gate": (INNER, HIDDEN),
    "ffn_up": (INNER, HIDDEN),
    "ffn_down": (HIDDEN, INNER),
}
BIASED = ("attn_q", "attn_k", "attn_v")  # of qwen2


def random_blocks(kind: str, rows: int, columns: int, rng: np.random.Generator) -> Array:
    """Returns random bytes of a type of GGUF, with scales that make numbers of about ``columns ** -0.5``."""
    type_ = gguf.GGMLQuantizationType[kind]
    if kind in ("F32", "F16"):
        numbers = rng.standard_normal((rows, columns)) * columns**-0.5
        return np.asarray(numbers, {"F32": np.float32, "F16": np.float16}[kind])
    if kind == "BF16":
        numbers = rng.standard_normal((rows, columns)).astype(np.float32) * columns**-0.5
        return np.asarray(gguf.quantize(numbers, type_))
    elements, size = gguf.GGML_QUANT_SIZES[type_]
    raw = rng.integers(0, 256, (rows, columns // elements, size), dtype=np.uint8)
    # the greatest number is that of a scale of 1
    greatest = {"Q4_0": 8, "Q4_1": 8, "Q5_0": 16, "Q5_1": 16, "Q8_0": 128, "Q4_K": 32 * 8, "Q5_K": 32 * 16}
    scale = columns**-0.5 / greatest.get(kind, 32 * 64)
    scales = (scale * rng.uniform(0.5, 1.5, raw.shape[:2])).astype("<f2")
    if kind == "Q6_K":
        raw[..., -2:] = scales[..., None].view(np.uint8)
        return raw.reshape(rows, -1)
    raw[..., :2] = scales[..., None].view(np.uint8)
    if kind in ("Q4_1", "Q5_1"):
        raw[..., 2:4] = (-scales * greatest[kind]).astype("<f2")[..., None].view(np.uint8)
    if kind in ("Q4_K", "Q5_K"):
        raw[..., 2:4] = (scales * (greatest[kind] // 32)).astype("<f2")[..., None].view(np.uint8)
    return raw.reshape(rows, -1)


def write_model(
    path: Path, kind: str, architecture: str = "llama", *, has_head: bool = False, head_kind: str = ""
) -> dict[str, Array]:
    """Writes a model with random weights of one type; returns its weights, dequantized by gguf, in f64."""
    rng = np.random.default_rng(0)
    weights: dict[str, Array] = {}
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_rope_dimension_count(SIZE)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_freq_base(BASE)

    def add(name: str, kind: str, rows: int, columns: int) -> None:
        type_ = gguf.GGMLQuantizationType[kind]
        raw = random_blocks(kind, rows, columns, rng)
        writer.add_tensor(name, raw, raw_dtype=type_)
        weights[name] = gguf.dequantize(raw, type_).astype(np.float64)

    def add_numbers(name: str, numbers: Array) -> None:
        writer.add_tensor(name, numbers.astype(np.float32))
        weights[name] = numbers.astype(np.float32).astype(np.float64)

    add("token_embd.weight", kind, TOKENS, HIDDEN)
    for layer in range(LAYERS):
        for name, (rows, columns) in SHAPES.items():
            add(f"blk.{layer}.{name}.weight", kind, rows, columns)
            if architecture == "qwen2" and name in BIASED:
                add_numbers(f"blk.{layer}.{name}.bias", rng.standard_normal(rows))
        for norm in ("attn_norm", "ffn_norm"):
            add_numbers(f"blk.{layer}.{norm}.weight", rng.uniform(0.5, 1.5, HIDDEN))
    add_numbers("output_norm.weight", rng.uniform(0.5, 1.5, HIDDEN))
    if has_head:
        add("output.weight", head_kind or kind, TOKENS, HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def by_llama_cpp(weights: dict[str, Array], tokens: Array, *, pairs_rows: bool) -> Array:
    """Returns the logits (t, tokens) as llama.cpp defines them, in f64.

    ``pairs_rows``: elements 2 i and 2 i + 1 of a head are rotated together, as of the architecture llama;
    else i and i + half of its size.
    """
    count = len(tokens)
    x = weights["token_embd.weight"][tokens]
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        normed = _norm(x, weights[f"{block}attn_norm.weight"])
        q, k, v = (_linear(weights, f"{block}{name}", normed) for name in BIASED)
        q, k, v = (part.reshape(count, -1, SIZE).swapaxes(0, 1) for part in (q, k, v))
        q, k = (_rotated(part, pairs_rows=pairs_rows) for part in (q, k))
        k, v = (part.repeat(HEADS // KEY_HEADS, axis=0) for part in (k, v))
        scores = q @ k.swapaxes(1, 2) / np.sqrt(SIZE)
        scores[:, ~np.tri(count, dtype=bool)] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = shares / shares.sum(-1, keepdims=True) @ v
        x = x + _linear(weights, f"{block}attn_output", mixed.swapaxes(0, 1).reshape(count, -1))
        normed = _norm(x, weights[f"{block}ffn_norm.weight"])
        gate = _linear(weights, f"{block}ffn_gate", normed)
        up = _linear(weights, f"{block}ffn_up", normed)
        x = x + _linear(weights, f"{block}ffn_down", gate / (1 + np.exp(-gate)) * up)
    head = weights.get("output.weight", weights["token_embd.weight"])
    return np.asarray(_norm(x, weights["output_norm.weight"]) @ head.T)


def _norm(x: Array, weight: Array) -> Array:
    return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * weight)


def _linear(weights: dict[str, Array], name: str, x: Array) -> Array:
    return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0)


def _rotated(x: Array, *, pairs_rows: bool) -> Array:
    half = SIZE // 2
    angles = np.arange(x.shape[1])[:, None] * BASE ** -(np.arange(half) / half)
    cos, sin = np.cos(angles), np.sin(angles)
    turned = np.empty_like(x)
    first = slice(0, None, 2) if pairs_rows else slice(0, half)
    second = slice(1, None, 2) if pairs_rows else slice(half, None)
    turned[..., first] = x[..., first] * cos - x[..., second] * sin
    turned[..., second] = x[..., first] * sin + x[..., second] * cos
    return turned


class Attention(nn.Module):
    def __init__(self, *, has_bias: bool) -> None:
        super().__init__()
        self.q_proj = nn.Linear(HIDDEN, HEADS * SIZE, bias=has_bias)
        self.k_proj = nn.Linear(HIDDEN, KEY_HEADS * SIZE, bias=has_bias)
        self.v_proj = nn.Linear(HIDDEN, KEY_HEADS * SIZE, bias=has_bias)
        self.o_proj = nn.Linear(HEADS * SIZE, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        parts = (layer(x).unflatten(-1, (-1, SIZE)) for layer in (self.q_proj, self.k_proj, self.v_proj))
        q, k, v = (part.transpose(0, 1) for part in parts)
        q, k = (part * cos + _half_turned(part) * sin for part in (q, k))
        k, v = (part.repeat_interleave(HEADS // KEY_HEADS, 0) for part in (k, v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mixed.transpose(0, 1).flatten(1))


def _half_turned(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(HIDDEN, INNER, bias=False)
        self.up_proj = nn.Linear(HIDDEN, INNER, bias=False)
        self.down_proj = nn.Linear(INNER, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, *, has_bias: bool) -> None:
        super().__init__()
        self.self_attn = Attention(has_bias=has_bias)
        self.mlp = Mlp()
        self.input_layernorm = nn.RMSNorm(HIDDEN, EPSILON)
        self.post_attention_layernorm = nn.RMSNorm(HIDDEN, EPSILON)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, *, has_bias: bool) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(TOKENS, HIDDEN)
        self.layers = nn.ModuleList(Layer(has_bias=has_bias) for _ in range(LAYERS))
        self.norm = nn.RMSNorm(HIDDEN, EPSILON)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        half = SIZE // 2
        angles = torch.arange(len(tokens))[:, None] * BASE ** -(torch.arange(half) / half)
        angles = torch.cat((angles, angles), -1)
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype))
        return self.norm(x)


class Llama(nn.Module):
    """Logits (t, TOKENS) of tokens (t,), with the parameters' names of transformers' models."""

    def __init__(self, *, has_bias: bool = False) -> None:
        super().__init__()
        self.model = Decoder(has_bias=has_bias)
        self.lm_head = nn.Linear(HIDDEN, TOKENS, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.model(tokens))
