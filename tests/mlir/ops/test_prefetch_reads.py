"""``tuner.prefetch_reads`` on a small function: what it inserts, where it does not, when it refuses."""

import pytest

from tests.mlir.ops.one_op import apply, line_of
from tests.texts import text_beside

# Reads B, argument 1, directly and through a view, inside of a loop and outside; a buffer of its own as well.
PAYLOAD, PANELS = (text_beside(__file__, name) for name in ("PAYLOAD", "PANELS"))


def line(**attributes: int) -> str:
    return line_of("prefetch_reads", **attributes)


@pytest.mark.parametrize(("width", "step", "count"), [(40, 16, 4), (40, 64, 2), (16, 16, 2), (1, 16, 1)])
def test_each_cache_line_of_a_vector_is_asked_for(width: int, step: int, count: int) -> None:
    """And the one that its end reaches."""
    payload = PAYLOAD.replace("vector<40xf32>", f"vector<{width}xf32>")
    payload = payload.replace("%view[%i, %c0]", "%own[%i, %c0]")
    payload = payload.replace(": !view, vector<16xf32>", ": memref<32x64xf32>, vector<16xf32>")
    assert apply(line(argument=1, line=step), payload).count("memref.prefetch") == count


def test_the_handle_stays_valid_and_a_script_may_go_on_after_a_refusal() -> None:
    once = apply(line(argument=1), PAYLOAD)
    twice = apply(f"{line(argument=1)}\n    {line(argument=1)}", PAYLOAD)
    assert twice.count("memref.prefetch") == 2 * once.count("memref.prefetch")
    assert "went_on" in apply(text_beside(__file__, "GUARDED"), PAYLOAD)


ON_ROOT = line().replace("%func", "%root")
BECOMES = {
    "prefetch_reads_defaults": (line(), PAYLOAD),
    "prefetch_reads_rows": (line(argument=1, rows=4, line=16), PAYLOAD),
    "prefetch_reads_columns": (line(argument=1, columns=64, line=32), PAYLOAD),
    "prefetch_reads_panels": (line(strips=3), PANELS),
}
UNCHANGED = [
    (line(argument=0), PAYLOAD, "an argument that is not read"),
    (line(strips=2), PAYLOAD, "a function without packed weights"),
]
REFUSED = [
    (line(argument=7), PAYLOAD, r"found func\.func, allowed func\.func with argument 7$"),
    (ON_ROOT, PAYLOAD, r"found builtin\.module, allowed func\.func with argument 1$"),
]
