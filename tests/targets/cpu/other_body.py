"""A transform op with which a script holds any body, and a compiler whose process knows the op."""

from tuner.core.errors import Refusal
from tuner.mlir import dialect
from tuner.mlir.bindings import Op, ir
from tuner.mlir.dialect import InPlaceOp
from tuner.targets.cpu.compiler import CpuCompiler

OPS = {"other_body": f"{__name__}:OtherBodyOp"}


class OtherBodyOp(InPlaceOp, name="other_body"):
    """Replaces the body of a function, and the functions and globals around it, by those of a text."""

    def change(self, function: Op) -> Refusal | None:
        text = ir.StringAttr(self.operation.attributes["text"]).value
        module = ir.Module.parse(text, function.context)
        (other,) = (op for op in module.body.operations if op.operation.name == "func.func")
        with ir.InsertionPoint(function), ir.Location.unknown(function.context):
            for op in module.body.operations:
                if op.operation != other.operation:
                    op.operation.clone()
        _move_body(other.operation, function)
        return None


def _move_body(source: Op, function: Op) -> None:
    old, new = function.regions[0].blocks[0], source.regions[0].blocks[0]
    *replaced, terminator = old.operations
    for argument, replacement in zip(new.arguments, old.arguments, strict=True):
        argument.replace_all_uses_with(replacement)
    for op in list(new.operations)[:-1]:
        op.operation.move_before(terminator.operation)
    for op in reversed(replaced):
        op.operation.erase()


def compiler() -> CpuCompiler:
    """Returns the compiler of a process that knows the op from then on."""
    if __name__ not in dialect.OP_PACKAGES:
        dialect.OP_PACKAGES = (*dialect.OP_PACKAGES, __name__)
    return CpuCompiler()
