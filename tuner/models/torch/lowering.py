"""Lowers a module from torch-mlir's dialect of PyTorch to linalg, in a child process or in this one.

A crash of the child is a refusal. It gets no weights: a constant is named in the text, and its bytes, which
follow the text (MLIR's ``dialect_resources``), stay here. Nor does it import PyTorch, which takes seconds.
"""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from tuner.core.errors import CandidateError, UsageError
from tuner.models.compile import call_in_kept_child
from tuner.models.mlir.torch_dialect import MOST_ROUNDS, lower, refused_operators
from tuner.models.torch.refusals import RefusedOperator, require_none

RESOURCES = "\n{-#"  # begins the bytes of constants, after the module


def lower_in_child(text: str) -> str:
    """Lowers a module from torch-mlir's dialect to linalg, in a child process; returns its text.

    Raises UsageError that names the operators which torch-mlir refuses, or if torch-mlir crashes.
    """
    return _lowered(text, lower, call_in_kept_child)


def lower_with_locations(text: str) -> str:
    """Lowers a module to linalg in a child process; operations keep their graph nodes' names as locations.

    Raises UsageError that names the operators which torch-mlir refuses, or if torch-mlir crashes.
    """
    return _lowered(text, partial(lower, has_locations=True), call_in_kept_child)


def lower_in_process(text: str) -> str:
    """Lowers a module from torch-mlir's dialect to linalg in this process, which a crash would end.

    Raises UsageError that names the operators which torch-mlir refuses.
    """
    return _lowered(text, lower, _call)


def _call(work: Callable[[], Any]) -> Any:
    return work()


def _lowered(text: str, lower_module: Callable[[str], str], call: Callable[[Callable[[], Any]], Any]) -> str:
    """Lowers a module by ``call``, here or in a child; a refusal names all operators that are refused."""
    module, mark, resources = text.partition(RESOURCES)
    try:
        return str(call(partial(lower_module, module))) + mark + resources
    except CandidateError as error:
        require_none(_refused_operators(module, call))
        raise UsageError(f"torch-mlir refuses the module: {error.reason}") from error


def require_none_of(refused: tuple[RefusedOperator, ...], text: Callable[[], str]) -> None:
    """Raises UsageError if ``refused`` is not empty; it also names the operators that torch-mlir refuses.

    ``text`` returns the module in torch-mlir's dialect; it is called only if there is something to refuse.
    """
    if not refused:
        return
    with contextlib.suppress(UsageError):  # the import may fail because of a refused operator
        module = text().partition(RESOURCES)[0]
        known = tuple(operator.place for operator in refused)
        refused = (*refused, *_refused_operators(module, call_in_kept_child, known))
    require_none(refused)


def _refused_operators(
    module: str, call: Callable[[Callable[[], Any]], Any], known: tuple[str, ...] = ()
) -> tuple[RefusedOperator, ...]:
    for rounds in (MOST_ROUNDS, 1):  # torch-mlir may crash for what is left without the first operators
        try:
            found = call(partial(refused_operators, module, known, rounds))
        except CandidateError:
            continue
        return tuple(RefusedOperator(*refused) for refused in found)
    return ()
