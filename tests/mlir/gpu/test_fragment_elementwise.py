import pytest

from tuner.core.errors import CandidateError
from tuner.mlir import bindings, transform
from tuner.mlir.gpu import fragment_elementwise

pytestmark = pytest.mark.mlir


def lowered(kind: str, *types: str, result: str) -> str:
    """Returns a function after the lowering; its operands are fragments of these types."""
    arguments = ", ".join(f"%x{number}: {each}" for number, each in enumerate(types))
    names = ", ".join(f"%x{number}" for number in range(len(types)))
    text = f"""func.func @f({arguments}) -> {result} {{
      %z = gpu.subgroup_mma_elementwise {kind} {names} : ({", ".join(types)}) -> {result}
      return %z : {result}
    }}"""
    with transform.new_context(), bindings.ir.Location.unknown():
        module = transform.parse(text, "test")
        fragment_elementwise.lower_fragment_elementwise(module)
        assert module.operation.verify()
        return str(module)


def fragment(element: str, operand: str = "COp") -> str:
    return f'!gpu.mma_matrix<16x16x{element}, "{operand}">'


@pytest.mark.parametrize(
    ("kind", "element", "operand", "registers", "made"),
    [
        ("subf", "f32", "COp", 8, "llvm.fsub %{} : f32"),
        ("minf", "f16", "COp", 4, "llvm.intr.minimum(%{}) : (vector<2xf16>, vector<2xf16>)"),
        ("addf", "f16", "AOp", 8, "llvm.fadd %{} : vector<2xf16>"),
        ("muli", "i32", "COp", 8, "llvm.mul %{} : i32"),
    ],
)
def test_each_register_is_computed_once(
    kind: str, element: str, operand: str, registers: int, made: str
) -> None:
    one = fragment(element, operand)
    text = lowered(kind, one, one, result=one)
    before, after = made.split("{}")
    lines = [line for line in text.splitlines() if before in line and after in line]
    assert (len(lines), text.count("llvm.extractvalue")) == (registers, 2 * registers)
    assert "subgroup_mma_elementwise" not in text


def test_an_integer_is_negated_by_taking_it_from_zero() -> None:
    text = lowered("negates", fragment("i32"), result=fragment("i32"))
    zero = "llvm.mlir.constant(0 : i32)"
    assert (text.count(zero), text.count("llvm.sub")) == (8, 8)


@pytest.mark.parametrize(
    ("kind", "types", "result", "reason"),
    [
        ("extf", ("f16",), "f32", r"found extf of .*f16.* and .*f32.*, allowed addf, subf"),
        ("addf", ("i32", "i32"), "i32", r"found addf of .*i32, .*, allowed addf, .* of f16 and of f32 sums"),
        ("addi", ("f16", "f16"), "f16", r"found addi of .*f16, .*, allowed .* addi, .* of i32 sums"),
    ],
)
def test_other_kinds_and_types_are_refused(
    kind: str, types: tuple[str, ...], result: str, reason: str
) -> None:
    with pytest.raises(CandidateError, match=reason):
        lowered(kind, *map(fragment, types), result=fragment(result))
