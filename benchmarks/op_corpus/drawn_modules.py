"""Small modules drawn by a seed, and the inputs and surroundings that they are called with.

A module is a chain of a few steps. Its sizes, types and steps are drawn; sizes of 0 and 1 are among them.
"""

import math
import os
import pickle
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Variant = Callable[[torch.Tensor], torch.Tensor]
F = torch.nn.functional
SIZES = (0, 1, 1, 2, 3, 4, 5, 8, 17)
DTYPES = (torch.float32, torch.float32, torch.float32, torch.float64, torch.bfloat16)
NAN, INF = float("nan"), float("inf")
DENORMAL = 1e-39  # of f32 and bf16

# Each takes what the chain has so far and the second input, and gives a tensor of floats of one rank or more
STEPS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "relu": lambda x, _: F.relu(x),
    "gelu": lambda x, _: F.gelu(x.clamp(-30, 30)),  # of infinity it is NaN in PyTorch alone
    "tanh": lambda x, _: torch.tanh(x),
    "sigmoid": lambda x, _: torch.sigmoid(x),
    "exp": lambda x, _: torch.exp(-x.abs()),
    "sqrt": lambda x, _: torch.sqrt(x.abs()),
    "neg": lambda x, _: -x,
    "sign": lambda x, _: torch.sign(x) + x,
    "where": lambda x, _: torch.where(x > 0, x, 0.5 * x),
    "isnan": lambda x, _: torch.isnan(x).to(x.dtype) + x,
    "clamp": lambda x, _: x.clamp(-0.5, 1.5),
    "softmax": lambda x, _: torch.softmax(x, -1),
    "add": lambda x, y: x + y.sum(),
    "multiply": lambda x, y: x * (y.flatten()[:1] if y.numel() else 2.0),
    "outer": lambda x, y: x.unsqueeze(-1) + y.flatten()[:3],
    "greatest": lambda x, y: torch.maximum(x, y.flatten()[:1]) if y.numel() else x,
    "sum": lambda x, _: x.sum(-1, keepdim=True),
    "mean": lambda x, _: x.mean(0, keepdim=True),
    "cumsum": lambda x, _: x.cumsum(-1),
    "layer_norm": lambda x, _: F.layer_norm(x, x.shape[-1:]),
    "gram": lambda x, _: _rows(x) @ _rows(x).T,
    "transpose": lambda x, _: x.transpose(0, -1),
    "flip": lambda x, _: x.flip(-1),
    "concatenate": lambda x, _: torch.cat([x, 2 * x], 0),
    "slice": lambda x, _: x[..., ::2],
    "pad": lambda x, _: F.pad(x, (1, 2)),
    "flatten": lambda x, _: x.reshape(-1),
    "expand": lambda x, _: x.unsqueeze(0).expand(2, *x.shape),
    "narrow": lambda x, _: x.to(torch.bfloat16).to(x.dtype),
}


def _rows(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(x.shape[0], math.prod(x.shape[1:]))


class DrawnModule(torch.nn.Module):
    """A chain of steps, then a linear layer."""

    def __init__(self, steps: tuple[str, ...], width: int) -> None:
        super().__init__()
        self.steps = steps
        self.last = torch.nn.Linear(width, 4) if width else None

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the layer's result and what it was given."""
        z = x
        for step in self.steps:
            z = STEPS[step](z, y)
        return (z if self.last is None else self.last(z)), z


@dataclass(frozen=True, eq=False)
class DrawnCase:
    """A drawn module with example inputs."""

    module: DrawnModule
    inputs: tuple[torch.Tensor, torch.Tensor]


def case(number: int, seed: int = 0) -> DrawnCase:
    """Returns a drawn module, in ``eval`` mode, and its example inputs."""
    rng = random.Random(f"{seed} {number}")
    torch.manual_seed(rng.randrange(2**31))
    dtype = rng.choice(DTYPES)
    shapes = [tuple(rng.choice(SIZES) for _ in range(rng.randint(1, 3))) for _ in range(2)]
    x, y = (torch.randn(shape, dtype=dtype) for shape in shapes)
    steps = tuple(rng.choice(list(STEPS)) for _ in range(rng.randint(2, 5)))
    width = DrawnModule(steps, 0)(x, y)[1].shape[-1]
    return DrawnCase(DrawnModule(steps, width).to(dtype).eval(), (x, y))


def _planted(*numbers: float) -> Variant:
    """Returns a copy of a tensor with some of its elements replaced by these numbers in turn."""

    def planted(x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten().clone()
        for at in range(0, flat.numel(), 3):
            flat[at] = numbers[at // 3 % len(numbers)]
        return flat.reshape(x.shape)

    return planted


def _strided(x: torch.Tensor) -> torch.Tensor:
    """Returns the tensor as each second element of another, whose dimensions run the other way."""
    wide = torch.stack([x, torch.full_like(x, 7)], -1)
    order = tuple(reversed(range(x.dim())))
    return wide.permute(*order, x.dim()).contiguous().permute(*order, x.dim())[..., 0]


# Inputs of the same shapes and types as the example's
INPUTS: dict[str, Variant] = {
    "others": lambda x: torch.randn_like(x),
    "nan": _planted(NAN),
    "infinities": _planted(INF, -INF),
    "denormals": _planted(DENORMAL, -DENORMAL),
    "zeros": _planted(0.0, -0.0),
    # Along the first dimension: a layer norm of equal numbers makes 300 times as much of their rounding
    "expanded": lambda x: x[:1].expand(x.shape) if x.dim() > 1 and x.shape[0] else x,
    "strided": _strided,
    "negated": lambda x: torch._neg_view(x.clone()),  # noqa: SLF001 - as the imaginary part of a conjugate is
    "offset": lambda x: torch.cat([x.flatten()[:1], x.flatten()])[min(1, x.numel()) :].reshape(x.shape),
}


def _directly(call: Callable[[], Any]) -> Any:
    return call()


def _inference(call: Callable[[], Any]) -> Any:
    with torch.inference_mode():
        return call()


def _autocast(call: Callable[[], Any]) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return call()


def _f64_by_default(call: Callable[[], Any]) -> Any:
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return call()
    finally:
        torch.set_default_dtype(usual)


def _in_thread(call: Callable[[], Any]) -> Any:
    found: list[Any] = []

    def run() -> None:
        with torch.no_grad():
            found.append(call())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def _after_fork(call: Callable[[], Any]) -> Any:
    """Returns what the call gives in a forked child process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(call(), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        sent = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(sent)  # noqa: S301 - of this process's own child


# Where a call is made from; each takes a call and makes it
SURROUNDINGS: dict[str, Callable[[Callable[[], Any]], Any]] = {
    "as it is": _directly,
    "inference mode": _inference,
    "autocast": _autocast,
    "default dtype f64": _f64_by_default,
    "another thread": _in_thread,
    "after fork": _after_fork,
}
