"""The models that are timed: small ones, large ones, blocks with rarer operators, and whole networks."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.model_zoo import LARGE, NETWORK, RARER, SMALL
from benchmarks.model_zoo.convolutional import InvertedResidual, ResBlock
from benchmarks.model_zoo.networks import NETWORKS
from benchmarks.model_zoo.perceptrons import DLRM, mlp
from benchmarks.model_zoo.rarer_operators import (
    CBAM,
    SPPF,
    CausalAttention,
    DiffusionBlock,
    NeRFRays,
    StyleBlock,
    UNetUp,
    VolumeBlock,
    gan_volume,
    hifi_gan_up,
    stem,
)
from benchmarks.model_zoo.transformers import Encoder, GPT2Step, LlamaMLP, ViTBlock

Inputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Model:
    """A model and its inputs."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[], Inputs]
    category: str  # LARGE, SMALL, RARER or NETWORK
    dtype: torch.dtype | None = None  # None: that of the run


def normal(*shape: int) -> Callable[[], Inputs]:
    """Returns a function that draws one input of a normal distribution."""
    return normals(shape)


def normals(*shapes: tuple[int, ...]) -> Callable[[], Inputs]:
    """Returns a function that draws inputs of a normal distribution."""
    return lambda: tuple(map(torch.randn, shapes))


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


IMAGE_NETWORKS = ("resnet50", "mobilenet_v3_large", "convnext_tiny")
MODELS = (
    Model("mlp", lambda: mlp(64, 128, 128, 32), normal(32, 64), SMALL),
    Model("mlp_big", lambda: mlp(512, 1024, 1024, 256), normal(128, 512), LARGE),
    Model("encoder", lambda: Encoder(64, 4, 128), normal(1, 32, 64), SMALL),
    Model("encoder_big", lambda: Encoder(256, 4, 1024), normal(1, 128, 256), LARGE),
    Model("llama_mlp", lambda: LlamaMLP(64, 176), normal(16, 64), SMALL),
    Model("llama_big", lambda: LlamaMLP(512, 1376), normal(64, 512), LARGE),
    Model("resnet", lambda: ResBlock(16), normal(1, 16, 16, 16), SMALL),
    Model("resnet_big", lambda: ResBlock(64), normal(1, 64, 56, 56), LARGE),
    Model("vit", lambda: ViTBlock(192, 3, 768), normal(1, 197, 192), LARGE),  # ViT-Tiny at 224x224
    Model("gpt2_step", lambda: GPT2Step(256, 4), _decoding(256, 4, 128), SMALL),
    Model("mobilenet", lambda: InvertedResidual(24, 6), normal(1, 24, 56, 56), LARGE),  # its second
    Model("dlrm", lambda: DLRM(13, 8, 1000, 16), _categories(32, 13, 8, 1000), SMALL),
    Model("r3d", lambda: VolumeBlock(64), normal(1, 64, 4, 28, 28), RARER),
    Model("unet_up", lambda: UNetUp(64), normals((1, 128, 28, 28), (1, 64, 56, 56)), RARER),
    Model("gan_3d", lambda: gan_volume(128), normal(1, 128, 8, 8, 8), RARER),
    Model("hifi_gan", lambda: hifi_gan_up(256), normal(1, 256, 64), RARER),
    Model("stem", stem, normal(1, 3, 224, 224), RARER),
    Model("sppf", lambda: SPPF(256), normal(1, 256, 20, 20), RARER),
    Model("nerf", NeRFRays, normals((512, 64, 3), (512, 64), (512, 64)), RARER),
    Model("cbam", lambda: CBAM(64), normal(1, 64, 56, 56), RARER),
    Model("diffusion", lambda: DiffusionBlock(128), normal(1, 128, 32, 32), RARER),
    Model("causal", lambda: CausalAttention(256, 4), normal(1, 512, 256), RARER),
    Model("resnet_f16", lambda: ResBlock(64), normal(1, 64, 28, 28), RARER, torch.float16),
    Model("style", lambda: StyleBlock(128), normal(1, 128, 28, 28), RARER),
    *(Model(name, NETWORKS[name], normal(1, 3, 224, 224), NETWORK) for name in IMAGE_NETWORKS),
    Model("unet_320", lambda: DiffusionBlock(320), normal(1, 320, 64, 64), NETWORK),
)


def build(model: Model, dtype: torch.dtype = torch.float32) -> tuple[nn.Module, Inputs]:
    """Returns a model in evaluation mode and its inputs, the same numbers each time."""
    torch.manual_seed(0)
    module = model.make().eval().to(model.dtype or dtype)
    inputs = model.inputs()
    numbers = (each.to(model.dtype or dtype) if each.is_floating_point() else each for each in inputs)
    return module, tuple(numbers)
