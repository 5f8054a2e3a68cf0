"""Exports a language model of a GGUF file, and generates tokens by numpy alone.

python examples/exported_language_model.py [model.gguf folder]

The folder gets two programs: ``prompt`` reads 16 tokens at once, ``step`` one, and has the weights of
``prompt``. Both take the same caches of keys and values, which they write in place, and return the logits of
the next token. Without arguments: of a
small Llama with random weights in Q4_0, whose tokens are compared with eager mode.
"""

import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import tuner
import tuner.torch

PROMPT, LENGTH = 16, 32  # tokens: of the prompt, and of the caches
SMALL = Path(__file__).with_name("language_model.py")


class CachedDecoder(torch.nn.Module):
    """A causal language model of transformers, with a static cache of ``length`` tokens as its buffers."""

    def __init__(self, model: Any, length: int) -> None:
        super().__init__()
        config = model.config
        self.model = model
        self.cache = transformers.StaticCache(config=config, max_cache_len=length)
        sizes = (1, config.num_key_value_heads, config.head_dim)
        self.cache.early_initialization(*sizes, model.dtype, torch.device("cpu"))
        for index, layer in enumerate(self.cache.layers):
            for name in ("keys", "values", "cumulative_length"):
                self.register_buffer(f"{name}_{index}", getattr(layer, name))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns the logits of the token after the last of ``tokens``, which follow those in the cache."""
        return self.model(tokens, cache=self.cache, use_cache=True, logits_to_keep=1).logits


def export(model: Any, prompt: int, length: int, folder: Path) -> None:
    """Exports a model for prompts of so many tokens, and for single ones, with caches of ``length``."""
    decoder = CachedDecoder(model, length)
    for name, count in (("prompt", prompt), ("step", 1)):
        program = tuner.torch.compile(decoder, (torch.zeros(1, count, dtype=torch.int64),))
        program.export(folder / name, weights_of=None if name == "prompt" else folder / "prompt")


def generated(folder: Path, tokens: list[int], count: int) -> list[int]:
    """Returns ``count`` tokens after a prompt, by exported programs: without PyTorch."""
    prompt, step = (tuner.load(folder / name) for name in ("prompt", "step"))
    caches = [np.zeros(argument.shape, argument.dtype) for argument in step.arguments[1:]]
    logits = prompt(np.array([tokens]), *caches)
    made: list[int] = []
    while len(made) < count:
        made.append(int(logits.argmax()))
        logits = step(np.array([[made[-1]]]), *caches)
    return made


def main(path: Path, folder: Path) -> None:
    """Exports the model of a file, and compares the tokens after a random prompt with eager mode."""
    torch.set_grad_enabled(False)
    model = tuner.torch.load_gguf(path)
    export(model, PROMPT, LENGTH, folder)
    tokens = torch.randint(3, model.config.vocab_size, (1, PROMPT), generator=torch.manual_seed(0))
    found = generated(folder, tokens[0].tolist(), LENGTH - PROMPT)
    expected = model.generate(tokens, max_new_tokens=len(found), min_new_tokens=len(found), do_sample=False)
    print(*found)
    print("right" if found == expected[0, PROMPT:].tolist() else "wrong")


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as name:
            small = Path(name) / "model.gguf"
            runpy.run_path(str(SMALL))["write_random"](small, hidden=256, layers=2, vocabulary=1024)
            main(small, Path(name) / "exported")
