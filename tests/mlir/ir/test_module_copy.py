import pytest

from tests.texts import text_beside

pytestmark = pytest.mark.mlir

TEXT = text_beside(__file__, "TEXT")


def test_a_copy_is_equal_and_changes_alone() -> None:
    from tuner.mlir.bindings import ir
    from tuner.mlir.ir.reading import copy_of

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT)
        before = module.operation.get_asm(enable_debug_info=True)
        copied = copy_of(module)
        assert copied.operation.get_asm(enable_debug_info=True) == before
        copied.body.operations[0].operation.erase()
        assert module.operation.get_asm(enable_debug_info=True) == before
