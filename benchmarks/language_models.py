"""Which language models tuner takes as they are written, right against eager; why others are refused.

    python -m benchmarks.language_models --output benchmarks/results/language_models.json

Needs transformers (``pip install transformers``). Each model is compiled in a process of its own. A result is
right where its error against eager in float64 is at most 8 times that of eager in float32, or a millionth of
the largest number. With ``--kept FILE``, outcomes are kept, and a run goes on where another was stopped. The
exit status is 1 where a result is wrong, or a compilation crashes, hangs or ends in an exception that is not
one of tuner's.
"""

import argparse
import copy
import importlib
import importlib.util
import json
import multiprocessing
import sys
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

import tuner.torch
from benchmarks.model_zoo.language_models import LANGUAGE_MODELS, LanguageModel, build
from benchmarks.results_file import add_report_options, emit, report
from tuner.core.errors import TunerError

RIGHT, REFUSED, WRONG, TRACEBACK = "right", "refused", "wrong", "traceback"
CRASH, HANG, UNBUILT = "crash", "hang", "eager mode fails"
BAD = (WRONG, TRACEBACK, CRASH, HANG)
LIMIT_S = 300.0  # of one model
EAGER_ERRORS = 8.0  # times the error of eager in float32
LEAST_ERROR = 1e-6  # of the largest number


@dataclass(frozen=True)
class LanguageOutcome:
    """What became of one model: one of the words above, why in one line, and why it has no fusions."""

    model: str
    kind: str
    reason: str = ""
    why_no_fusions: str = ""


def outcome_of(model: LanguageModel) -> LanguageOutcome:
    """Compiles a model, and compares its results with those of eager mode."""
    warnings.simplefilter("ignore")  # of torch and transformers, about their own code
    torch.set_num_threads(1)
    try:
        module, inputs = build(model)
        wide = {name: each.double() if each.is_floating_point() else each for name, each in inputs.items()}
        with torch.no_grad():
            eager = _tensors(module(**inputs))
            exact = _tensors(_in_float64(module)(**wide))
    except Exception as error:  # noqa: BLE001 - of transformers, any
        return LanguageOutcome(model.name, UNBUILT, f"{type(error).__name__} {error}")
    try:
        program = tuner.torch.compile(module, (), inputs)
        results = _tensors(program(**inputs))
    except TunerError as error:
        reason = " ".join(str(error).split()).replace(f"{_folder_of_packages()}/", "")
        return LanguageOutcome(model.name, REFUSED, reason)
    except Exception as error:  # noqa: BLE001 - what must not be
        return LanguageOutcome(model.name, TRACEBACK, f"{type(error).__name__} {error}")
    line = _difference(results, eager, exact)
    return LanguageOutcome(model.name, WRONG if line else RIGHT, line, program.why_no_fusions)


def _folder_of_packages() -> Path:
    return Path(str(importlib.import_module("transformers").__file__)).parents[1]


def _tensors(results: Any) -> list[torch.Tensor]:
    leaves = _pytree.tree_leaves(dict(results))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _in_float64(module: nn.Module) -> nn.Module:
    return copy.deepcopy(module).double()


def _difference(results: list[torch.Tensor], eager: list[torch.Tensor], exact: list[torch.Tensor]) -> str:
    """Returns how far a result is from eager's in float64; "" where all are right."""
    if [each.shape for each in results] != [each.shape for each in eager]:
        return "results of other shapes than eager's"
    for number, (found, usual, wanted) in enumerate(zip(results, eager, exact, strict=True)):
        largest = float(wanted.abs().max())
        error = float((found.double() - wanted).abs().max())
        allowed = max(EAGER_ERRORS * float((usual.double() - wanted).abs().max()), LEAST_ERROR * largest)
        if not error <= allowed:
            return f"result {number}: off by {error:.2e}, allowed {allowed:.2e}"
    return ""


def _send(model: LanguageModel, end: Connection) -> None:
    end.send(outcome_of(model))


def in_a_process(model: LanguageModel) -> LanguageOutcome:
    """Returns the outcome of a model in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "transformers", "tuner.torch"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(model, sender))
    process.start()
    sender.close()
    try:
        if receiver.poll(LIMIT_S):
            outcome: LanguageOutcome = receiver.recv()
            return outcome
        return LanguageOutcome(model.name, HANG, f"not done after {LIMIT_S:.0f} s")
    except EOFError:
        process.join()
        return LanguageOutcome(model.name, CRASH, f"exit status {process.exitcode}")
    finally:
        process.kill()
        process.join()


def main() -> None:
    """Checks each model; exits with 1 where one is neither right nor refused."""
    options = _arguments()
    if importlib.util.find_spec("transformers") is None:
        sys.exit("error: transformers is not installed\nhint: pip install transformers")
    models = [each for each in LANGUAGE_MODELS if not options.models or each.name in options.models]
    known = _kept(options.kept)
    outcomes = []
    for model in models:
        outcome = known.get(model.name) or in_a_process(model)
        if options.kept is not None and model.name not in known:
            with options.kept.open("a") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")
        print(outcome.model, outcome.kind, outcome.reason, file=sys.stderr, flush=True)
        outcomes.append(outcome)
    counts = dict(Counter(each.kind for each in outcomes))
    bad = [asdict(each) for each in outcomes if each.kind in BAD]
    versions = {name: importlib.import_module(name).__version__ for name in ("torch", "transformers")}
    rows = [asdict(each) for each in outcomes]
    document = report("language_models", versions, rows, {"by_outcome": counts, "bad": bad})
    emit(document, options.json, options.output)
    print(counts, file=sys.stderr)
    sys.exit(int(bool(bad)))


def _kept(file: Path | None) -> dict[str, LanguageOutcome]:
    if file is None or not file.exists():
        return {}
    outcomes = [LanguageOutcome(**json.loads(line)) for line in file.read_text().splitlines()]
    return {each.model: each for each in outcomes}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="*", help="names of transformers; all: without it")
    parser.add_argument("--kept", type=Path, help="file of outcomes that a run goes on from")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
