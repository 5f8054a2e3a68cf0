"""Exports of attention: written by hand and by ``scaled_dot_product_attention``, with the usual masks."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.model_zoo.transformers import join_heads, split_heads
from tests.models.exports.export import export, of


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns softmax(q k^T / sqrt(d) + bias) v."""
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias
    return torch.softmax(scores, -1) @ v


def causal_bias(positions: int) -> Tensor:
    """Returns 0 where a position is seen, -inf where it comes later."""
    return torch.full((positions, positions), -torch.inf).triu(1)


class Attention(nn.Module):
    """Self attention with one product for queries, keys and values."""

    def __init__(self, width: int, heads: int, form: str = "") -> None:
        super().__init__()
        self.heads, self.form = heads, form
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("mask", causal_bias(16))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(each, self.heads) for each in self.qkv(x).chunk(3, -1))
        if self.form.startswith("sdpa"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.form == "sdpa_causal")
        else:
            positions = x.shape[1]
            y = attend(q, k, v, self.mask[:positions, :positions] if self.form == "causal" else None)
        return self.out(join_heads(y))


def grouped_query(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Several heads of queries share one head of keys and values."""
    return attend(q, *(each.repeat_interleave(q.shape[1] // k.shape[1], 1) for each in (k, v)))


def rotate(x: Tensor) -> Tensor:
    """Returns x with rotary position embeddings."""
    positions, width = x.shape[-2:]
    rates = 10000 ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = torch.arange(positions, dtype=torch.float32)[:, None] * rates
    cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


def alibi(heads: int, positions: int) -> Tensor:
    """Returns a bias that grows with the distance, and hides what comes later."""
    slopes = 2 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float32) / heads)
    steps = torch.arange(positions)
    distance = (steps[None, :] - steps[:, None]).float()
    return slopes[:, None, None] * distance + causal_bias(positions)


def with_padding(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Attends to the positions that ``seen`` (batch, positions) has true."""
    return attend(q, k, v, torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)[:, None, None, :])


def cached_step(
    q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """One position after those of a cache of static size; returns the cache without its oldest position."""
    keys, values = torch.cat((keys[:, :, 1:], k), 2), torch.cat((values[:, :, 1:], v), 2)
    return attend(q, keys, values), keys, values


def cached_at(q: Tensor, k: Tensor, keys: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
    """Writes a key into a cache at a position that is an argument, and attends to those up to it."""
    steps = torch.arange(keys.shape[2])
    keys = torch.where((steps == position)[:, None], k, keys)
    bias = torch.zeros(keys.shape[2]).masked_fill(steps > position, -torch.inf)
    return attend(q, keys, keys, bias), keys


def windowed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    steps = torch.arange(q.shape[2])
    near = (steps[:, None] - steps[None, :]).abs() <= 2
    scores = (q @ k.transpose(-2, -1)).masked_fill(~near, -torch.inf)
    return torch.softmax(scores, -1) @ v


SEEN = torch.tensor([[True] * 7 + [False] * 3, [True] * 10])
WIDE_SEEN = torch.arange(40)[None] < torch.tensor([[40], [23]])  # more positions than a vector has lanes
QKV = ((2, 4, 10, 8), (2, 4, 10, 8), (2, 4, 10, 8))

EXPORTS = (
    export("attention", lambda: Attention(32, 4), (2, 12, 32)),
    export("attention_causal", lambda: Attention(32, 4, "causal"), (2, 12, 32)),
    export("attention_sdpa", lambda: Attention(32, 4, "sdpa"), (2, 12, 32)),
    export("attention_sdpa_causal", lambda: Attention(32, 4, "sdpa_causal"), (2, 12, 32)),
    of("attention_grouped_query", grouped_query, (2, 4, 12, 8), (2, 2, 12, 8), (2, 2, 12, 8)),
    of("attention_cross", attend, (2, 4, 5, 8), (2, 4, 9, 8), (2, 4, 9, 8)),
    of("attention_padding_mask", with_padding, *QKV, SEEN),
    of("attention_sdpa_padding_mask", F.scaled_dot_product_attention, *QKV, SEEN[:, None, None, :]),
    of("attention_wide_mask", with_padding, *((2, 2, 40, 32),) * 3, WIDE_SEEN),
    of("attention_window", windowed, *QKV),
    of("attention_alibi", lambda q, k, v: attend(q, k, v, alibi(4, 10)), *QKV),
    of("attention_rotary", lambda q, k, v: attend(rotate(q), rotate(k), v), *QKV),
    of("rotary_embedding", rotate, (2, 3, 10, 8)),
    of("attention_cached_step", cached_step, *((1, 2, 1, 8),) * 3, *((1, 2, 12, 8),) * 2),
    of("attention_cached_at", cached_at, *((1, 2, 1, 8),) * 2, (1, 2, 12, 8), torch.tensor(5)),
)
