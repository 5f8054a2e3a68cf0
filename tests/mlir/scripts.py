"""Transform scripts for tests: the ops of one named sequence, and what to apply them to."""

from tests.texts import filled

INTEGER = "!transform.param<i64>"
PAYLOAD = """func.func @matmul(%a: MATRIX, %b: MATRIX, %c: MATRIX) -> MATRIX {
  %product = linalg.matmul ins(%a, %b : MATRIX, MATRIX) outs(%c : MATRIX) -> MATRIX
  return %product : MATRIX
}
""".replace("MATRIX", "tensor<64x64xf32>")
TILE = (
    "%tile, %loop = transform.structured.tile_using_for %product tile_sizes [%size]"
    " : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)"
)


def script(*ops: str) -> str:
    """Returns a script of these ops; %product is the matmul."""
    return filled(__file__, "SCRIPT", lines="\n".join(f"    {op}" for op in ops))


def knob(name: str, options: str, selected: str = "", kind: str = INTEGER, result: str = "") -> str:
    """Returns one knob op; ``selected`` as an attribute."""
    chosen = f" = {selected} from" if selected else ""
    return f'%{result or name} = transform.tune.knob<"{name}">{chosen} options = {options} -> {kind}'


def alternatives(name: str, *regions: str, selected: str = "") -> str:
    """Returns alternatives whose regions are these ops and give nothing."""
    chosen = f" selected_region = {selected}" if selected else ""
    listed = ", ".join(f"{{ {each}\n }}" for each in regions)
    return f'transform.tune.alternatives<"{name}">{chosen} {listed}'
