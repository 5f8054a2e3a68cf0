"""Layers of transformers: encoders, a Llama MLP, a vision transformer's block, a decoding step of GPT-2."""

import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    """Divides by the root mean square of the last dimension."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns x, normalized and scaled."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class LlamaMLP(nn.Module):
    """A norm, a gated MLP, a residual."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm = RMSNorm(width)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns x (tokens, width) plus its gated MLP."""
        y = self.norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Returns (batch, heads, tokens, width of a head) of (batch, tokens, width)."""
    batch, tokens, width = x.shape
    return x.view(batch, tokens, heads, width // heads).transpose(1, 2)


def join_heads(x: torch.Tensor) -> torch.Tensor:
    """Returns (batch, tokens, width) of (batch, heads, tokens, width of a head)."""
    batch, heads, tokens, width = x.shape
    return x.transpose(1, 2).reshape(batch, tokens, heads * width)


class Encoder(nn.Module):
    """A layer with its norms first: attention by matmuls and softmax, MLP with GELU."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.f1, self.f2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Returns attention over all tokens."""
        return torch.softmax((q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5, -1) @ v

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the layer's result for x (batch, tokens, width)."""
        q, k, v = (split_heads(each, self.heads) for each in self.qkv(self.n1(x)).chunk(3, -1))
        x = x + self.out(join_heads(self.attend(q, k, v)))
        return x + self.f2(F.gelu(self.f1(self.n2(x))))


class ViTBlock(Encoder):
    """The same layer by ``scaled_dot_product_attention``, as vision transformers write it."""

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Returns attention over all tokens."""
        return F.scaled_dot_product_attention(q, k, v)


class GPT2Step(nn.Module):
    """A block of GPT-2 that decodes one token with a cache of keys and values of static size.

    ``position`` is the number of the token: its key and value are written there, and later ones are not seen.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.f1, self.f2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(
        self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, position: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns the block's result for x (batch, 1, width), and both caches with the token's entries."""
        q, k, v = (split_heads(each, self.heads) for each in self.qkv(self.n1(x)).chunk(3, -1))
        steps = torch.arange(keys.shape[2])
        here = (steps == position)[:, None]
        keys, values = torch.where(here, k, keys), torch.where(here, v, values)
        scores = (q @ keys.transpose(-2, -1)) * q.shape[-1] ** -0.5
        weights = torch.softmax(scores.masked_fill(steps > position, -torch.inf), -1)
        x = x + self.out(join_heads(weights @ values))
        x = x + self.f2(F.gelu(self.f1(self.n2(x)), approximate="tanh"))
        return x, keys, values
