"""PyTorch's fast paths of ``nn.TransformerEncoderLayer`` and ``nn.MultiheadAttention``, one operator each.

torch.compile puts these operators into its graphs, where torch.export follows the code of the modules.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import gelu, layer_norm, linear, relu, scaled_dot_product_attention

from tuner.models.torch.element_types import widened

ATEN = torch.ops.aten
OF_KEYS = 1  # the type of a mask (batch, keys); others are (queries, keys) or (batch, heads, queries, keys)


@dataclass(frozen=True)
class Projections:
    """The linear layers of an attention: of queries, keys and values in one, and of the result."""

    weight: torch.Tensor  # (3 * width, width)
    bias: torch.Tensor
    output_weight: torch.Tensor
    output_bias: torch.Tensor


def encoder_layers() -> dict[Any, Callable[..., Any]]:
    """Returns decompositions of the two operators, for dense tensors that are not empty."""
    return {
        ATEN._transformer_encoder_layer_fwd.default: _encoder_layer,  # noqa: SLF001 - torch's only name
        ATEN._native_multi_head_attention.default: _multi_head_attention,  # noqa: SLF001
    }


def _encoder_layer(
    x: torch.Tensor,
    width: int,
    heads: int,
    weight: torch.Tensor,
    bias: torch.Tensor,
    output_weight: torch.Tensor,
    output_bias: torch.Tensor,
    has_gelu: bool,
    is_norm_first: bool,
    eps: float,
    norm_weight: torch.Tensor,
    norm_bias: torch.Tensor,
    next_norm_weight: torch.Tensor,
    next_norm_bias: torch.Tensor,
    first_weight: torch.Tensor,
    first_bias: torch.Tensor,
    second_weight: torch.Tensor,
    second_bias: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> Any:
    """Computes ``aten._transformer_encoder_layer_fwd``: attention, then two linear layers, with norms."""
    if not x.numel():
        return NotImplemented
    projections = Projections(weight, bias, output_weight, output_bias)
    activation = gelu if has_gelu else relu

    def attention(rows: torch.Tensor) -> torch.Tensor:
        return _attention((rows, rows, rows), heads, projections, _hidden(mask, mask_type))

    def perceptron(rows: torch.Tensor) -> torch.Tensor:
        return linear(activation(linear(rows, first_weight, first_bias)), second_weight, second_bias)

    def norm(rows: torch.Tensor) -> torch.Tensor:
        return layer_norm(rows, (width,), norm_weight, norm_bias, eps)

    def next_norm(rows: torch.Tensor) -> torch.Tensor:
        return layer_norm(rows, (width,), next_norm_weight, next_norm_bias, eps)

    if is_norm_first:
        x = x + attention(norm(x))
        return x + perceptron(next_norm(x))
    x = norm(x + attention(x))
    return next_norm(x + perceptron(x))


def _multi_head_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _: int,
    heads: int,
    weight: torch.Tensor,
    bias: torch.Tensor,
    output_weight: torch.Tensor,
    output_bias: torch.Tensor,
    mask: torch.Tensor | None = None,
    has_weights: bool = True,
    is_averaged: bool = True,
    mask_type: int | None = None,
) -> Any:
    """Computes ``aten._native_multi_head_attention``; returns (result, weights of the keys).

    The weights are averaged over heads if ``is_averaged``, and an empty tensor unless ``has_weights``.
    """
    if not query.numel():
        return NotImplemented
    projections = Projections(weight, bias, output_weight, output_bias)
    rows = (query, key, value)
    hidden = _hidden(mask, mask_type)
    if not has_weights:
        return _attention(rows, heads, projections, hidden), query.new_empty(0)
    result, weights = _attention_with_weights(rows, heads, projections, hidden)
    if is_averaged:
        weights = weights.mean(1)
    return result, weights


def _hidden(mask: torch.Tensor | None, mask_type: int | None) -> torch.Tensor | None:
    """Returns a bool mask, True for keys that a query does not see, to broadcast with scores; None: sees all.

    Any number but 0 hides a key, as in PyTorch's operators.
    """
    if mask is None:
        return None
    hidden = mask != 0
    if mask_type == OF_KEYS:
        return hidden[:, None, None, :]
    return hidden


def _attention(
    rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    heads: int,
    projections: Projections,
    hidden: torch.Tensor | None,
) -> torch.Tensor:
    if hidden is not None:  # a query that sees no key is NaN there, and 0 in ``scaled_dot_product_attention``
        return _attention_with_weights(rows, heads, projections, hidden)[0]
    query, key, value = _heads_of(rows, heads, projections)
    return _projected(scaled_dot_product_attention(query, key, value), projections)


def _attention_with_weights(
    rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    heads: int,
    projections: Projections,
    hidden: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the result, and the weights of the keys: (batch, heads, queries, keys)."""
    query, key, value = map(widened, _heads_of(rows, heads, projections))
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
    if hidden is not None:
        scores = torch.where(hidden, -math.inf, scores)
    weights = scores.softmax(-1)
    dtype = rows[0].dtype
    return _projected((weights @ value).to(dtype), projections), weights.to(dtype)


def _heads_of(
    rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor], heads: int, projections: Projections
) -> list[torch.Tensor]:
    """Returns queries, keys and values, each (batch, heads, positions, width of a head)."""
    query, key, value = rows
    if query is key and key is value:
        projected = linear(query, projections.weight, projections.bias).chunk(3, -1)
    else:
        weights = projections.weight.chunk(3)
        biases = projections.bias.chunk(3)
        projected = tuple(map(linear, rows, weights, biases))
    return [part.reshape(*part.shape[:2], heads, -1).transpose(1, 2) for part in projected]


def _projected(attended: torch.Tensor, projections: Projections) -> torch.Tensor:
    # a copy: in a family of programs an attention whose result has other strides takes the place of this one
    rows = attended.transpose(1, 2).clone(memory_format=torch.contiguous_format)
    return linear(rows.flatten(2), projections.output_weight, projections.output_bias)
