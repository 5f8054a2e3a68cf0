"""Functions that kernels call, inlined into the kernels: upstream's inliner handles host code only."""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import callee_of, inline_call, name_of, unsupported, walk

FUNCTION = "func.func"
CALL = "func.call"
KERNEL = "gpu.func"
ALLOWED = "a function of its gpu.module with one block, which does not call itself"


def inline_device_functions(module: ir.Module) -> None:
    """Inlines the functions that kernels of a ``gpu.module`` call, and erases its functions, in place.

    Raises CandidateError(COMPILE) for a call of a function that is recursive, has no body, has several blocks
    or is not in the same ``gpu.module``.

        gpu.module @m {
          func.func @twice(%a: f32) -> f32 {
          gpu.func @k(%x: f32, %p: memref<f32>) kernel {
            %y = func.call @twice(%x) : (f32) -> f32
      becomes
        gpu.module @m {
          gpu.func @k(%x: f32, %p: memref<f32>) kernel {
            %y = arith.addf %x, %x : f32
    """
    for holder in walk(module, "gpu.module"):
        functions = {name_of(op): op for op in walk(holder, FUNCTION)}
        for caller in walk(holder, KERNEL):
            while calls := walk(caller, CALL):
                for call in calls:
                    name = callee_of(call)
                    callee = functions.get(name)
                    if (
                        callee is None
                        or len(callee.regions[0].blocks) != 1
                        or _reaches(callee, name, functions)
                    ):
                        raise unsupported(call, f"a call of @{name}", ALLOWED)
                    inline_call(call, callee)
        for function in functions.values():
            function.erase()


def _reaches(function: Op, name: str, functions: dict[str, Op]) -> bool:
    open_names = [name_of(function)]
    seen = set[str]()
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
