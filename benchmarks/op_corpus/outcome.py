"""What becomes of a sample: right, refused in one line, or what must not be."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import tuner.torch
from benchmarks.op_corpus.comparison import difference
from benchmarks.op_corpus.samples import OpSample, OpSampleName, OpSamples, drawn
from tuner.core.errors import TIMED_OUT, TunerError

RIGHT, REFUSED, WRONG, CRASH, HANG, TRACEBACK = "right", "refused", "wrong", "crash", "hang", "traceback"
BAD = (WRONG, CRASH, HANG, TRACEBACK)
# In what a defect leaves, or a compiler prints, which says nothing to its user
OF_COMPILERS = ("defect", "Traceback", "TORCH_LOGS", "the JIT cannot resolve", "creating the ExecutionEngine")
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
        first, again = called(sample, sample.inputs), called(sample, sample.inputs)
    except Exception as error:  # noqa: BLE001 - torch raises any
        return OpOutcome(NO_SAMPLE, f"eager: {type(error).__name__}")
    is_random = op not in UNINITIALISED and bool(difference(again.results, first.results))

    def first_difference() -> str:
        program = tuner.torch.compile(sample, tuple(each.clone() for each in sample.inputs))
        if is_random:
            return "the operator is random, the program is not"
        flipped = tuple(each.flip(tuple(range(each.dim()))) for each in sample.inputs)
        has_numbers = op not in UNINITIALISED
        lines = (
            _difference(program, sample, inputs, has_numbers=has_numbers)
            for inputs in (sample.inputs, flipped)
        )
        return next(filter(None, lines), "")

    return of_compared(first_difference)


def of_compared(first_difference: Callable[[], str]) -> OpOutcome:
    """Returns what becomes of a program that a function compiles, calls and compares with eager.

    The function returns in one line how a result differs, "" where none does. A refusal that reports a crash,
    a limit of time or a defect is not one.
    """
    try:
        line = first_difference()
    except TunerError as error:
        return OpOutcome(refusal_kind(str(error)), str(error))
    except Exception as error:  # noqa: BLE001 - what must not be
        return OpOutcome(TRACEBACK, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return OpOutcome(WRONG, line) if line else OpOutcome(RIGHT)


def refusal_kind(text: str) -> str:
    """Returns what a message is: a refusal in one clear line, or what a child's crash or a defect left."""
    if "\n" in text or any(part in text for part in OF_COMPILERS):
        return TRACEBACK
    if "killed by" in text:
        return CRASH
    return HANG if TIMED_OUT in text else REFUSED


@dataclass(frozen=True, eq=False)
class Called:
    """Results of a call, and the inputs after it."""

    results: Any
    inputs: tuple[torch.Tensor, ...]


def called(function: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> Called:
    """Returns what a function makes of copies of inputs."""
    held = tuple(each.clone() for each in inputs)
    return Called(function(*held), held)


def _difference(
    program: Callable[..., Any],
    sample: Callable[..., Any],
    inputs: tuple[torch.Tensor, ...],
    *,
    has_numbers: bool,
) -> str:
    """Returns how a program differs from eager for some inputs; "" where eager refuses them."""
    try:
        wanted = called(sample, inputs)
    except Exception:  # noqa: BLE001 - as above
        return ""
    found = called(program, inputs)
    if not has_numbers:
        return difference(*(_shapes(each.results) for each in (found, wanted)))
    return call_difference(found, wanted, truth(sample, inputs))


def call_difference(found: Called, wanted: Called, exact: Any = None) -> str:
    """Returns how a call of a program differs from eager's: in what it left in its inputs, or in its results.

    ``exact``: the results computed in f64, or None.
    """
    line = difference(found.inputs, wanted.inputs)
    if line:
        return f"changed inputs: {line}"
    return difference(found.results, wanted.results, exact)


def truth(sample: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> Any:
    """Returns the results of a function of floats computed in f64; None where that is not possible."""
    if not any(each.is_floating_point() for each in inputs):
        return None
    try:
        return sample(*(each.double() if each.is_floating_point() else each.clone() for each in inputs))
    except Exception:  # noqa: BLE001 - as above
        return None


def _shapes(results: Any) -> Any:
    return torch.utils._pytree.tree_map(lambda each: each.new_zeros(each.shape), results)  # noqa: SLF001
