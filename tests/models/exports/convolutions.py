"""Exports of convolutions, pooling and resizing."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.models.exports.elementwise import with_statistics
from tests.models.exports.export import export, of


def normed(*layers: nn.Module) -> nn.Sequential:
    """Returns layers whose batch norms have statistics that are not those of the start."""
    return nn.Sequential(*(with_statistics(x) if isinstance(x, nn.BatchNorm2d) else x for x in layers))


def conv(inner: int, outer: int, **options: Any) -> nn.Conv2d:
    return nn.Conv2d(inner, outer, 3, padding=1, **options)


def pooled_and_linear() -> nn.Sequential:
    return normed(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))


class SqueezeAndExcite(nn.Module):
    """Channels scaled by a small MLP of their means."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = F.adaptive_avg_pool2d(x, 1)
        return x * torch.sigmoid(self.up(F.relu(self.down(scale))))


IMAGE = (1, 8, 12, 12)

EXPORTS = (
    export("conv_1x1", lambda: nn.Conv2d(8, 24, 1), IMAGE),
    export("conv_3x3", lambda: nn.Conv2d(8, 16, 3, padding=1), IMAGE),
    export("conv_3x3_of_a_batch", lambda: nn.Conv2d(5, 7, 3, padding=1), (3, 5, 9, 11)),
    export("conv_without_padding", lambda: nn.Conv2d(8, 16, 3, bias=False), IMAGE),
    export("conv_stride_2", lambda: nn.Conv2d(8, 16, 3, stride=2, padding=1), IMAGE),
    export("conv_dilated", lambda: nn.Conv2d(8, 8, 3, padding=2, dilation=2), IMAGE),
    export("conv_1x3", lambda: nn.Conv2d(8, 8, (1, 3), padding=(0, 1)), IMAGE),
    export("conv_patches", lambda: nn.Conv2d(3, 24, 4, stride=4), (1, 3, 16, 16)),
    export("conv_7x7_stem", lambda: nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), (1, 3, 17, 17)),
    export("conv_grouped", lambda: nn.Conv2d(8, 16, 3, padding=1, groups=4), IMAGE),
    export("conv_depthwise", lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8), IMAGE),
    export("conv_depthwise_stride_2", lambda: nn.Conv2d(8, 8, 5, 2, padding=2, groups=8), IMAGE),
    export("conv_1d", lambda: nn.Conv1d(6, 10, 5, padding=2), (2, 6, 20)),
    export("conv_3d", lambda: nn.Conv3d(2, 4, 3, padding=1), (1, 2, 5, 6, 7)),
    export("conv_single_pixel", lambda: nn.Conv2d(24, 672, 1), (2, 24, 1, 1)),
    export("conv_of_the_whole_image", lambda: nn.Conv2d(8, 40, (3, 4), bias=False), (3, 8, 3, 4)),
    export("conv_1d_of_the_whole_row", lambda: nn.Conv1d(6, 10, 5), (2, 6, 5)),
    export("conv_single_pixel_bf16", lambda: nn.Conv2d(24, 40, 1), (1, 24, 1, 1), dtype=torch.bfloat16),
    export("conv_single_pixel_grouped", lambda: nn.Conv2d(32, 640, 1, groups=2), (1, 32, 1, 1)),
    export("conv_transposed", lambda: nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1), (1, 6, 7, 7)),
    export(
        "conv_batch_norm_relu", lambda: normed(conv(8, 8, bias=False), nn.BatchNorm2d(8), nn.ReLU()), IMAGE
    ),
    export("conv_relu_conv", lambda: normed(conv(8, 12), nn.ReLU(), conv(12, 8)), IMAGE),
    export("conv_separable", lambda: normed(conv(8, 8, groups=8), nn.Conv2d(8, 16, 1)), IMAGE),
    export("conv_pool_linear", pooled_and_linear, (2, 3, 10, 10)),
    export("squeeze_and_excite", lambda: SqueezeAndExcite(8, 4), IMAGE),
    export("conv_reflected", lambda: nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect"), IMAGE),
    export("max_pool", lambda: nn.MaxPool2d(3, stride=2, padding=1), IMAGE),
    export("average_pool", lambda: nn.AvgPool2d(2), IMAGE),
    export("average_pool_padded", lambda: nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), IMAGE),
    export("adaptive_pool", lambda: nn.AdaptiveAvgPool2d((3, 4)), IMAGE),
    of("global_pool", lambda x: x.mean((-2, -1)), IMAGE),
    of("nearest_upsampling", lambda x: F.interpolate(x, scale_factor=2), (1, 3, 5, 5)),
    of("bilinear_upsampling", lambda x: F.interpolate(x, size=(9, 11), mode="bilinear"), (1, 3, 5, 5)),
    of("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), (1, 12, 5, 5)),
    of("conv_of_arguments", lambda x, w: F.conv2d(x, w, padding=1), IMAGE, (8, 8, 3, 3)),
)
