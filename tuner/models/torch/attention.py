"""Decompositions of PyTorch's attention: a causal mask selects scores; few queries read each key once."""

import math
from collections.abc import Callable
from typing import Any

import torch

from tuner.models.torch.element_types import NARROW, widened

ATEN = torch.ops.aten
LONG = 2048  # keys whose narrow values are not widened into a copy
FEW = 4  # queries of a head: of eight, a product by transposed keys takes as long
FLASH = ATEN._scaled_dot_product_flash_attention_for_cpu.default  # noqa: SLF001 - torch's only name


def attentions(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """Returns decompositions of ``scaled_dot_product_attention`` and of its form for CPUs.

    Computed here, without dropout: causal attention without a mask, and attention of few queries. ``table``:
    decompositions that are called for the rest. PyTorch's own adds -inf to the score of a hidden key, which
    is NaN for a score of NaN or infinity; its kernels never read this score.
    """
    general = table[ATEN.scaled_dot_product_attention.default]
    general_flash = table[FLASH]

    def attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        is_shared = enable_gqa or query.shape[:-2] == key.shape[:-2]
        if not dropout_p and (is_shared or is_causal):
            result = special_attention(query, key, value, attn_mask, is_causal, scale)
            if result is not None:
                return result
        options = {"scale": scale, "enable_gqa": enable_gqa}
        return general(query, key, value, attn_mask, dropout_p, is_causal, **options)

    def flash(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        attn_mask: torch.Tensor | None = None,
        scale: float | None = None,
    ) -> Any:
        options = {"attn_mask": attn_mask, "scale": scale}
        output, sums = general_flash(query, key, value, dropout_p, is_causal, **options)
        result = special_attention(query, key, value, attn_mask, is_causal, scale) if not dropout_p else None
        if result is not None:
            output = result.permute(2, 0, 1, 3).contiguous().permute(1, 2, 0, 3)  # strides of the operator's
        return output, sums

    return {ATEN.scaled_dot_product_attention.default: attention, FLASH: flash}


def special_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    is_causal: bool,
    scale: float | None,
) -> torch.Tensor | None:
    """Returns attention without dropout for few queries, or for a causal mask alone; None for other cases.

    None also for a causal mask together with ``mask``.
    """
    if is_causal:
        return causal_attention(query, key, value, scale) if mask is None else None
    if _has_few_queries(query, key):
        return attention_of_few(query, key, value, mask, scale)
    return None


def _has_few_queries(query: torch.Tensor, key: torch.Tensor) -> bool:
    """Returns whether there are at most FEW queries for each head; keys may have fewer heads.

    False for dynamic or empty tensors, and for tensors of other than four dimensions.
    """
    sizes = (query.shape[-2], query.shape[-1], *query.shape[:-2])
    is_static = all(isinstance(size, int) for size in (*sizes, *key.shape[:-2]))
    if not is_static or 0 in sizes or query.dim() != 4 or key.dim() != 4:
        return False
    return bool(sizes[0] <= FEW and query.shape[0] == key.shape[0])


def attention_of_few(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float | None,
) -> torch.Tensor:
    """Returns softmax(query key^T scale + mask) value for few queries per head; ``mask`` may be boolean.

    f16 and bf16 are computed in f32. Scores are sums along the rows of ``key``, which are read as they lie in
    memory; a matrix product would need the transpose of ``key``. Queries that share keys are next to one
    another, so a row of keys is read once. It is repeated for them before it is widened and scaled: all that
    is in the fusion of the sums then, and no copy of all keys is written. Nor is one of many narrow values:
    they are multiplied as rows, since operands of a matrix product would become f32 before.

        query [b, heads, l, d], key [b, fewer, n, d]  ->  scores [b, fewer, n, heads / fewer * l]
    """
    dtype = query.dtype
    query = widened(query)
    of_query, of_key = _factors(query, scale)
    batch, heads, queries, depth = query.shape
    shared = query.reshape(batch, key.size(1), 1, -1, depth) * of_query
    repeated = key.unsqueeze(-2).expand(-1, -1, -1, shared.size(3), -1)
    scores = (shared * (widened(repeated) * of_key)).sum(-1).transpose(-1, -2)
    rows = scores.reshape(batch, heads, queries, key.size(-2))
    if mask is not None and mask.dtype is torch.bool:
        mask = torch.where(mask, 0.0, -math.inf)
    if mask is not None:
        rows = rows + mask
    weights = torch._safe_softmax(rows, -1)  # noqa: SLF001 - as PyTorch
    weights = weights.reshape(scores.shape)
    if value.dtype in NARROW and value.size(-2) >= LONG and weights.size(2) <= FEW:
        repeated = value.unsqueeze(2).expand(-1, -1, weights.size(2), -1, -1)
        result = (weights.unsqueeze(-1) * widened(repeated)).sum(-2)
    else:
        result = weights @ widened(value)
    return result.reshape(batch, heads, queries, value.size(-1)).to(dtype)


def causal_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float | None
) -> torch.Tensor:
    """Returns softmax(query key^T scale) value, where query i reads keys 0 to i.

    f16 and bf16 are computed in f32. Heads of keys and values are repeated if queries have more heads.
    """
    dtype = query.dtype
    query, key, value = map(widened, (query, key, value))
    if query.dim() > 3 and query.size(-3) != key.size(-3):
        repeats = query.size(-3) // key.size(-3)
        key = key.repeat_interleave(repeats, -3)
        value = value.repeat_interleave(repeats, -3)
    of_query, of_key = _factors(query, scale)
    scores = (query * of_query) @ (key.transpose(-2, -1) * of_key)
    is_seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    weights = torch._safe_softmax(torch.where(is_seen, scores, -math.inf), -1)  # noqa: SLF001 - as PyTorch
    return (weights @ value).to(dtype)


def _factors(query: torch.Tensor, scale: float | None) -> tuple[float, float]:
    """Returns (factor of queries, factor of keys), whose product is ``scale``, by default 1 / sqrt(width).

    As PyTorch does: products of large numbers overflow later.
    """
    if scale is None:
        scale = query.size(-1) ** -0.5
    factor = math.sqrt(abs(scale))
    return math.copysign(factor, scale), factor
