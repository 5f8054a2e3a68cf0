"""Blocks of convolutional networks: a residual block of ResNet, an inverted residual of MobileNetV2."""

import torch
from torch import nn
from torch.nn import functional as F


def batch_norm(channels: int) -> nn.BatchNorm2d:
    """Returns a batch norm with statistics that differ from those before training."""
    norm = nn.BatchNorm2d(channels)
    norm.running_mean.uniform_(-0.2, 0.2)
    norm.running_var.uniform_(0.5, 1.5)
    return norm


class ResBlock(nn.Module):
    """Two 3x3 convolutions with batch norms, and a residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.c1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.c2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.b1, self.b2 = batch_norm(channels), batch_norm(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        y = F.relu(self.b1(self.c1(x)))
        return F.relu(x + self.b2(self.c2(y)))


class InvertedResidual(nn.Module):
    """1x1 to more channels, 3x3 for each channel alone, 1x1 back, and a residual."""

    def __init__(self, channels: int, expansion: int) -> None:
        super().__init__()
        inner = channels * expansion
        self.up = nn.Conv2d(channels, inner, 1, bias=False)
        self.each = nn.Conv2d(inner, inner, 3, padding=1, groups=inner, bias=False)
        self.down = nn.Conv2d(inner, channels, 1, bias=False)
        self.b1, self.b2, self.b3 = batch_norm(inner), batch_norm(inner), batch_norm(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        y = F.relu6(self.b1(self.up(x)))
        return x + self.b3(self.down(F.relu6(self.b2(self.each(y)))))
