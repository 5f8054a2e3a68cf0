"""Blocks of networks with operators that other models lack: volumes, transposed ones, pools, scans, norms."""

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.model_zoo.convolutional import batch_norm
from benchmarks.model_zoo.transformers import join_heads, split_heads


class VolumeBlock(nn.Module):
    """R3D-18: two 3x3x3 convolutions with batch norms, and a residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.c1 = nn.Conv3d(channels, channels, 3, padding=1, bias=False)
        self.c2 = nn.Conv3d(channels, channels, 3, padding=1, bias=False)
        self.b1, self.b2 = nn.BatchNorm3d(channels), nn.BatchNorm3d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, frames, height, width)."""
        y = F.relu(self.b1(self.c1(x)))
        return F.relu(x + self.b2(self.c2(y)))


class UNetUp(nn.Module):
    """U-Net: twice the size by a transposed convolution, next to the encoder's, and a 3x3 convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.conv = nn.Conv2d(2 * channels, channels, 3, padding=1, bias=False)
        self.norm = batch_norm(channels)

    def forward(self, x: torch.Tensor, skipped: torch.Tensor) -> torch.Tensor:
        """Returns (batch, channels, 2 height, 2 width) of x (batch, 2 channels, height, width)."""
        return F.relu(self.norm(self.conv(torch.cat([self.up(x), skipped], 1))))


def gan_volume(channels: int) -> nn.Sequential:
    """Returns a layer of the generator of 3D-GAN: a volume of half the channels and twice the size."""
    inner = channels // 2
    up = nn.ConvTranspose3d(channels, inner, 4, stride=2, padding=1, bias=False)
    return nn.Sequential(up, nn.BatchNorm3d(inner), nn.ReLU())


def hifi_gan_up(channels: int) -> nn.Sequential:
    """Returns an upsampling layer of HiFi-GAN: 8 times the samples."""
    return nn.Sequential(
        nn.LeakyReLU(0.1), nn.ConvTranspose1d(channels, channels // 2, 16, stride=8, padding=4)
    )


def stem() -> nn.Sequential:
    """Returns the stem of ResNet and the pool of DenseNet's transition: 224x224 to 28x28."""
    conv = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
    return nn.Sequential(conv, batch_norm(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2))


class SPPF(nn.Module):
    """YOLOv5's pyramid: a 1x1 convolution, a 5x5 pool of it, of that and of that, and one of all four."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = channels // 2
        self.c1, self.c2 = nn.Conv2d(channels, inner, 1), nn.Conv2d(4 * inner, channels, 1)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        levels = [F.silu(self.c1(x))]
        for _ in range(3):
            levels.append(self.pool(levels[-1]))
        return F.silu(self.c2(torch.cat(levels, 1)))


class NeRFRays(nn.Module):
    """Renders samples along rays, and distributes the next samples: products and sums of all before."""

    def forward(
        self, rgb: torch.Tensor, density: torch.Tensor, steps: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Returns colours (rays, 3) and distribution (rays, n) for rgb (rays, n, 3), density (rays, n)."""
        opacity = 1 - torch.exp(-F.relu(density) * steps)
        seen = torch.cumprod(1 - opacity + 1e-10, -1) * opacity
        colour = (seen.unsqueeze(-1) * torch.sigmoid(rgb)).sum(-2)
        weights = seen + 1e-5
        return colour, torch.cumsum(weights / weights.sum(-1, keepdim=True), -1)


class CBAM(nn.Module):
    """Attention over channels by pools of whole images, then over pixels by reductions over channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.f1, self.f2 = nn.Linear(channels, channels // 16), nn.Linear(channels // 16, channels)
        self.conv = nn.Conv2d(2, 1, 7, padding=3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        pooled = (F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, 1))
        mean, most = (self.f2(F.relu(self.f1(each.flatten(1)))) for each in pooled)
        x = x * torch.sigmoid(mean + most)[:, :, None, None]
        maps = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)
        return x * torch.sigmoid(self.conv(maps))


class DiffusionBlock(nn.Module):
    """Stable Diffusion: two times a group norm, SiLU and a 3x3 convolution, and a residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(32, channels), nn.GroupNorm(32, channels)
        self.c1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.c2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        y = self.c1(F.silu(self.n1(x)))
        return x + self.c2(F.silu(self.n2(y)))


class CausalAttention(nn.Module):
    """GPT-2: attention over the tokens before."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the layer's result for x (batch, tokens, width)."""
        q, k, v = (split_heads(each, self.heads) for each in self.qkv(x).chunk(3, -1))
        return self.out(join_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True)))


class StyleBlock(nn.Module):
    """Style transfer: two 3x3 convolutions with instance norms, and a residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.c1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.c2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.n1, self.n2 = (nn.InstanceNorm2d(channels, affine=True) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's result for x (batch, channels, height, width)."""
        y = F.relu(self.n1(self.c1(x)))
        return x + self.n2(self.c2(y))
