import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

memref_copies = pytest.importorskip("tuner.mlir.ir.memrefs")

PLAIN, VIEW = "memref<?x4xf32>", "memref<?x4xf32, strided<[8, 1], offset: 4>>"


def replaced(source: str, target: str) -> tuple[int, str]:
    text = f"""func.func @main(%a: {source}, %b: {target}) {{
      memref.copy %a, %b : {source} to {target}
      return
    }}"""
    with parsed(text) as module:
        count = memref_copies.copy_views_by_loops(module.body.operations[0])
        assert module.operation.verify()
        return count, str(module)


@pytest.mark.parametrize(("source", "target"), [(PLAIN, VIEW), (VIEW, PLAIN), (VIEW, VIEW)])
def test_a_copy_of_a_view_becomes_a_loop(source: str, target: str) -> None:
    count, text = replaced(source, target)
    assert count == 1
    assert "memref.copy" not in text
    assert "scf.parallel" in text
    assert f"memref.load %arg0[%arg2, %arg3] : {source}" in text
    assert f"%arg1[%arg2, %arg3] : {target}" in text


def test_a_copy_of_adjacent_rows_stays_as_it_is() -> None:
    count, text = replaced(PLAIN, PLAIN)
    assert count == 0
    assert "memref.copy" in text
