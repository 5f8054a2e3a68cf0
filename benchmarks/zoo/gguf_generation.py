"""Tokens a second of models of GGUF files: tuner, eager mode, inductor, and llama.cpp where it is installed.

``python -m benchmarks.zoo.gguf_generation --output FILE [--hidden 2048] [--layers 4] [--kind Q4_0 Q8_0]``.
A Llama with random weights is written by ``examples/language_model.py``. Prompts of 64 tokens and single
tokens are timed alone, in interleaved rounds of one process, on one thread, after all is compiled; tokens of
tuner must be those of eager mode. llama.cpp is that of the package llama-cpp-python, which multiplies by
activations of 8 bits, as "tuner i8" does; the others multiply f32. Of these, slow ones are timed in the first
rounds only.
"""

import argparse
import importlib
import runpy
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from operator import sub
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.limited_child import Stopped, in_child
from benchmarks.results_file import add_report_options, emit, report

EXAMPLE = Path(__file__).parents[2] / "examples" / "language_model.py"
KINDS = ("Q4_0", "Q8_0")
PROMPT, TOKENS, ROUNDS = 64, 32, 9
SLOW_ROUNDS = 2
VOCABULARY = 4096
LIMIT_S = 1800.0
EAGER, TUNER, ROUNDED, INDUCTOR, LLAMA = "eager", "tuner", "tuner i8", "inductor", "llama.cpp"
WAYS = {EAGER: ("", ""), TUNER: ("tuner", ""), ROUNDED: ("tuner", "i8"), INDUCTOR: ("inductor", "")}
SLOW = (EAGER, INDUCTOR)
Generated = tuple[Any, list[float]]  # tokens; when it began, the prompt's token came, and each later one
Call = Callable[[], Generated]


@dataclass(frozen=True)
class GgufGeneration:
    """Tokens a second of one file, by each of the ways to generate."""

    kind: str
    is_equal: bool = False  # tokens of tuner to those of eager mode
    failure: str = ""
    left: tuple[str, ...] = ()  # reasons for which graphs were left by tuner
    without: dict[str, str] = field(default_factory=dict)  # way -> why it was not timed
    prompt_per_s: dict[str, float] = field(default_factory=dict)
    decode_per_s: dict[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Returns the row in one line."""
        speeds = [
            f"{way} {self.prompt_per_s[way]:.1f} and {self.decode_per_s[way]:.2f}"
            for way in self.decode_per_s
        ]
        equal = "equal" if self.is_equal else "OTHER TOKENS"
        return f"{self.kind}: {self.failure or equal}; prompt and decode tokens/s: {', '.join(speeds)}"


def generation_of(kind: str, hidden: int, layers: int, rounds: int) -> GgufGeneration:
    """Writes a model, compiles it in each way and times all ways in this process."""
    import torch

    import tuner.torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        runpy.run_path(str(EXAMPLE))["write_random"](path, hidden, layers, VOCABULARY, kind)
        calls: dict[str, Call] = {}
        without = {}
        for way, (backend, activations) in WAYS.items():
            calls[way] = _generator(path, backend, activations)
        try:
            calls[LLAMA] = _llama(path)
        except (ImportError, ValueError) as error:
            without[LLAMA] = str(error)
        tokens = {way: call()[0] for way, call in calls.items()}  # compiles
        left = tuner.torch.graph_counts().reasons
        seconds = _seconds(calls, rounds)
    prompts = {way: median(first for first, _ in pairs) for way, pairs in seconds.items()}
    steps = {way: median(step for _, step in pairs) for way, pairs in seconds.items()}
    return GgufGeneration(
        kind,
        is_equal=bool(torch.equal(tokens[TUNER], tokens[EAGER])),
        left=left,
        without=without,
        prompt_per_s={way: round(PROMPT / taken, 1) for way, taken in prompts.items()},
        decode_per_s={way: round(1 / taken, 2) for way, taken in steps.items()},
    )


def _prompt() -> Any:
    import torch

    return torch.randint(3, VOCABULARY, (1, PROMPT), generator=torch.manual_seed(0))


class _Times:
    """A streamer of transformers' ``generate``, which is given the prompt and then each token."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def put(self, _: Any) -> None:
        """Notes the time."""
        self.seconds.append(time.perf_counter())

    def end(self) -> None:
        """Does nothing: the last token was noted."""


def _generator(path: Path, backend: str, activations: str) -> Call:
    """Returns a function that generates all tokens by a back end, "" for eager mode."""
    import torch

    import tuner.torch

    model = tuner.torch.load_gguf(path, activations=activations)
    if backend:
        # static: torch would take the sizes of another model's prompt for those of this one
        model.forward = torch.compile(model.forward, backend=backend, dynamic=False)

    def generate() -> Generated:
        times = _Times()
        tokens = model.generate(
            _prompt(), max_new_tokens=TOKENS, do_sample=False, cache_implementation="static", streamer=times
        )
        return tokens, times.seconds

    return generate


def _llama(path: Path) -> Call:
    """Returns the same by llama.cpp; raises ImportError without it, ValueError where it refuses the file."""
    library: Any = importlib.import_module("llama_cpp")
    model = library.Llama(str(path), n_threads=1, n_threads_batch=1, n_ctx=256, n_batch=PROMPT, verbose=False)
    prompt = _prompt()[0].tolist()

    def generate() -> Generated:
        seconds = [time.perf_counter()]
        model.reset()
        model.eval(prompt)
        seconds.append(time.perf_counter())
        for step in range(TOKENS - 1):
            model.eval([3 + step])
            seconds.append(time.perf_counter())
        return None, seconds

    return generate


def _seconds(calls: dict[str, Call], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Returns of each way the seconds of the prompt, and the median of those of a token, in each round."""
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in calls}
    for index in range(rounds):
        for way, call in calls.items():
            if way in SLOW and index >= SLOW_ROUNDS:
                continue
            _, times = call()
            first, *steps = map(sub, times[1:], times)
            seconds[way].append((first, median(steps)))
    return seconds


def main(arguments: list[str] | None = None) -> int:
    """Times each type, prints a line for each, and writes them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo.gguf_generation", description=__doc__)
    parser.add_argument("--kind", nargs="*", default=KINDS, help="types of the weights")
    parser.add_argument("--hidden", type=int, default=2048, help="size of a token's vector")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of one type")
    add_report_options(parser)
    options = parser.parse_args(arguments)
    rows = []
    for kind in options.kind:
        row = in_child(
            generation_of, kind, options.hidden, options.layers, options.rounds, limit_s=options.limit
        )
        if isinstance(row, Stopped):
            row = GgufGeneration(kind, failure=row.reason)
        rows.append(row)
        print(row.text, file=sys.stderr, flush=True)
    sizes = {name: getattr(options, name) for name in ("hidden", "layers", "rounds")}
    settings = {**sizes, "vocabulary": VOCABULARY, "prompt": PROMPT, "tokens": TOKENS}
    emit(report("gguf_generation", settings, list(map(asdict, rows)), {}), options.json, options.output)
    return int(not all(row.is_equal for row in rows))


if __name__ == "__main__":
    sys.exit(main())
