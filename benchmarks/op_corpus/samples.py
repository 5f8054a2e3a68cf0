"""Samples of PyTorch's operators as modules, drawn by a seed from what PyTorch tests itself with."""

import itertools
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree

DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u8": torch.uint8,
    "bool": torch.bool,
}
SAMPLES_LIMIT = 300  # of an operator and type, from which are drawn: some have tens of thousands


@dataclass(frozen=True)
class OpSampleName:
    """Which sample of an operator is meant: number 0 is the first that is drawn by a seed."""

    op: str
    dtype: str
    number: int
    seed: int = 0


class OpSample(torch.nn.Module):
    """An operator applied to the arguments of a sample: its tensors are inputs, all else is constant."""

    def __init__(self, function: Callable[..., Any], arguments: Any) -> None:
        super().__init__()
        self._function = function
        self._leaves, self._spec = _pytree.tree_flatten(arguments)
        self._places = tuple(at for at, each in enumerate(self._leaves) if isinstance(each, torch.Tensor))
        self.inputs = tuple([self._leaves[at].detach() for at in self._places])

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Applies the operator."""
        leaves = list(self._leaves)
        for at, tensor in zip(self._places, tensors, strict=True):
            leaves[at] = tensor
        arguments, keywords = _pytree.tree_unflatten(leaves, self._spec)
        return self._function(*arguments, **keywords)


class OpSamples(torch.nn.Module):
    """Several samples as one module: its inputs are those of all, its results one of each."""

    def __init__(self, samples: Sequence[OpSample]) -> None:
        super().__init__()
        self._samples = torch.nn.ModuleList(samples)
        self._counts = [len(each.inputs) for each in samples]
        self.inputs = tuple(tensor for each in samples for tensor in each.inputs)

    def forward(self, *tensors: torch.Tensor) -> list[Any]:
        """Applies each operator to its own inputs."""
        rest = iter(tensors)
        owned = [list(itertools.islice(rest, count)) for count in self._counts]
        return [each(*own) for each, own in zip(self._samples, owned, strict=True)]


@cache
def operators() -> dict[str, Any]:
    """Returns PyTorch's descriptions of its operators by their names, of variants ``name.variant``."""
    return {f"{each.name}.{each.variant_test_name}".removesuffix("."): each for each in op_db}


def pairs() -> list[tuple[str, str]]:
    """Returns each operator with each of ``DTYPES`` that it takes on the CPU."""
    return [
        (op, name)
        for op, each in operators().items()
        for name, dtype in DTYPES.items()
        if dtype in each.supported_dtypes("cpu")
    ]


def drawn(name: OpSampleName) -> OpSample | None:
    """Returns a sample; None where the operator has fewer of this type."""
    _set_seeds(name.seed)
    op = operators()[name.op]
    found = op.sample_inputs("cpu", DTYPES[name.dtype], requires_grad=False)
    samples = list(itertools.islice(found, SAMPLES_LIMIT))
    if name.number >= len(samples):
        return None
    order = list(range(len(samples)))
    random.Random(zlib.crc32(f"{name.op} {name.dtype} {name.seed}".encode())).shuffle(order)
    sample = samples[order[name.number]]
    return OpSample(op.op, ((sample.input, *sample.args), sample.kwargs))


def _set_seeds(seed: int) -> None:
    """Sets the generators that the samples' values come from."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
