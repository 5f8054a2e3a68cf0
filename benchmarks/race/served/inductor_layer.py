"""A linear layer compiled by torch inductor: run in PyTorch's environment.

python inductor_layer.py M N K DTYPE     compiles, tunes and runs it twice
"""

import os
import sys
from collections.abc import Callable

import torch
import torch._inductor.config as settings

# of ATen's level in the environment, which inductor does not read: bits of the vectors that it writes
VECTOR_BITS = {"avx2": 256}
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def compiled_layer(a: torch.Tensor, b: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """Returns a function of A (m x k) that returns A B; B (k x n) is its constant weight."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    settings.freezing = True
    settings.cpp.simdlen = VECTOR_BITS.get(os.environ.get("ATEN_CPU_CAPABILITY", ""))
    layer = torch.nn.Linear(b.shape[0], b.shape[1], bias=False, dtype=b.dtype).eval()
    layer.weight.copy_(b.T)
    compiled: Callable[[torch.Tensor], torch.Tensor] = torch.compile(layer, mode="max-autotune")
    compiled(a)  # compiles
    compiled(a)
    return compiled


def main() -> None:
    """Compiles the layer once: its code is in inductor's cache then."""
    *sizes, dtype = sys.argv[1:]
    m, n, k = map(int, sizes)
    compiled_layer(torch.randn(m, k).to(TYPES[dtype]), torch.randn(k, n).to(TYPES[dtype]))


if __name__ == "__main__":
    main()
