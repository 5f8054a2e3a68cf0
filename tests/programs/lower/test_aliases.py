import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

aliases = pytest.importorskip("tuner.programs.lower.aliases")
walking = pytest.importorskip("tuner.mlir.rewrite.walking")

M = "memref<4xf32>"


def of_first_allocation(*lines: str) -> tuple[set[str], list[str]]:
    """Returns the names of the values that may be the first gpu.alloc of @f, and those of their users."""
    body = "\n".join(lines)
    with parsed(f"func.func @f(%a: {M}, %n: index, %flag: i1) {{ {body}\n return }}") as module:
        found = aliases.aliases_of(walking.walk(module, "gpu.alloc")[0].results[0])
        return {each.get_name() for each in found.values}, sorted(user.name for user in found.users)


def test_views_branches_and_loops_hand_memory_on() -> None:
    values, users = of_first_allocation(
        f"%x = gpu.alloc () : {M}",
        f"%s = arith.select %flag, %x, %a : {M}",
        f"%r = scf.for %i = %n to %n step %n iter_args(%p = %s) -> ({M}) {{",
        f"  %c = memref.cast %p : {M} to memref<?xf32>",
        f"  scf.yield %a : {M}",
        "}",
    )
    assert len(values) == 5  # %x, %s, %p, %c, %r
    assert users == ["arith.select", "memref.cast", "scf.for"]


def test_work_uses_memory_until_its_token_is_waited_for() -> None:
    _, users = of_first_allocation(
        "%t0 = gpu.wait async",
        f"%x, %t1 = gpu.alloc async [%t0] () : {M}",
        f"%t2 = gpu.memcpy async [%t1] %x, %a : {M}, {M}",
        "%t3 = gpu.wait async [%t2]",
        "gpu.wait [%t3]",
    )
    assert users == ["gpu.memcpy", "gpu.wait", "gpu.wait"]
