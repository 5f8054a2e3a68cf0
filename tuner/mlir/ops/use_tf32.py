"""``tuner.use_tf32``: f32 operands of tensor cores become tf32."""

from typing import Any

from tuner.mlir.bindings import ext, ir, transform
from tuner.mlir.building import create, value, zero
from tuner.mlir.ops.dialect import InPlaceEffects, TunerDialect, attribute, refuse, walk


class UseTf32Op(TunerDialect.Operation, name="use_tf32"):  # type: ignore[misc,call-arg,name-defined]
    """Sets ``tf32Enabled`` on every ``nvgpu.mma.sync`` of f32 operands.

    A tensor core ignores the low 13 bits of the mantissa, a rounding towards zero whose errors add up. With
    ``round = 1`` (i64, 0 unless given) the elements are rounded to nearest first, one instruction each. The
    handle (a func.func) stays valid. Silenceable failure: no such ``nvgpu.mma.sync``.
    """

    target: ext.Operand[transform.AnyOpType]

    class Transform(transform.TransformOpInterface):  # type: ignore[misc]
        """Runs on every function of the handle."""

        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            """Changes the payload in place."""
            for function in state.get_payload_ops(op.target):
                products = [each for each in walk(function, "nvgpu.mma.sync") if _is_f32(each.operands[0])]
                if not products:
                    return refuse(op, "found no nvgpu.mma.sync of f32 operands")
                for product in products:
                    product.attributes["tf32Enabled"] = ir.UnitAttr.get()
                if attribute(op, "round", 0) == 1:
                    _round_operands(products)
            return transform.DiagnosedSilenceableFailure.Success

        @staticmethod
        def allow_repeated_handle_operands(op: Any) -> bool:
            """Tells that one handle is enough."""
            return False


def attach() -> None:
    """Gives the op its behaviour in the current context."""
    UseTf32Op.Transform.attach(UseTf32Op.OPERATION_NAME)
    InPlaceEffects.attach(UseTf32Op.OPERATION_NAME)


def _is_f32(fragment: Any) -> bool:
    return isinstance(ir.VectorType(fragment.type).element_type, ir.F32Type)


def _round_operands(products: list[Any]) -> None:
    """Rounds each fragment once, where it is made."""
    rounded: dict[Any, Any] = {}
    for product in products:
        for number in (0, 1):
            fragment = product.operands[number]
            if fragment not in rounded:
                rounded[fragment] = _rounded(fragment)
            product.operands[number] = rounded[fragment]


def _rounded(fragment: Any) -> Any:
    kind = ir.VectorType(fragment.type)
    rows, columns = kind.shape
    at = ir.InsertionPoint.at_block_begin(fragment.owner) if isinstance(fragment.owner, ir.Block) else None
    with fragment.location, at or ir.InsertionPoint.after(fragment.owner.operation):
        built = zero(kind)
        for row in range(rows):
            for column in range(columns):
                built = _insert(_round(_extract(fragment, row, column)), built, row, column)
    return built


def _round(element: Any) -> Any:
    word = value(
        "nvvm.convert.float.to.tf32",
        ir.IntegerType.get_signless(32),
        element,
        rnd=ir.Attribute.parse("#nvvm.fp_rnd_mode<rna>"),
    )
    return value("arith.bitcast", ir.F32Type.get(), word)


def _extract(vector: Any, row: int, column: int) -> Any:
    at = ir.DenseI64ArrayAttr.get([row, column])
    return value("vector.extract", ir.F32Type.get(), vector, static_position=at)


def _insert(element: Any, vector: Any, row: int, column: int) -> Any:
    at = ir.DenseI64ArrayAttr.get([row, column])
    return create("vector.insert", [vector.type], [element, vector], static_position=at).results[0]
