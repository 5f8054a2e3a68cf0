"""Converts ``scf.parallel`` around launches to nested ``scf.for`` on the host: no kernel launches another.

Takes a host function before its other loops become kernels. Loops that reduce to a value stay unchanged.

    scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
      gpu.launch ...
      scf.reduce
    }
  becomes
    scf.for %i = %c0 to %c8 step %c1 {
      gpu.launch ...
    }
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.walking import walk

LAUNCHES = ("gpu.launch", "gpu.launch_func")


def make_host_loops(function: Op) -> int:
    """Rewrites each ``scf.parallel`` around GPU launches to nested ``scf.for``, in place.

    Loops with results stay unchanged. Returns the number of rewritten loops.
    """
    loops = [loop for loop in walk(function, "scf.parallel") if _launches(loop) and not loop.results]
    for loop in loops:
        _make_for(loop)
    return len(loops)


def _launches(loop: Op) -> bool:
    return bool(walk(loop, *LAUNCHES))


def _make_for(loop: Op) -> None:
    old = loop.regions[0].blocks[0]
    rank, bounds = len(old.arguments), list(loop.operands)
    before = loop
    for number in range(rank):
        with loop.location, ir.InsertionPoint(before):
            made = ir.Operation.create("scf.for", operands=bounds[number::rank], regions=1)
        body = made.regions[0].blocks.append(ir.IndexType.get(), arg_locs=[loop.location])
        with loop.location, ir.InsertionPoint(body):
            before = create("scf.yield")
        old.arguments[number].replace_all_uses_with(body.arguments[0])
    for op in [op.operation for op in old.operations][:-1]:  # all but scf.reduce
        op.move_before(before)
    loop.erase()
