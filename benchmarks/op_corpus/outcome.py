"""What becomes of a sample: right, refused in one line, or what must not be."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import tuner.torch
from benchmarks.op_corpus.comparison import difference
from benchmarks.op_corpus.samples import OpSample, OpSampleName, OpSamples, drawn
from tuner.core.errors import TunerError

RIGHT, REFUSED, WRONG, CRASH, HANG, TRACEBACK = "right", "refused", "wrong", "crash", "hang", "traceback"
BAD = (WRONG, CRASH, HANG, TRACEBACK)
NO_SAMPLE = "no sample"  # there are fewer, or eager refuses it
UNINITIALISED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "empty_permuted")


@dataclass(frozen=True)
class OpOutcome:
    """One of the words above, and why in one line; "" of a right sample."""

    kind: str
    reason: str = ""


def checked(names: tuple[OpSampleName, ...]) -> tuple[OpOutcome, ...]:
    """Compiles samples of one operator, and calls them with their own inputs and with others alike.

    Several samples are one module, whose outcome is that of each which there is.
    """
    torch.set_num_threads(1)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        samples = [drawn(name) for name in names]
        there = [each for each in samples if each is not None]
        if not there:
            return (OpOutcome(NO_SAMPLE),) * len(names)
        found = outcome_of(there[0] if len(there) == 1 else OpSamples(there), names[0].op)
        return tuple(OpOutcome(NO_SAMPLE) if each is None else found for each in samples)


def outcome_of(sample: OpSample | OpSamples, op: str = "") -> OpOutcome:
    """Returns what becomes of a sample of an operator, or of several."""
    try:
        first, again = _called(sample, sample.inputs), _called(sample, sample.inputs)
    except Exception as error:  # noqa: BLE001 - torch raises any
        return OpOutcome(NO_SAMPLE, f"eager: {type(error).__name__}")
    is_random = op not in UNINITIALISED and bool(difference(again.results, first.results))
    try:
        program = tuner.torch.compile(sample, tuple(each.clone() for each in sample.inputs))
        if is_random:
            return OpOutcome(WRONG, "the operator is random, the program is not")
        for inputs in (sample.inputs, tuple(each.flip(tuple(range(each.dim()))) for each in sample.inputs)):
            line = _difference(program, sample, inputs, has_numbers=op not in UNINITIALISED)
            if line:
                return OpOutcome(WRONG, line)
    except TunerError as error:
        return OpOutcome(TRACEBACK if "\n" in str(error) else REFUSED, str(error))
    except Exception as error:  # noqa: BLE001 - what must not be
        return OpOutcome(TRACEBACK, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return OpOutcome(RIGHT)


@dataclass(frozen=True, eq=False)
class _Called:
    """Results of a call, and the inputs after it."""

    results: Any
    inputs: tuple[torch.Tensor, ...]


def _called(function: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> _Called:
    held = tuple(each.clone() for each in inputs)
    return _Called(function(*held), held)


def _difference(
    program: Callable[..., Any],
    sample: Callable[..., Any],
    inputs: tuple[torch.Tensor, ...],
    *,
    has_numbers: bool,
) -> str:
    """Returns how a program differs from eager for some inputs; "" where eager refuses them."""
    try:
        wanted = _called(sample, inputs)
    except Exception:  # noqa: BLE001 - as above
        return ""
    found = _called(program, inputs)
    if not has_numbers:
        return difference(*(_shapes(each.results) for each in (found, wanted)))
    line = difference(found.inputs, wanted.inputs)
    return (
        f"changed inputs: {line}"
        if line
        else difference(found.results, wanted.results, _truth(sample, inputs))
    )


def _truth(sample: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> Any:
    """Returns the results of floats computed in f64; None where that is not possible."""
    if not any(each.is_floating_point() for each in inputs):
        return None
    try:
        return sample(*(each.double() if each.is_floating_point() else each.clone() for each in inputs))
    except Exception:  # noqa: BLE001 - as above
        return None


def _shapes(results: Any) -> Any:
    return torch.utils._pytree.tree_map(lambda each: each.new_zeros(each.shape), results)  # noqa: SLF001
