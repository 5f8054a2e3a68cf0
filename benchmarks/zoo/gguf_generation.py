"""Whole language models of GGUF files: compiled, right, tokens a second next to llama.cpp, and exported.

    python -m benchmarks.zoo.gguf_generation --model llama_1b --kind Q4_0 --output FILE

A file with random weights is written for each model and type; the model of transformers that ``load_gguf``
makes of it reads 64 tokens and makes 64, greedily, with a static cache. Stages run in processes of their own:

    cold    compiles without compiled files and makes the tokens; memory is that of all processes together
    warm    the same with the files that ``cold`` has left
    check   eager mode reads prompt and tokens at once: each token has to be its best one, or in bfloat16, and
            where rows are rounded to i8, as good to rounding (``greatest_gap``)
    times   prompts and single tokens, in interleaved rounds with llama.cpp, for each number of threads
    export  prompt and step as folders, whose tokens numpy alone makes, and a C program

With ``--window 96`` layers attend to the last 96 tokens, in a cache of so many: Mistral's model with a
Llama's weights. llama.cpp would read all tokens: it is not timed.

llama.cpp is that of the package llama-cpp-python. It multiplies integers by activations of 8 bits, as
``activations="i8"`` does, which is the default here.
"""

import argparse
import importlib
import json
import runpy
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from operator import sub
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.compiled_files import new_caches
from benchmarks.limited_child import Stopped, in_child
from benchmarks.limited_libraries import limit_libraries
from benchmarks.process_memory import watched_memory
from benchmarks.results_file import add_report_options, emit, report
from benchmarks.zoo.exported_decoder import tokens_by_numpy, tokens_in_c
from benchmarks.zoo.gguf_files import BF16, MODELS, write_random

COLD, WARM, CHECK, TIMES, EXPORT = STAGES = ("cold", "warm", "check", "times", "export")
EXAMPLE = Path(__file__).parents[2] / "examples" / "exported_language_model.py"
KINDS = ("Q4_0", BF16)
ROUNDED = "i8"
PROMPT, TOKENS, ROUNDS = 64, 64, 5
THREADS = (1, 2)
LIMIT_S, LIMIT_GB = 1800.0, 12.0
TUNER, LLAMA = "tuner", "llama.cpp"
# How much less than the best logit, over the greatest, that of a token may be: where products are rounded.
TOLERANCES = {"": 1e-4, ROUNDED: 2e-2, BF16: 4e-2}
MIB = 1 << 20
Generated = tuple[Any, list[float]]  # tokens; when it began, the prompt's token came, and each later one
Call = Callable[[], Generated]
Ratio = tuple[float, float, float]  # median, least and greatest of the rounds


@dataclass(frozen=True)
class GgufGeneration:
    """What became of a model of one type.

    ``peak_mb``: most memory of all processes; ``after_mb``: when the tokens are made; ``equal``: tokens that
    are eager mode's best ones; ``greatest_gap``: how much less the logit of another token is, over the
    greatest logit; speeds and ``over_llama``: by "prompt" and "decode", and threads; ``stopped``: why a stage
    did not end.
    """

    model: str
    kind: str
    head_kind: str = ""
    activations: str = ""
    window: int = 0  # tokens that a layer attends to; 0: all
    weights_mb: float = 0.0
    load_s: float = 0.0
    compile_s: dict[str, float] = field(default_factory=dict)
    peak_mb: dict[str, float] = field(default_factory=dict)
    after_mb: dict[str, float] = field(default_factory=dict)
    taken: int = 0
    left: tuple[str, ...] = ()  # reasons for which graphs were left by tuner
    in_torch: tuple[str, ...] = ()
    equal: int = 0
    greatest_gap: float = 0.0
    tokens_per_s: dict[str, float] = field(default_factory=dict)
    over_llama: dict[str, Ratio] = field(default_factory=dict)
    export_s: float = 0.0
    export_mb: float = 0.0
    equal_by_numpy: int = 0
    equal_in_c: int = 0
    stopped: dict[str, str] = field(default_factory=dict)

    @property
    def tolerance(self) -> float:
        """Returns the limit of ``greatest_gap``."""
        return max(TOLERANCES[self.activations], TOLERANCES.get(self.kind, 0.0))

    @property
    def is_right(self) -> bool:
        """Returns whether all stages ended, by programs of tuner alone, with the tokens they must have."""
        is_whole = not self.stopped and not self.left and not self.in_torch
        return is_whole and self.greatest_gap <= self.tolerance

    @property
    def text(self) -> str:
        """Returns the row in one line."""
        compiled = [f"{stage} {seconds:.1f} s" for stage, seconds in self.compile_s.items()]
        peaks = [f"{stage} {peak:,.0f} MB" for stage, peak in self.peak_mb.items()]
        speeds = [f"{name} {speed:.1f}" for name, speed in self.tokens_per_s.items()]
        ratios = [f"{name} {ratio[0]:.2f}" for name, ratio in self.over_llama.items()]
        parts = {
            "compiled": compiled,
            "peak": peaks,
            "equal": [f"{self.equal} of {TOKENS}, gap {self.greatest_gap:.1e}"],
            "tokens/s": speeds,
            "over llama.cpp": ratios,
            "exported": [f"{self.equal_by_numpy} equal by numpy, {self.equal_in_c} in C"],
            "stopped": [f"{stage}: {reason}" for stage, reason in self.stopped.items()],
        }
        told = [f"{name} {', '.join(texts)}" for name, texts in parts.items() if texts]
        window = f" window {self.window}" if self.window else ""
        return f"{self.model} {self.kind} {self.activations}{window}: {'; '.join(told)}"


def stage_of(row: GgufGeneration, stage: str, path: Path, threads: tuple[int, ...], rounds: int) -> Any:
    """Runs a stage in this process; returns the row with what it found."""
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    warnings.simplefilter("ignore")
    tokens_file = path.with_suffix(".tokens.json")
    if stage in (COLD, WARM):
        row, tokens = _compiled(row, stage, path)
        tokens_file.write_text(json.dumps(tokens))
        return row
    tokens = json.loads(tokens_file.read_text())
    if stage == CHECK:
        return _checked(row, path, tokens)
    if stage == EXPORT:
        return _exported(row, path, tokens)
    for count in threads:
        row = _timed(row, path, count, rounds)
    return row


def _compiled(row: GgufGeneration, stage: str, path: Path) -> tuple[GgufGeneration, list[int]]:
    """Compiles a model and makes its tokens, while the memory of all processes is watched."""
    import tuner.torch

    with watched_memory() as held:
        began_s = time.perf_counter()
        model = _model(row, path)
        loaded_s = time.perf_counter()
        generate = _generator(model)
        generate(2)
        compiled_s = time.perf_counter()
        tokens, _ = generate(TOKENS)
        memory = held()
    counts = tuner.torch.graph_counts()
    ended = replace(
        row,
        weights_mb=_held_mb(model),
        load_s=round(loaded_s - began_s, 2),
        compile_s={**row.compile_s, stage: round(compiled_s - loaded_s, 2)},
        peak_mb={**row.peak_mb, stage: round(memory.peak_bytes / MIB)},
        after_mb={**row.after_mb, stage: round(memory.now_bytes / MIB)},
        taken=counts.taken,
        left=counts.reasons,
        in_torch=counts.in_torch,
    )
    return ended, tokens[0, PROMPT:].tolist()


def _model(row: GgufGeneration, path: Path) -> Any:
    import torch

    import tuner.torch

    dtype = torch.bfloat16 if row.kind == BF16 else torch.float32
    model = tuner.torch.load_gguf(path, dtype=dtype, activations=row.activations)
    if row.window:
        return _with_window(model, row.window)
    return model


def _with_window(model: Any, window: int) -> Any:
    """Returns Mistral's model with a Llama's modules; its layers attend to the last ``window`` tokens."""
    import torch

    transformers = importlib.import_module("transformers")

    settings = model.config.to_dict()
    names = ("model_type", "architectures", "layer_types", "attention_bias", "mlp_bias", "pretraining_tp")
    settings = {name: value for name, value in settings.items() if name not in names}
    config = transformers.MistralConfig(**settings | {"sliding_window": window})
    with torch.device("meta"):
        made = transformers.AutoModelForCausalLM.from_config(config)
    for name, module in list(made.named_modules()):
        if not list(module.children()):
            made.set_submodule(name, model.get_submodule(name))
    return made.eval()


def _held_mb(model: Any) -> float:
    tensors = {tensor.data_ptr(): tensor for tensor in (*model.parameters(), *model.buffers())}
    total_bytes: int = sum(tensor.nbytes for tensor in tensors.values())
    return round(total_bytes / MIB, 1)


def _prompt() -> Any:
    import torch

    return torch.randint(3, 900, (1, PROMPT), generator=torch.manual_seed(0))


class _Times:
    """A streamer of transformers' ``generate``, which is given the prompt and then each token."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def put(self, _: Any) -> None:
        """Notes the time."""
        self.seconds.append(time.perf_counter())

    def end(self) -> None:
        """Does nothing: the last token was noted."""


def _generator(model: Any, threads: int = 1) -> Callable[[int], Generated]:
    """Returns a function that generates so many tokens by the back end, in a cache for all TOKENS."""
    import torch

    options = {"threads": threads}
    # static: torch would take the sizes of another prompt for those of this one; but the length of what a
    # sliding cache has read is a number that each step would be compiled for
    dynamic = None if getattr(model.config, "sliding_window", None) else False
    model.forward = torch.compile(model.forward, backend=TUNER, dynamic=dynamic, options=options)

    def generate(count: int) -> Generated:
        times = _Times()
        tokens = model.generate(
            _prompt(),
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
            cache_implementation="static",
            max_cache_len=PROMPT + TOKENS,
            streamer=times,
        )
        return tokens, times.seconds

    return generate


def _checked(row: GgufGeneration, path: Path, tokens: list[int]) -> GgufGeneration:
    """Compares tokens with the best ones of eager mode, which reads them after the prompt at once."""
    import torch

    read = torch.cat((_prompt(), torch.tensor([tokens[:-1]])), dim=1)
    logits = _model(row, path)(read, logits_to_keep=TOKENS).logits[0].float()
    best = logits.max(-1).values
    of_tokens = logits[range(TOKENS), tokens]
    gaps = (best - of_tokens) / logits.abs().max(-1).values
    return replace(row, equal=int((gaps == 0).sum()), greatest_gap=float(gaps.max()))


def _timed(row: GgufGeneration, path: Path, threads: int, rounds: int) -> GgufGeneration:
    """Returns the row with tokens a second on so many threads, and with the ratios of rounds."""
    generate = _generator(_model(row, path), threads)
    calls: dict[str, Call] = {TUNER: lambda: generate(TOKENS)}
    stopped = {}
    try:
        if not row.window:
            calls[LLAMA] = _llama(path, threads)
    except (ImportError, ValueError) as error:
        stopped[LLAMA] = str(error)
    for call in calls.values():
        call()
    seconds = seconds_of(calls, rounds)
    speeds = {}
    ratios = {}
    for index, (name, count) in enumerate({"prompt": PROMPT, "decode": 1}.items()):
        for way, pairs in seconds.items():
            taken = median(pair[index] for pair in pairs)
            speeds[f"{way} {name} {threads}"] = round(count / taken, 2)
        if LLAMA in seconds:
            ratios[f"{name} {threads}"] = ratio_of(
                [pair[index] for pair in seconds[LLAMA]], [pair[index] for pair in seconds[TUNER]]
            )
    return replace(
        row,
        tokens_per_s={**row.tokens_per_s, **speeds},
        over_llama={**row.over_llama, **ratios},
        stopped={**row.stopped, **stopped},
    )


def ratio_of(theirs_s: list[float], ours_s: list[float]) -> Ratio:
    """Returns the median, the least and the greatest of the ratios of rounds."""
    ratios = sorted(their_s / our_s for their_s, our_s in zip(theirs_s, ours_s, strict=True))
    return round(median(ratios), 3), round(ratios[0], 3), round(ratios[-1], 3)


def _llama(path: Path, threads: int) -> Call:
    """Returns the same by llama.cpp; raises ImportError without it, ValueError where it refuses the file."""
    library: Any = importlib.import_module("llama_cpp")
    model = library.Llama(
        str(path), n_threads=threads, n_threads_batch=threads, n_ctx=256, n_batch=PROMPT, verbose=False
    )
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


def seconds_of(calls: dict[str, Call], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Returns of each way the seconds of the prompt, and the median of those of a token, in each round."""
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in calls}
    for _ in range(rounds):
        for way, call in calls.items():
            _, times = call()
            first, *steps = map(sub, times[1:], times)
            seconds[way].append((first, median(steps)))
    return seconds


def _exported(row: GgufGeneration, path: Path, tokens: list[int]) -> GgufGeneration:
    """Exports a model, and returns the row with how many tokens of numpy alone and of C are ``tokens``."""
    folder = path.with_suffix("")
    began_s = time.perf_counter()
    export = runpy.run_path(str(EXAMPLE))["export"]
    export(_model(row, path), PROMPT, PROMPT + TOKENS, folder)
    seconds = time.perf_counter() - began_s
    prompt = _prompt()[0].tolist()
    size = sum(file.stat().st_size for file in folder.glob("*/*"))
    by_numpy = tokens_by_numpy(folder, prompt, TOKENS)
    in_c = tokens_in_c(folder, prompt, TOKENS)
    return replace(
        row,
        export_s=round(seconds, 2),
        export_mb=round(size / MIB, 1),
        equal_by_numpy=sum(map(int.__eq__, by_numpy, tokens)),
        equal_in_c=sum(map(int.__eq__, in_c, tokens)),
    )


def main(arguments: list[str] | None = None) -> int:
    """Runs the stages of each model and type, prints a line for each, and writes them as JSON."""
    options = _options(arguments)
    limit_libraries()  # the children, which load them, inherit it
    rows = []
    for start in starts(options):
        with tempfile.TemporaryDirectory() as folder, new_caches():
            row = with_stages(start, Path(folder) / "model.gguf", options)
        rows.append(row)
        print(row.text, file=sys.stderr, flush=True)
    settings = {"prompt": PROMPT, "tokens": TOKENS, "rounds": options.rounds, "memory_gb": options.memory}
    emit(report("gguf_generation", settings, list(map(asdict, rows)), {}), options.json, options.output)
    return int(not all(row.is_right for row in rows))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.zoo.gguf_generation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", nargs="*", choices=tuple(MODELS), default=["llama_1b"])
    parser.add_argument("--kind", nargs="*", default=KINDS, help="types of the matrices")
    parser.add_argument("--head-kind", default="", help="type of the embeddings and the head, if another")
    parser.add_argument("--activations", default=ROUNDED, choices=("", ROUNDED), help="of integers")
    parser.add_argument("--window", type=int, default=0, help="tokens that layers attend to; 0: all")
    parser.add_argument("--stage", nargs="*", choices=STAGES, default=STAGES)
    parser.add_argument("--threads", nargs="*", type=int, default=THREADS, help="of the times")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of a stage")
    parser.add_argument("--memory", type=float, default=LIMIT_GB, help="GiB of all processes of a stage")
    add_report_options(parser)
    return parser.parse_args(arguments)


def starts(options: argparse.Namespace) -> Iterator[GgufGeneration]:
    """Yields a row for each model and type; floats are multiplied as they are."""
    for model in options.model:
        for kind in options.kind:
            activations = "" if kind == BF16 else options.activations
            yield GgufGeneration(model, kind, options.head_kind or kind, activations, options.window)


def with_stages(row: GgufGeneration, path: Path, options: argparse.Namespace) -> GgufGeneration:
    """Writes the file of a row and runs its stages; returns the row with what they found."""
    limits = {"limit_s": options.limit, "limit_bytes": int(options.memory * 2**30)}
    in_child(write_random, path, MODELS[row.model], row.kind, row.head_kind, **limits)
    for stage in options.stage:
        found = in_child(stage_of, row, stage, path, tuple(options.threads), options.rounds, **limits)
        if isinstance(found, Stopped):
            row = replace(row, stopped={**row.stopped, stage: found.reason})
            if stage == COLD:
                break
        else:
            row = found
    return row


if __name__ == "__main__":
    sys.exit(main())
