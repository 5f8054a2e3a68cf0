"""Twelve small networks as of torchvision and transformers, recurrent cells, models that benchmarks time."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.model_zoo import transformers
from benchmarks.model_zoo.convolutional import InvertedResidual, ResBlock, batch_norm
from benchmarks.model_zoo.perceptrons import DLRM
from benchmarks.model_zoo.transformers import LlamaMLP, RMSNorm, ViTBlock, join_heads, split_heads
from tests.models.exports.attention import attend, causal_bias, rotate
from tests.models.exports.export import Function, export, of
from tests.models.exports.linear import mlp


class Sum(nn.Module):
    """The sum of what two modules make of one input."""

    def __init__(self, one: nn.Module, other: nn.Module) -> None:
        super().__init__()
        self.one, self.other = one, other

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.one(x) + self.other(x)


def classifier(channels: int, classes: int) -> tuple[nn.Module, ...]:
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)


def resnet(channels: int, classes: int) -> nn.Sequential:
    """Returns a stem, residual blocks, one of them with a stride, and a classifier, as ResNet-18."""
    stem = nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False), batch_norm(channels), nn.ReLU()
    wide = 2 * channels
    down = nn.Conv2d(channels, wide, 3, stride=2, padding=1, bias=False)
    block = Sum(down, nn.Conv2d(channels, wide, 1, stride=2, bias=False)), nn.ReLU(), ResBlock(wide)
    pool = nn.MaxPool2d(3, stride=2, padding=1)
    return nn.Sequential(*stem, pool, ResBlock(channels), *block, *classifier(wide, classes))


def vgg(channels: int, classes: int) -> nn.Sequential:
    """Returns pairs of convolutions, pooling, and linear layers with dropout."""
    layers: list[nn.Module] = []
    for inner, outer in pairwise((3, channels, 2 * channels)):
        layers += [nn.Conv2d(inner, outer, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    linear = nn.Linear(2 * channels * 16, 32), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(32, classes)
    return nn.Sequential(*layers, nn.Flatten(), *linear)


def mobilenet(channels: int, classes: int) -> nn.Sequential:
    """Returns a stem with a stride, inverted residuals, and a classifier, as MobileNetV2."""
    stem = nn.Conv2d(3, channels, 3, stride=2, padding=1, bias=False), batch_norm(channels), nn.ReLU6()
    blocks = InvertedResidual(channels, 2), InvertedResidual(channels, 3)
    return nn.Sequential(*stem, *blocks, *classifier(channels, classes))


class ViT(nn.Module):
    """Patches, a class token, position embeddings, one block, and a classifier of the class token."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 17, width))
        self.block = ViTBlock(width, 2, 2 * width)
        self.norm, self.classify = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.positions
        return self.classify(self.norm(self.block(x))[:, 0])


class BertLayer(nn.Module):
    """Embeddings, attention with a padding mask, and norms after each residual."""

    def __init__(self, words: int, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(16, width)
        self.n0, self.n1, self.n2 = (nn.LayerNorm(width) for _ in range(3))
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.f1, self.f2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, tokens: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        x = self.n0(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))
        q, k, v = (split_heads(each(x), self.heads) for each in (self.q, self.k, self.v))
        bias = (1.0 - seen[:, None, None, :].float()) * torch.finfo(torch.float32).min
        x = self.n1(x + self.out(join_heads(attend(q, k, v, bias))))
        return self.n2(x + self.f2(F.gelu(self.f1(x))))


class CausalBlock(transformers.Encoder):
    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class GPT2(nn.Module):
    """Embeddings, one block with causal attention, and logits by the embedding's weight."""

    def __init__(self, words: int, width: int, heads: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(16, width)
        self.block, self.norm = CausalBlock(width, heads, 4 * width), nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        return F.linear(self.norm(self.block(x)), self.words.weight)


class Llama(nn.Module):
    """RMS norms, rotary embeddings, grouped queries, a gated MLP."""

    def __init__(self, width: int, heads: int, shared: int) -> None:
        super().__init__()
        self.heads, self.shared = heads, shared
        self.norm, self.mlp = RMSNorm(width), LlamaMLP(width, 3 * width)
        self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * shared * (width // heads), bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        q = rotate(split_heads(self.q(y), self.heads))
        k, v = (split_heads(each, self.shared) for each in self.kv(y).chunk(2, -1))
        k, v = (each.repeat_interleave(self.heads // self.shared, 1) for each in (rotate(k), v))
        x = x + self.out(join_heads(attend(q, k, v, causal_bias(x.shape[1]))))
        return self.mlp(x.flatten(0, 1)).view_as(x)


class T5(nn.Module):
    """Attention without a scale, with a learned bias by distance, and a gated MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.distance = nn.Embedding(8, heads)
        self.norm, self.mlp = RMSNorm(width), LlamaMLP(width, 2 * width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def bias(self, positions: int) -> torch.Tensor:
        steps = torch.arange(positions)
        distance = (steps[None, :] - steps[:, None]).clamp(-4, 3) + 4
        return self.distance(distance).permute(2, 0, 1)[None]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        q, k, v = (split_heads(each(y), self.heads) for each in (self.q, self.k, self.v))
        scores = q @ k.transpose(-2, -1) + self.bias(x.shape[1])
        return self.mlp(x + self.out(join_heads(torch.softmax(scores, -1) @ v)))


class ConvNeXt(nn.Module):
    """7x7 for each channel alone, a layer norm over channels, an MLP of channels, a scaled residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.each = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.rand(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.each(x).permute(0, 2, 3, 1))
        y = self.scale * self.down(F.gelu(self.up(y)))
        return x + y.permute(0, 3, 1, 2)


class UNet(nn.Module):
    """Down by pooling, up by a transposed convolution, joined with what was before."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 3, padding=1)
        self.inner = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.leave = nn.Conv2d(2 * channels, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side = F.relu(self.enter(x))
        y = self.up(F.relu(self.inner(F.max_pool2d(side, 2))))
        return torch.sigmoid(self.leave(torch.cat((side, y), 1)))


class LSTMClassifier(nn.Module):
    """Embeddings, an LSTM written as its cell over all positions, and a classifier of the last state."""

    def __init__(self, words: int, width: int, classes: int) -> None:
        super().__init__()
        self.words, self.cell = nn.Embedding(words, width), nn.LSTMCell(width, width)
        self.classify = nn.Linear(width, classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        state = cell = torch.zeros(tokens.shape[0], self.cell.hidden_size)
        for step in self.words(tokens).unbind(1):
            state, cell = self.cell(step, (state, cell))
        return self.classify(state)


def mixer(width: int, classes: int) -> nn.Sequential:
    """Returns patches, an MLP over positions, an MLP over channels, and a classifier of the mean."""
    patches, turn = nn.Conv2d(3, width, 4, stride=4), Function(lambda x: x.transpose(1, 2))
    tokens = nn.Sequential(nn.LayerNorm(width), turn, mlp(16, 24, 16, act=nn.GELU), turn)
    channels = nn.Sequential(nn.LayerNorm(width), mlp(width, 48, width, act=nn.GELU))
    blocks = (Sum(nn.Identity(), part) for part in (tokens, channels))
    mean = Function(lambda x: x.mean(1))
    return nn.Sequential(patches, nn.Flatten(2), turn, *blocks, mean, nn.Linear(width, classes))


TOKENS = torch.tensor([[4, 1, 17, 19, 0, 3, 2, 9], [7, 7, 2, 11, 5, 0, 0, 0]])
IMAGE = (1, 3, 16, 16)

EXPORTS = (
    export("resnet", lambda: resnet(8, 10), (1, 3, 32, 32)),
    export("vgg", lambda: vgg(8, 10), (2, 3, 16, 16)),
    export("mobilenet", lambda: mobilenet(8, 10), IMAGE),
    export("vit", lambda: ViT(16, 10), (2, 3, 16, 16)),
    export("bert_layer", lambda: BertLayer(20, 16, 2), TOKENS, TOKENS > 0),
    export("gpt2", lambda: GPT2(20, 16, 2), TOKENS),
    export("llama", lambda: Llama(32, 4, 2), (2, 8, 32)),
    export("t5", lambda: T5(16, 2), (2, 8, 16)),
    export("convnext", lambda: ConvNeXt(8), (1, 8, 10, 10)),
    export("unet", lambda: UNet(6), (1, 3, 12, 12)),
    export("lstm_classifier", lambda: LSTMClassifier(20, 16, 5), TOKENS),
    export("mixer", lambda: mixer(16, 10), IMAGE),
)

CACHE = (1, 4, 12, 8)
RECURRENT = (
    export("lstm_cell", lambda: nn.LSTMCell(12, 16), (5, 12)),
    export("gru_cell", lambda: nn.GRUCell(12, 16), (5, 12), (5, 16)),
    export("encoder", lambda: transformers.Encoder(32, 4, 64), (1, 12, 32)),
    export("gpt2_step", lambda: transformers.GPT2Step(32, 4), (1, 1, 32), CACHE, CACHE, torch.tensor(7)),
    export("dlrm", lambda: DLRM(5, 3, 20, 4), (6, 5), torch.arange(18).view(6, 3)),
    of("exponential_average", lambda x, y: torch.lerp(x, y.tanh(), 0.1), (5, 16), (5, 16)),
)
