"""What becomes of a drawn module with each of its inputs and surroundings."""

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import torch

import tuner.torch
from benchmarks.op_corpus.comparison import difference
from benchmarks.op_corpus.drawn_modules import INPUTS, SURROUNDINGS, DrawnCase, case
from benchmarks.op_corpus.outcome import OpOutcome, of_compared, refusal_kind
from tuner.core.errors import TunerError

SHARED = "shared storage"  # both inputs lie in the same memory
VARIANTS = 10  # of a module, drawn
Inputs = tuple[torch.Tensor, torch.Tensor]


def checked_module(number: int, seed: int = 0) -> dict[str, OpOutcome]:
    """Compiles a drawn module once; returns what becomes of each drawn input and surrounding, by its name.

    A module that is refused has one outcome, "compiled".
    """
    torch.set_num_threads(1)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        drawn = case(number, seed)
        try:
            program = tuner.torch.compile(drawn.module, drawn.inputs)
        except TunerError as error:
            return {"compiled": OpOutcome(refusal_kind(str(error)), str(error))}
        names = [*INPUTS, *SURROUNDINGS, SHARED]
        chosen = random.Random(f"{seed} {number} inputs").sample(names, VARIANTS)
        return {name: _outcome(drawn, program, name) for name in chosen}


def _outcome(drawn: DrawnCase, program: Callable[..., Any], name: str) -> OpOutcome:
    x, y = drawn.inputs
    inputs = (INPUTS[name](x), INPUTS[name](y)) if name in INPUTS else (x, y)
    if name == SHARED:
        inputs = _shared(x, y)
    surrounded = SURROUNDINGS.get(name, SURROUNDINGS["as it is"])
    wanted = surrounded(lambda: drawn.module(*inputs))
    truth = copy.deepcopy(drawn.module).double()(*(each.double() for each in inputs))
    return of_compared(lambda: difference(surrounded(lambda: program(*inputs)), wanted, truth))


def _shared(x: torch.Tensor, y: torch.Tensor) -> Inputs:
    """Returns inputs that overlap in one storage."""
    storage = torch.randn(max(x.numel(), y.numel()), dtype=x.dtype)
    return storage[: x.numel()].reshape(x.shape), storage[: y.numel()].reshape(y.shape)
