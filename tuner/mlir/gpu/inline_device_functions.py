"""Inlines the functions that kernels of a ``gpu.module`` call; upstream's inliner handles host code only.

Takes a module before any pass looks at calls; gives kernels without ``func.call``, and drops the functions.
Rejected, with the location of the call: recursion, functions without a body, callees of several blocks.

    gpu.module @m {
      func.func @twice(%a: f32) -> f32 {
      gpu.func @k(%x: f32, %p: memref<f32>) kernel {
        %y = func.call @twice(%x) : (f32) -> f32
  becomes
    gpu.module @m {
      gpu.func @k(%x: f32, %p: memref<f32>) kernel {
        %y = arith.addf %x, %x : f32
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.inlining import inline_call
from tuner.mlir.rewrite.located_error import unsupported
from tuner.mlir.rewrite.symbols import callee_of, name_of
from tuner.mlir.rewrite.walking import walk

FUNCTION, CALL, KERNEL = "func.func", "func.call", "gpu.func"
ALLOWED = "a function of its gpu.module with one block, which does not call itself"


def inline_device_functions(module: ir.Module) -> None:
    """Inlines the functions that kernels of a ``gpu.module`` call, and erases all of its functions, in place.

    Raises CandidateError(COMPILE) for a call of a function that is recursive, has no body or has several
    blocks.
    """
    for holder in walk(module, "gpu.module"):
        functions = {name_of(op): op for op in walk(holder, FUNCTION)}
        for caller in walk(holder, KERNEL):
            while calls := walk(caller, CALL):
                for call in calls:
                    _inline(call, functions)
        for function in functions.values():
            function.erase()


def _inline(call: Op, functions: dict[str, Op]) -> None:
    name = callee_of(call)
    callee = functions.get(name)
    if callee is None or len(callee.regions[0].blocks) != 1 or _reaches(callee, name, functions):
        raise unsupported(call, f"a call of @{name}", ALLOWED)
    inline_call(call, callee)


def _reaches(function: Op, name: str, functions: dict[str, Op]) -> bool:
    """Returns whether ``function`` calls the function ``name``, directly or through other functions."""
    open_names, seen = [name_of(function)], set[str]()
    while open_names:
        caller = functions.get(open_names.pop())
        for call in walk(caller, CALL) if caller is not None else []:
            callee = callee_of(call)
            if callee == name:
                return True
            if callee not in seen:
                seen.add(callee)
                open_names.append(callee)
    return False
