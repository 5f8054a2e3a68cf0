"""The models that are timed: small ones, where a call's overhead counts, and large ones, where code does."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.model_zoo.convolutional import InvertedResidual, ResBlock
from benchmarks.model_zoo.perceptrons import DLRM, mlp
from benchmarks.model_zoo.transformers import Encoder, GPT2Step, LlamaMLP, ViTBlock

Inputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Model:
    """A model and its inputs."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[], Inputs]
    is_large: bool  # 50 MFLOP or more; small ones have less than 3


def normal(*shape: int) -> Callable[[], Inputs]:
    """Returns a function that draws one input of a normal distribution."""
    return lambda: (torch.randn(shape),)


def _decoding(width: int, heads: int, cached: int) -> Callable[[], Inputs]:
    cache = (1, heads, cached, width // heads)
    return lambda: (
        torch.randn(1, 1, width),
        torch.randn(cache),
        torch.randn(cache),
        torch.tensor(cached - 28),
    )


def _categories(batch: int, numbers: int, categories: int, words: int) -> Callable[[], Inputs]:
    return lambda: (torch.randn(batch, numbers), torch.randint(0, words, (batch, categories)))


MODELS = (
    Model("mlp", lambda: mlp(64, 128, 128, 32), normal(32, 64), is_large=False),
    Model("mlp_big", lambda: mlp(512, 1024, 1024, 256), normal(128, 512), is_large=True),
    Model("encoder", lambda: Encoder(64, 4, 128), normal(1, 32, 64), is_large=False),
    Model("encoder_big", lambda: Encoder(256, 4, 1024), normal(1, 128, 256), is_large=True),
    Model("llama_mlp", lambda: LlamaMLP(64, 176), normal(16, 64), is_large=False),
    Model("llama_big", lambda: LlamaMLP(512, 1376), normal(64, 512), is_large=True),
    Model("resnet", lambda: ResBlock(16), normal(1, 16, 16, 16), is_large=False),
    Model("resnet_big", lambda: ResBlock(64), normal(1, 64, 56, 56), is_large=True),
    Model("vit", lambda: ViTBlock(192, 3, 768), normal(1, 197, 192), is_large=True),  # ViT-Tiny at 224x224
    Model("gpt2_step", lambda: GPT2Step(256, 4), _decoding(256, 4, 128), is_large=False),
    Model("mobilenet", lambda: InvertedResidual(24, 6), normal(1, 24, 56, 56), is_large=True),  # its second
    Model("dlrm", lambda: DLRM(13, 8, 1000, 16), _categories(32, 13, 8, 1000), is_large=False),
)


def build(model: Model, dtype: torch.dtype = torch.float32) -> tuple[nn.Module, Inputs]:
    """Returns a model in evaluation mode and its inputs, the same numbers each time."""
    torch.manual_seed(0)
    module = model.make().eval().to(dtype)
    inputs = model.inputs()
    return module, tuple(each.to(dtype) if each.is_floating_point() else each for each in inputs)
