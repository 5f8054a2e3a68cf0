"""``tuner.skip_hidden_keys`` on loops over keys: which bounds they get, and what it refuses."""

from tests.mlir.ops.one_op import line_of
from tests.texts import filled

LINE = line_of("skip_hidden_keys")


def payload(band: str = "-511, 0", chunks: int = 512, element: str = "f32", stride: int = 1) -> str:
    """Returns loops over 512 keys; whole chunks of a softmax end at ``chunks``."""
    mark = f"{{tuner.visible = array<i64: {band}>}}" if band else ""
    layout = f"strided<[{2048 * stride}, {4 * stride}, {stride}]>"
    return filled(__file__, "PAYLOAD", mark=mark, chunks=chunks, e=element, layout=layout)


BECOMES = {
    "skip_hidden_keys": (LINE, payload()),
    "skip_hidden_keys_window": (LINE, payload("-70, 7")),
    "skip_hidden_keys_rest": (LINE, payload(chunks=480)),
}
REFUSED = [
    (LINE, payload(""), r"found 0 arguments tuner\.visible, allowed 1"),
    (LINE, payload().replace(" {tuner.guarded}", ""), r"found no argument tuner\.guarded, allowed 1 or more"),
    (LINE, payload(element="bf16"), r"found argument 0 of memref<.*>, allowed rows of f32 or f64"),
    (LINE, payload(stride=2), r"found argument 0 of memref<.*>, allowed rows of f32 or f64"),
]
