"""What becomes of a small module: compiled once, called with plain, special and other-sized arguments."""

import warnings
from collections.abc import Callable
from typing import Any

import torch

import tuner.torch
from benchmarks.op_corpus.outcome import NO_SAMPLE, OpOutcome, call_difference, called, of_compared, truth
from benchmarks.op_corpus.small_modules.arguments import PLAIN
from benchmarks.op_corpus.small_modules.families import BACKEND, FALLBACK, DrawnSmallModule, drawn
from benchmarks.op_corpus.small_modules.module_text import SmallModule

SIZE_LIMIT = 64  # of a dynamic dimension
Tensors = tuple[torch.Tensor, ...]


def checked_small_module(number: int, seed: int = 0) -> OpOutcome:
    """Returns what becomes of the small module of a number."""
    torch.set_num_threads(1)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        return outcome_of_small(drawn(number, seed))


def outcome_of_small(drawn_module: DrawnSmallModule) -> OpOutcome:
    """Returns what becomes of a small module: the first call that is wrong says how."""
    small = drawn_module.module
    module = small.module()
    calls = argument_tuples(small)
    error = eager_error(module, calls["plain"])

    def first_difference() -> str:
        program = _compiled(module, small, calls["plain"], drawn_module.way)
        if error:
            program(*calls["plain"])
            return f"found results, eager raises {error}"
        lines = (
            f"{name}: {line}"
            for name, tensors in calls.items()
            if (line := _difference(program, module, small, tensors))
        )
        return next(lines, "")

    outcome = of_compared(first_difference)
    return OpOutcome(NO_SAMPLE, f"eager: {error}") if error and outcome.kind == "refused" else outcome


def argument_tuples(small: SmallModule) -> dict[str, Tensors]:
    """Returns the arguments of each call by what they are: "plain", "size 1", "nan" and so on."""
    tuples = {"plain": _tensors(small, 0, PLAIN), "others": _tensors(small, 100, PLAIN)}
    tuples |= {special: _tensors(small, 200, special) for special in small.specials if special != PLAIN}
    tuples |= {f"size {size}": _tensors(small, 300, PLAIN, size) for size in small.sizes}
    return tuples


def _tensors(small: SmallModule, seed: int, special: str, size: int = 0) -> Tensors:
    arguments = [argument.of_size(size) if size else argument for argument in small.arguments]
    return tuple(argument.tensor(seed + at, special) for at, argument in enumerate(arguments))


def _compiled(module: torch.nn.Module, small: SmallModule, tensors: Tensors, way: str) -> Callable[..., Any]:
    example = tuple(tensor.clone() for tensor in tensors)
    if way == BACKEND:
        torch._dynamo.reset()  # noqa: SLF001 - no public name
        program: Callable[..., Any] = torch.compile(module, backend="tuner", dynamic=bool(small.sizes))
        return program
    dynamic_shapes = None
    if small.sizes:
        dimension = torch.export.Dim("n", min=1, max=SIZE_LIMIT)
        dynamic_shapes = ({0: dimension},) * len(example)
    fallback = "eager" if way == FALLBACK else "none"
    return tuner.torch.compile(module, example, dynamic_shapes=dynamic_shapes, fallback=fallback)


def eager_error(module: Callable[..., Any], tensors: Tensors) -> str:
    """Returns the name of the exception that eager raises, "" where it raises none."""
    try:
        called(module, tensors)
    except Exception as error:  # noqa: BLE001 - torch raises any
        return type(error).__name__
    return ""


def _difference(
    program: Callable[..., Any], module: Callable[..., Any], small: SmallModule, tensors: Tensors
) -> str:
    """Returns how a call differs from eager; "" where eager refuses its arguments."""
    if eager_error(module, tensors):
        return ""
    wanted = called(module, tensors)
    found = called(program, tensors)
    line = call_difference(found, wanted)
    if line and small.has_truth:
        line = call_difference(found, wanted, truth(module, tensors))
    return line
