"""From transformed payload to what the JIT takes."""

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir, passmanager
from tuner.mlir.cpu_pipeline import CPU_LLVM, NO_BUILTINS
from tuner.mlir.interpreter import first_complaint

EXPORTED = "llvm.emit_c_interface"  # of a function that the JIT is asked for


def lower_to_llvm(module: ir.Module) -> str:
    """Lowers in place and returns LLVM-dialect text for the JIT. Raises CandidateError(COMPILE)."""
    for op in module.body.operations:
        if op.operation.name == "func.func":
            op.attributes[EXPORTED] = ir.UnitAttr.get()
    try:
        passmanager.PassManager.parse(CPU_LLVM).run(module.operation)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        raise CandidateError(Stage.COMPILE, first_complaint(error)) from error
    return without_builtins(module)


def without_builtins(module: ir.Module) -> str:
    """Returns the text of LLVM dialect whose exported functions tell LLVM to keep loops loops."""
    marked = f"attributes {{{EXPORTED}}}"
    return str(module).replace(marked, f"attributes {{{EXPORTED}, {NO_BUILTINS}}}")
