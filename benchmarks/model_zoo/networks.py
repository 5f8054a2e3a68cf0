"""Whole networks for images of 224x224 with random weights: ResNets, MobileNetV3, ConvNeXt and others."""

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


class Bottleneck(nn.Module):
    """ResNet50: 1x1 to fewer channels, 3x3, 1x1 to more, and a residual, which a 1x1 convolution adapts."""

    def __init__(self, inputs: int, inner: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * inner
        self.body = nn.Sequential(
            conv(inputs, inner, 1), conv(inner, inner, 3, stride), conv(inner, outputs, 1, last=nn.Identity())
        )
        is_same = stride == 1 and inputs == outputs
        self.residual = nn.Identity() if is_same else conv(inputs, outputs, 1, stride, last=nn.Identity())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        return F.relu(self.body(x) + self.residual(x))


def resnet50() -> nn.Module:
    """Returns a ResNet50."""
    layers: list[nn.Module] = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for inner, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for number in range(count):
            layers.append(Bottleneck(inputs, inner, 1 if number or inner == 64 else 2))
            inputs = 4 * inner
    return nn.Sequential(*layers, *head(2048))


class WeightedChannels(nn.Module):
    """MobileNetV3: multiplies each channel by a weight that the means of all channels give."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        few = _by_8(channels // 4)
        squeeze = (nn.Conv2d(channels, few, 1), nn.ReLU(), nn.Conv2d(few, channels, 1), nn.Hardsigmoid())
        self.weights = nn.Sequential(nn.AdaptiveAvgPool2d(1), *squeeze)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the layer's result for x (batch, channels, height, width)."""
        return x * self.weights(x)


def _by_8(channels: int) -> int:
    """Returns the multiple of 8 next to a number of channels, not below nine tenths of it."""
    near = max(8, (channels + 4) // 8 * 8)
    return near + 8 if near < 0.9 * channels else near


MobileRow = tuple[int, int, int, bool, type[nn.Module], int]


class Inverted(nn.Module):
    """MobileNetV3: 1x1 to more channels, each channel alone, weighted channels, 1x1 back, and a residual."""

    def __init__(self, inputs: int, row: MobileRow) -> None:
        super().__init__()
        size, inner, outputs, is_weighted, act, stride = row
        up = [] if inner == inputs else [conv(inputs, inner, 1, last=act())]
        weighted = [WeightedChannels(inner)] if is_weighted else []
        each = conv(inner, inner, size, stride, inner, act())
        self.body = nn.Sequential(*up, each, *weighted, conv(inner, outputs, 1, last=nn.Identity()))
        self.has_residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        return x + self.body(x) if self.has_residual else self.body(x)


# Searching for MobileNetV3 (Howard et al. 2019), table 1:
# window, inner, outputs, weighted, activation, stride
MOBILE_ROWS: tuple[MobileRow, ...] = (
    *(
        (3, 16, 16, False, nn.ReLU, 1),
        (3, 64, 24, False, nn.ReLU, 2),
        (3, 72, 24, False, nn.ReLU, 1),
        (5, 72, 40, True, nn.ReLU, 2),
    ),
    *((5, 120, 40, True, nn.ReLU, 1), (5, 120, 40, True, nn.ReLU, 1), (3, 240, 80, False, nn.Hardswish, 2)),
    *(
        (3, 200, 80, False, nn.Hardswish, 1),
        (3, 184, 80, False, nn.Hardswish, 1),
        (3, 184, 80, False, nn.Hardswish, 1),
    ),
    *(
        (3, 480, 112, True, nn.Hardswish, 1),
        (3, 672, 112, True, nn.Hardswish, 1),
        (5, 672, 160, True, nn.Hardswish, 2),
    ),
    *((5, 960, 160, True, nn.Hardswish, 1), (5, 960, 160, True, nn.Hardswish, 1)),
)


def mobilenet_v3_large() -> nn.Module:
    """Returns a MobileNetV3-Large."""
    layers: list[nn.Module] = [conv(3, 16, 3, 2, last=nn.Hardswish())]
    inputs = 16
    for row in MOBILE_ROWS:
        layers.append(Inverted(inputs, row))
        inputs = row[2]
    last = (nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, CLASSES))
    pool = (nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(*layers, conv(inputs, 960, 1, last=nn.Hardswish()), *pool, *last)


class ChannelNorm(nn.Module):
    """ConvNeXt: a layer norm over the channels of each pixel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels, eps=1e-6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the layer's result for x (batch, channels, height, width)."""
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class NextBlock(nn.Module):
    """ConvNeXt: 7x7 of each channel alone, a norm, a perceptron for each pixel, and a scaled residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.each = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(0.1 * torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        pixels = self.norm(self.each(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(pixels)))).permute(0, 3, 1, 2)


def convnext_tiny() -> nn.Module:
    """Returns a ConvNeXt-T."""
    layers: list[nn.Module] = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96)]
    inputs = 96
    for channels, count in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if channels != inputs:
            layers += [ChannelNorm(inputs), nn.Conv2d(inputs, channels, 2, 2)]
        layers += [NextBlock(channels) for _ in range(count)]
        inputs = channels
    last = (nn.LayerNorm(inputs, eps=1e-6), nn.Linear(inputs, CLASSES))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *last)


NETWORKS: Mapping[str, Callable[[], nn.Module]] = MappingProxyType(
    {
        "resnet18": resnet18,
        "resnet50": resnet50,
        "googlenet": googlenet,
        "efficientnet_b0": efficientnet_b0,
        "mobilenet_v3_large": mobilenet_v3_large,
        "convnext_tiny": convnext_tiny,
    }
)
