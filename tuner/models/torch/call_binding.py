"""Binds the arguments of a call to the leaves of the example inputs, by the parameters of ``forward``.

module(x, mask=m)           # the example
program(mask=m, x=x)        # each of these calls has the same two tensors
program(x, m, scale=1.0)    # 1.0 is the default of ``scale``
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree

from tuner.core.errors import UsageError

Parameter = inspect.Parameter
OTHER_STRUCTURE = "arguments: found another structure than that of the example inputs"


def signature_of(module: torch.nn.Module | torch.export.ExportedProgram) -> inspect.Signature | None:
    """Returns the signature of a module's ``forward``, without annotations; None where it is not known.

    An exported program has the parameters of its example inputs only: those left at a default are missing.
    """
    if isinstance(module, torch.nn.Module):
        try:
            signature = inspect.signature(module.forward)
        except (TypeError, ValueError):  # of a function in C
            return None
        parameters = [
            parameter.replace(annotation=Parameter.empty) for parameter in signature.parameters.values()
        ]
        return inspect.Signature(parameters)
    call_signature = module.module_call_graph[0].signature
    if call_signature is None or not call_signature.forward_arg_names:
        return None
    positional = module.call_spec.in_spec.children()[0].num_children
    names = call_signature.forward_arg_names
    parameters = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD if at < positional else Parameter.KEYWORD_ONLY)
        for at, name in enumerate(names)
    ]
    return inspect.Signature(parameters)


def signature_of_tensors(count: int) -> inspect.Signature:
    """Returns a signature of ``count`` positional-only tensors, by which a loaded program is called."""
    return inspect.Signature([Parameter(f"tensor_{at}", Parameter.POSITIONAL_ONLY) for at in range(count)])


@dataclass(frozen=True, eq=False)
class CallBinding:
    """How the arguments of a call are matched with the leaves of the example's arguments."""

    in_spec: Any  # the tree of the example's (arguments, keyword arguments)
    signature: inspect.Signature | None

    def leaves_of(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[Any]:
        """Returns the leaves (tensors and constants) of a call's arguments, in the example's order.

        Raises UsageError for arguments that do not fit the signature, for other nested structures, and for a
        parameter missing in the example whose value is not its default.
        """
        leaves: list[Any]
        leaves, spec = _pytree.tree_flatten((arguments, dict(keywords)))
        if spec == self.in_spec:
            return leaves
        tree = (arguments, dict(keywords))
        if self.signature is not None:
            tree = self._as_example(self.signature, arguments, keywords)
        try:
            of_example: list[Any] = self.in_spec.flatten_up_to(tree)
        except ValueError as error:
            raise UsageError(OTHER_STRUCTURE) from error
        return of_example

    def _as_example(
        self, signature: inspect.Signature, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the call's values, each by position or by keyword as the example inputs were."""
        values = _bound(signature, arguments, keywords)
        by_position, by_keyword = self.in_spec.children()
        example = _bound(
            signature, tuple(range(by_position.num_children)), {k: k for k in by_keyword.context}
        )
        for name in values.keys() - example.keys():
            _require_default(signature, name, values[name])
        value_of: dict[Any, Any] = {}
        for name, key in example.items():
            value_of[key] = values[name] if name in values else _default(signature, name)
        positions = tuple(value_of[at] for at in range(by_position.num_children))
        return positions, {name: value_of[name] for name in by_keyword.context}


def _bound(
    signature: inspect.Signature, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the values of a call by parameter name; those of ``*rest`` are named "*rest[0]" and so on."""
    try:
        bound = signature.bind(*arguments, **keywords).arguments
    except TypeError as error:
        raise UsageError(f"arguments: {error}", f"the module takes {signature}") from error
    values: dict[str, Any] = {}
    for name, value in bound.items():
        kind = signature.parameters[name].kind
        if kind is Parameter.VAR_POSITIONAL:
            values |= {f"*{name}[{at}]": item for at, item in enumerate(value)}
        elif kind is Parameter.VAR_KEYWORD:
            values |= value
        else:
            values[name] = value
    return values


def _default(signature: inspect.Signature, name: str) -> Any:
    parameter = signature.parameters.get(name)
    if parameter is None or parameter.default is Parameter.empty:
        raise UsageError(f"arguments: {name} is missing, which the example inputs have")
    return parameter.default


def _require_default(signature: inspect.Signature, name: str, value: object) -> None:
    parameter = signature.parameters.get(name)
    if parameter is None or parameter.default is Parameter.empty:
        raise UsageError(
            f"arguments: {name} is not among the example inputs", "compile the module again with it"
        )
    require_constant(f"argument {name}", value, parameter.default)


def require_constant(name: str, value: object, constant: object) -> None:
    """Raises UsageError if ``value`` is not equal to the ``constant`` that a program was compiled for."""
    if type(value) is not type(constant) or repr(value) != repr(constant):
        raise UsageError(
            f"{name}: found {_brief(value)}, allowed {_brief(constant)}, which the program was compiled for",
            "compile the module again for another value, or pass a tensor",
        )


def _brief(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return "a tensor"
    if isinstance(value, str):
        return value
    return repr(value)
