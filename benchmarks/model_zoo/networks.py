"""Whole networks for images of 224x224: ResNet18, GoogLeNet, EfficientNet-B0, with random weights."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.model_zoo.convolutional import batch_norm

CLASSES = 1000


def conv(
    inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1, last: nn.Module | None = None
) -> nn.Sequential:
    """Returns a convolution that keeps the size but for its stride, a batch norm, and ``last`` or ReLU."""
    layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(layer, batch_norm(outputs), nn.ReLU() if last is None else last)


def head(channels: int) -> tuple[nn.Module, ...]:
    """Returns the layers that classify a feature map."""
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)


class Basic(nn.Module):
    """ResNet18: two 3x3 convolutions, and a residual, which a 1x1 convolution adapts."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv(inputs, outputs, 3, stride), conv(outputs, outputs, 3, last=nn.Identity())
        )
        is_same = stride == 1 and inputs == outputs
        self.residual = nn.Identity() if is_same else conv(inputs, outputs, 1, stride, last=nn.Identity())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        return F.relu(self.body(x) + self.residual(x))


def resnet18() -> nn.Module:
    """Returns a ResNet18."""
    layers: list[nn.Module] = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        layers += [Basic(inputs, outputs, 1 + (outputs != 64)), Basic(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, *head(512))


class Inception(nn.Module):
    """GoogLeNet: 1x1, 3x3, 3x3 and a pool next to each other; ``sizes``: channels of their convolutions."""

    def __init__(self, inputs: int, sizes: tuple[int, ...]) -> None:
        super().__init__()
        alone, narrow, wide, thin, thick, pooled = sizes
        self.parts = nn.ModuleList(
            [
                conv(inputs, alone, 1),
                nn.Sequential(conv(inputs, narrow, 1), conv(narrow, wide, 3)),
                nn.Sequential(conv(inputs, thin, 1), conv(thin, thick, 3)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(inputs, pooled, 1)),
            ]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        return torch.cat([part(x) for part in self.parts], 1)


# Going deeper with convolutions (Szegedy et al. 2014), table 1; None: a pool that halves height and width
INCEPTIONS = (
    *((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None, (192, 96, 208, 16, 48, 64)),
    *((160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64)),
    *((256, 160, 320, 32, 128, 128), None, (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)


def googlenet() -> nn.Module:
    """Returns a GoogLeNet without auxiliary classifiers."""

    def halved() -> nn.Module:
        return nn.MaxPool2d(3, 2, ceil_mode=True)

    layers: list[nn.Module] = [conv(3, 64, 7, 2), halved(), conv(64, 64, 1), conv(64, 192, 3), halved()]
    inputs = 192
    for sizes in INCEPTIONS:
        layers.append(halved() if sizes is None else Inception(inputs, sizes))
        if sizes is not None:
            inputs = sizes[0] + sizes[2] + sizes[4] + sizes[5]
    return nn.Sequential(*layers, *head(inputs))


class MBConv(nn.Module):
    """EfficientNet: 1x1 to more channels, each channel alone, weighted channels, 1x1 back, and a residual."""

    def __init__(self, inputs: int, outputs: int, expansion: int, size: int, stride: int) -> None:
        super().__init__()
        inner, few = inputs * expansion, inputs // 4
        self.up = nn.Identity() if expansion == 1 else conv(inputs, inner, 1, last=nn.SiLU())
        self.each = conv(inner, inner, size, stride, inner, nn.SiLU())
        squeeze = (nn.Conv2d(inner, few, 1), nn.SiLU(), nn.Conv2d(few, inner, 1), nn.Sigmoid())
        self.weights = nn.Sequential(nn.AdaptiveAvgPool2d(1), *squeeze)
        self.down = conv(inner, outputs, 1, last=nn.Identity())
        self.has_residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        y = self.each(self.up(x))
        y = self.down(y * self.weights(y))
        return x + y if self.has_residual else y


# EfficientNet (Tan and Le 2019), table 1: expansion, channels, layers, window, stride of the first
STAGES = (
    *((1, 16, 1, 3, 1), (6, 24, 2, 3, 2), (6, 40, 2, 5, 2), (6, 80, 3, 3, 2)),
    *((6, 112, 3, 5, 1), (6, 192, 4, 5, 2), (6, 320, 1, 3, 1)),
)


def efficientnet_b0() -> nn.Module:
    """Returns an EfficientNet-B0."""
    layers: list[nn.Module] = [conv(3, 32, 3, 2, last=nn.SiLU())]
    inputs = 32
    for expansion, outputs, count, size, stride in STAGES:
        for number in range(count):
            layers.append(MBConv(inputs, outputs, expansion, size, 1 if number else stride))
            inputs = outputs
    return nn.Sequential(*layers, conv(inputs, 1280, 1, last=nn.SiLU()), *head(1280))


NETWORKS: Mapping[str, Callable[[], nn.Module]] = MappingProxyType(
    {"resnet18": resnet18, "googlenet": googlenet, "efficientnet_b0": efficientnet_b0}
)
