import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

older_spellings = pytest.importorskip("tuner.mlir.rewrite.older_spellings")

OLD = """module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%x: f32, %offset: i32, %width: i32) kernel {
      %n = "gpu.block_dim"() {dimension = "x"} : () -> (index)
      %t = "gpu.thread_id"() { dimension = "y" } : () -> index
      %s = "gpu.all_reduce"(%x) ({}) {op = "add"} : (f32) -> (f32)
      %r = "gpu.all_reduce"(%x) ({
      ^bb(%a: f32, %b: f32):
        %sum = arith.addf %a, %b : f32
        "gpu.yield"(%sum) : (f32) -> ()
      }) {op = "mul"} : (f32) -> (f32)
      %v, %p = "gpu.shuffle"(%x, %offset, %width) {mode = "xor"} : (f32, i32, i32) -> (f32, i1)
      %own = gpu.dynamic_shared_memory : memref<?xi8, 3>
      gpu.return
    }
    "gpu.module_end"() : () -> ()
  }
}"""


def test_what_documents_show_parses_and_no_line_moves() -> None:
    text = older_spellings.with_current_spellings(OLD.replace(', op = "mul"', ""))
    assert text.count("\n") == OLD.count("\n")
    with parsed(OLD.replace('{op = "mul"}', "")) as module:
        printed = str(module).replace("  ", " ")
    for expected in ("gpu.block_dim x", "gpu.thread_id y", "gpu.all_reduce add", "gpu.shuffle xor"):
        assert expected in printed
    assert "gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>" in printed


def test_words_outside_of_these_ops_stay() -> None:
    for text in (
        'func.func @f() attributes {mode = "xor", op = "add", dimension = "x"} { return }',
        '"gpu.terminator"() {name = "gpu.module_ending"} : () -> ()',
    ):
        assert older_spellings.with_current_spellings(text) == text


def test_the_after_of_the_docstring_is_what_becomes_of_the_before() -> None:
    lines = [line for line in (older_spellings.__doc__ or "").splitlines() if line.startswith("    ")]
    half = len(lines) // 2
    assert older_spellings.with_current_spellings("\n".join(lines[:half])) == "\n".join(lines[half:])
