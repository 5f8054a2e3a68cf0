"""``tuner.bound_loads``: what becomes of reads of padded views."""

from tests.texts import text_beside

LINE = '"tuner.bound_loads"(%func) {{is_synchronous = {0} : i64}} : (!transform.any_op) -> ()'


def payload(bounds: str, read: str = "vector.load %a[%i, %j]") -> str:
    """Returns a copy of a vector of A (64 x 64, rows of 60) to shared memory, and one to C."""
    return text_beside(__file__, "PAYLOAD").replace("BOUNDS", bounds).replace("READ", read)


BECOMES = {
    "bound_loads_rows_only": (LINE.format(0), payload("{tuner.bounds = array<i64: 50, 64>}")),
    "bound_loads_whole_vectors": (LINE.format(0), payload("{tuner.bounds = array<i64: 50, 60>}")),
    "bound_loads_cut_vectors": (LINE.format(0), payload("{tuner.bounds = array<i64: 50, 58>}")),
    "bound_loads_synchronous": (LINE.format(1), payload("{tuner.bounds = array<i64: 50, 60>}")),
    "bound_loads_synchronous_cut": (LINE.format(1), payload("{tuner.bounds = array<i64: 64, 59>}")),
}
UNCHANGED = [
    (LINE.format(0), payload(""), "no bounds"),
    (LINE.format(0), payload("{tuner.bounds = array<i64: 64, 64>}"), "a view that overhangs nothing"),
]
TRANSFER = payload("{tuner.bounds = array<i64: 50, 60>}", read="vector.transfer_read %a[%i, %j], %zero")
REFUSED = [(LINE.format(0), TRANSFER, r"found vector\.transfer_read of a padded view, allowed vector")]
