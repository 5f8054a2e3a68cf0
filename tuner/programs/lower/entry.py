"""The functions of a user's module: finds the entry function, and makes the others private."""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.symbols import name_of

MAIN = "main"  # the function that mlir-runner runs


def entry_of(module: ir.Module, entry: str | None) -> str:
    """Returns the name of the function to run: ``entry``, else a public ``main``, else the only public one.

    Raises CandidateError(BIND) if no function ``entry`` has a body, and if ``entry`` is None and the choice
    is not clear.
    """
    public = [name_of(function) for function in defined_functions(module) if _is_public(function)]
    if entry is not None:
        if entry not in [name_of(function) for function in defined_functions(module)]:
            found = ", ".join(public) or "none"
            raise CandidateError(Stage.BIND, f"payload: entry: found {entry!r}, allowed {found}")
        return entry
    if MAIN in public:
        return MAIN
    if len(public) != 1:
        found = ", ".join(public) or "none"
        allowed = f"one, or one that is named as the entry or {MAIN}"
        raise CandidateError(Stage.BIND, f"payload: public functions: found {found}, allowed {allowed}")
    return public[0]


def defined_functions(module: ir.Module) -> list[Op]:
    """Returns the ``func.func`` operations of a module that have a body, in order."""
    found = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    return [function for function in found if len(function.regions[0].blocks) > 0]


def function_named(module: ir.Module, name: str) -> Op:
    """Returns the ``func.func`` of this name, which must exist and have a body."""
    return next(function for function in defined_functions(module) if name_of(function) == name)


def hide_others(module: ir.Module, entry: str) -> None:
    """Makes ``entry`` public and every other function with a body private, in place.

    Inlining then removes the private functions.
    """
    for function in defined_functions(module):
        if name_of(function) != entry:
            function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        elif "sym_visibility" in function.attributes:
            del function.attributes["sym_visibility"]


def _is_public(function: Op) -> bool:
    visibility = function.attributes.get("sym_visibility")
    return visibility is None or ir.StringAttr(visibility).value == "public"
