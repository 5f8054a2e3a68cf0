"""Tokens that language models generate by the back end of ``torch.compile``, next to eager mode and inductor.

``python -m benchmarks.zoo.generation --output FILE [--times] [--hidden N] [--dtype T]``. Weights are random;
a model's forward is compiled, and ``generate`` of transformers calls it for a prompt and for each token, with
a cache that grows or a static one, greedy or sampled. With ``--times``, generations of the three are timed
in rounds, on one thread, after the first of each, which compiles. Tokens must be equal in float32: in
bfloat16 each back end rounds at other places, and the most likely token may be another one.
"""

import argparse
import importlib
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.limited_child import Stopped, in_child
from benchmarks.results_file import emit, report
from benchmarks.zoo.language import configuration_of
from benchmarks.zoo.outcome import without_folders

MODELS = ("llama", "gpt2", "qwen3", "gemma3_text")
CACHES = ("dynamic", "static")  # both are sliding in layers of gemma3_text
PROMPT = 24
TOKENS = 32
ROUNDS = 5
FLOAT32, BFLOAT16 = DTYPES = ("float32", "bfloat16")  # of weights and activations
LIMIT_S = 1200.0


@dataclass(frozen=True)
class Generation:
    """What became of one way to generate: graphs of dynamo, and tokens per second by each back end."""

    model: str
    cache: str
    is_sampled: bool
    dtype: str = FLOAT32
    is_equal: bool = False  # to eager mode's tokens
    taken: int = 0
    left: int = 0
    reasons: tuple[str, ...] = ()
    in_torch: tuple[str, ...] = ()
    failure: str = ""
    tokens_per_s: dict[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Returns the generation in one line."""
        mode = "sampled" if self.is_sampled else "greedy"
        equal = "equal" if self.is_equal else "OTHER TOKENS" if self.dtype == FLOAT32 else "other tokens"
        speeds = ", ".join(f"{name} {speed:.1f}" for name, speed in self.tokens_per_s.items())
        graphs = f"{self.taken} graphs taken, {self.left} left"
        parts = (self.failure or equal, graphs, speeds, *self.reasons)
        return f"{self.model} {self.cache} {mode} {self.dtype}: {'; '.join(filter(None, parts))}"

    @property
    def is_right(self) -> bool:
        """Returns whether tokens are those that they must be."""
        return not self.failure and (self.is_equal or self.dtype != FLOAT32)


def generation_of(start: Generation, sizes: dict[str, int], is_timed: bool) -> Generation:
    """Generates tokens in this process, in eager mode, by tuner and, ``is_timed``, by inductor.

    ``sizes``: of the configuration, over those of the zoo.
    """
    import torch

    import tuner.torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    generate = _generator(start, sizes)
    expected = generate("")
    found = generate("tuner")
    counts = tuner.torch.graph_counts()
    ended = replace(
        start,
        is_equal=bool(torch.equal(found, expected)),
        taken=counts.taken,
        left=counts.left,
        reasons=without_folders(counts.reasons),
        in_torch=without_folders(counts.in_torch),
    )
    if not is_timed:
        return ended
    return replace(ended, tokens_per_s=_speeds(generate, ("", "tuner", "inductor")))


def _generator(start: Generation, sizes: dict[str, int]) -> Callable[[str], Any]:
    """Returns a function that generates tokens by a back end, "" for eager mode; each has its own module."""
    import torch

    torch.manual_seed(0)
    configuration = configuration_of(start.model, sizes)
    models: Any = importlib.import_module("transformers").AutoModelForCausalLM
    dtype = getattr(torch, start.dtype)
    module = models.from_config(configuration).to(dtype).eval()
    prompt = torch.randint(3, 900, (1, PROMPT))
    modules = {"": module}
    options: dict[str, Any] = {
        "max_new_tokens": TOKENS,
        "min_new_tokens": TOKENS,
        "do_sample": start.is_sampled,
    }
    if start.cache != "dynamic":
        options["cache_implementation"] = start.cache

    def generate(name: str) -> Any:
        if name not in modules:
            modules[name] = models.from_config(configuration).to(dtype).eval()
            modules[name].load_state_dict(module.state_dict())
            modules[name].forward = torch.compile(modules[name].forward, backend=name)
        torch.manual_seed(1)
        with torch.no_grad():
            return modules[name].generate(prompt, **options)

    return generate


def _speeds(generate: Callable[[str], Any], names: tuple[str, ...]) -> dict[str, float]:
    """Returns the median of tokens per second of each back end, in rounds."""
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        generate(name)
    for _ in range(ROUNDS):
        for name in names:
            began = time.perf_counter()
            generate(name)
            seconds[name].append(time.perf_counter() - began)
    return {name or "eager": round(TOKENS / median(taken), 2) for name, taken in seconds.items()}


def main(arguments: list[str] | None = None) -> int:
    """Generates in all ways, prints a line for each, and writes them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo.generation", description=__doc__)
    parser.add_argument("--model", nargs="*", default=MODELS, help="models of transformers")
    parser.add_argument("--cache", nargs="*", default=CACHES, help="kinds of caches")
    parser.add_argument("--greedy", action="store_true", help="nothing is sampled")
    parser.add_argument("--hidden", type=int, default=256, help="size of a token's vector")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--dtype", choices=DTYPES, default=FLOAT32, help="of weights and activations")
    parser.add_argument("--times", action="store_true", help="time them next to eager mode and inductor")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of one way")
    parser.add_argument("--output", type=Path, help="file for the results")
    options = parser.parse_args(arguments)
    sizes = sizes_of(options.hidden, options.layers)
    generations = []
    for start in starts(options.model, options.cache, options.dtype, is_greedy=options.greedy):
        generation = in_child(generation_of, start, sizes, options.times, limit_s=options.limit)
        if isinstance(generation, Stopped):
            generation = replace(start, failure=generation.reason)
        generations.append(generation)
        print(generation.text, flush=True)
    settings = {**sizes, "prompt": PROMPT, "tokens": TOKENS, "rounds": ROUNDS}
    document = report("generation", settings, list(map(asdict, generations)), summary_of(generations))
    emit(document, is_json=False, output=options.output)
    return int(not all(generation.is_right for generation in generations))


def starts(
    models: tuple[str, ...], caches: tuple[str, ...], dtype: str, *, is_greedy: bool
) -> list[Generation]:
    """Returns all ways to generate that are asked for."""
    modes = [False] if is_greedy else [False, True]
    return [Generation(model, cache, mode, dtype) for model in models for cache in caches for mode in modes]


def sizes_of(hidden: int, layers: int) -> dict[str, int]:
    """Returns sizes of a configuration, under each name that transformers gives them."""
    heads = max(hidden // 64, 1)
    return {
        **dict.fromkeys(("hidden_size", "n_embd"), hidden),
        **dict.fromkeys(("intermediate_size", "n_inner"), hidden * 11 // 4),
        **dict.fromkeys(("num_hidden_layers", "n_layer"), layers),
        **dict.fromkeys(("num_attention_heads", "n_head"), heads),
        "num_key_value_heads": max(heads // 2, 1),
    }


def summary_of(generations: list[Generation]) -> dict[str, Any]:
    """Returns how many are equal and are taken whole, and the least speed over inductor."""
    over = [
        generation.tokens_per_s["tuner"] / generation.tokens_per_s["inductor"]
        for generation in generations
        if generation.tokens_per_s
    ]
    return {
        "generations": len(generations),
        "equal": sum(generation.is_equal for generation in generations),
        "all graphs taken": sum(bool(generation.taken) and not generation.left for generation in generations),
        "least speed over inductor": round(min(over), 2) if over else None,
    }


if __name__ == "__main__":
    sys.exit(main())
