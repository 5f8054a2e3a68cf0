"""Lanes of a warp and blocks of a cluster: shuffles, votes, barriers, shared memory of others."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu.ptxsim.ptx.snippets import Array, each_lane, fault, kinds, run
from tests.texts import text_beside
from tuner.core.errors import UsageError
from tuner.gpu.ptxsim.launch import Simulation
from tuner.gpu.ptxsim.memory.tensor_maps import TensorMap
from tuner.gpu.ptxsim.ptx.defects import Defect, SimulationError

EVERYONE = 0xFFFFFFFF
IOTA = np.arange(32, dtype=np.uint32)
AWAY = "mov.u32 %r1, 0; mapa.shared::cluster.u32 %r1, %r1, 7; ld.shared::cluster.b32 %r2, [%r1];"
LATE = "bar.sync 0; @%q1 bar.sync 1, 64;"
END_OF_ONE = f"setp.eq.u32 %q1, %b, 0; @%q1 bra END; barrier.cluster.arrive; END: {LATE}"


def shuffled(mode: str, lane: int, amount: int, segment: int, clamp: int) -> tuple[int, bool]:
    """Returns what the ISA's pseudo code gives: the lane that is read, and whether it is in range."""
    largest, lowest = (lane & segment) | (clamp & ~segment & 31), lane & segment
    ways = {"up": lane - amount, "down": lane + amount, "bfly": lane ^ amount}
    source = ways.get(mode, lowest | (amount & ~segment & 31))
    found = source >= largest if mode == "up" else source <= largest
    return (source if found else lane), found


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@settings(max_examples=12)
@given(amount=st.integers(0, 31), width=st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_shuffles(mode: str, amount: int, width: int) -> None:
    segment, clamp = 32 - width, 0 if mode == "up" else 31
    code = f"""shfl.sync.{mode}.b32 %d|%q, %a, {amount}, {segment << 8 | clamp}, {EVERYONE};
      selp.b32 %r, 256, 0, %q; or.b32 %d, %d, %r;"""
    found = each_lane(code, IOTA, result="u4", declare=".reg .pred %q; .reg .b32 %r;")
    for lane in range(32):
        source, is_there = shuffled(mode, lane, amount, segment, clamp)
        assert found[lane] == source | (256 if is_there else 0)


BELOW_3 = "setp.lt.u32 %q, %a, 3;"
VOTE = "vote.sync.{}.pred %s, {}%q, 0xffffffff; selp.b32 %d, 1, 0, %s;"
REDUCTIONS = {"add.u32": 496, "min.u32": 0, "max.s32": 31, "and.b32": 0, "or.b32": 31, "xor.b32": 0}
FROM_NOWHERE = [4, 5, 6, 7] + [0xFFFFFFFF] * 4 + [0] * 24  # from a lane that is not there: NaN
LANES: dict[str, list[int]] = {
    "setp.lt.u32 %q, %a, 8; mov.b32 %d, 0; @%q shfl.sync.down.b32 %d, %a, 4, 31, 255;": FROM_NOWHERE,
    f"{BELOW_3} vote.sync.ballot.b32 %d, %q, 0xffffffff;": [7] * 32,
    **{f"{BELOW_3} {VOTE.format(mode, '')}": [n] * 32 for mode, n in (("all", 0), ("any", 1), ("uni", 0))},
    f"setp.lt.u32 %q, %a, 64; {VOTE.format('uni', '!')}": [1] * 32,
    "setp.lt.u32 %q, %a, 5; mov.b32 %d, 0; @!%q bra OUT; activemask.b32 %d; OUT:": [31] * 5 + [0] * 27,
    **{f"redux.sync.{name} %d, %a, 0xffffffff;": [n] * 32 for name, n in REDUCTIONS.items()},
    # the lowest lane is elected
    "elect.sync %d|%q, 0xffffffff; selp.b32 %r, 100, 0, %q; add.u32 %d, %d, %r;": [100] + [0] * 31,
}


@pytest.mark.parametrize("code", LANES)
def test_votes_reductions_and_what_lanes_know_of_each_other(code: str) -> None:
    found = each_lane(code, IOTA, result="u4", declare=".reg .pred %q, %s; .reg .b32 %r;")
    assert found.tolist() == LANES[code]


def test_a_warp_barrier_orders_its_members() -> None:
    tile = ".shared .align 4 .b8 tile[128];\n"
    code = """mov.u32 %r3, tile; add.u32 %r3, %r3, %t4; xor.b32 %r4, %r3, 4; st.shared.u32 [%r3], %t;
      {} ld.shared.u32 %r1, [%r4]; add.s64 %rd1, %p0, %t4w; st.global.u32 [%rd1], %r1;"""
    out = np.zeros(32, np.uint32)
    assert run(code.format("bar.warp.sync 0xffffffff;"), out, variables=tile).races == ()
    np.testing.assert_array_equal(out, IOTA ^ 1)
    assert kinds(run(code.format(""), out, variables=tile)) == {Defect.SHARED_RACE}


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        ("shfl.sync.idx.b32 %r1, %t, 0, 31, 1;", Defect.ILLEGAL, r"\(1, 0, 0\).*not in its own member mask"),
        ("setp.lt.u32 %q1, %t, 9; @%q1 vote.sync.any.pred %q2, %q1, -1;", Defect.DIVERGENCE, "but not here"),
    ],
)
def test_a_wrong_member_mask_is_a_fault(code: str, kind: Defect, reason: str) -> None:
    with fault(kind, match=reason):
        run(code)


def test_lanes_that_have_ended_need_not_take_part() -> None:
    out = np.zeros(32, np.uint32)
    code = """setp.ge.u32 %q1, %t, 20; @%q1 exit; setp.lt.u32 %q2, %t, 64;
      vote.sync.ballot.b32 %r1, %q2, 0xffffffff;
      add.s64 %rd1, %p0, %t4w; st.global.u32 [%rd1], %r1;"""
    run(code, out)
    assert out.tolist() == [(1 << 20) - 1] * 20 + [0] * 12


Seed = int | None
SEEDS = [None, 1, 2, 3]
PAIR = (2, 1, 1)
MEMORY = ".shared .align 128 .b8 tile[256];\n.shared .align 8 .b8 full[8];\n"
SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
# of a thread's result
PLACE = "mad.lo.u32 %r9, %b, 32, %t; mul.wide.u32 %rd9, %r9, 4; add.s64 %rd9, %rd9, %p0;"


@pytest.mark.parametrize("cluster", [(2, 1, 1), (1, 2, 1), (2, 2, 1)])
def test_registers_name_the_block_in_its_cluster(cluster: tuple[int, int, int]) -> None:
    w, h, _ = cluster
    expected = [(x % w + w * (y % h), x // w) for y in range(2) for x in range(4)]
    out = np.zeros((2, 4, 2), np.uint32)
    code = """mov.u32 %r1, %ctaid.y; mad.lo.u32 %r1, %r1, 4, %b; mul.wide.u32 %rd1, %r1, 8;
      add.s64 %rd1, %rd1, %p0; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %clusterid.x;
      st.global.b32 [%rd1], %r2; st.global.b32 [%rd1+4], %r3;"""
    run(code, out, grid=(4, 2, 1), cluster=cluster, threads=1)
    np.testing.assert_array_equal(out.reshape(-1, 2), expected)


# Every thread writes what its neighbour in the other block reads.
EXCHANGE = text_beside(__file__, "EXCHANGE")


def exchange(first: str = SYNC, last: str = SYNC, space: str = "shared::cluster", seed: Seed = None) -> Any:
    out = np.zeros((4, 32), np.uint32)
    code = EXCHANGE.format(first=first, last=last, space=space, place=PLACE)
    return run(code, out, grid=(4, 1, 1), cluster=PAIR, variables=MEMORY, seed=seed), out


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_read_the_shared_memory_of_each_other(seed: Seed) -> None:
    found, out = exchange(seed=seed)
    np.testing.assert_array_equal(out, np.array([[100], [0], [300], [200]]) + np.arange(32))
    assert (found.hazards, found.blocks) == ((), 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_read_of_a_block_that_does_not_wait_is_reported(seed: Seed) -> None:
    assert kinds(exchange(first="bar.sync 0;", seed=seed)[0]) & {Defect.SHARED_RACE, Defect.UNINITIALISED}
    assert kinds(exchange(last="", seed=seed)[0]) == {Defect.ENDED_BLOCK}
    assert Defect.SHARED_RACE in kinds(exchange(first=SYNC.replace("arrive", "arrive.relaxed"), seed=seed)[0])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (AWAY, "found rank 7 of a cluster of 2 blocks"),
        (f"{SYNC} barrier.cluster.wait;", "found a wait, allowed one after each arrival"),
        ("barrier.cluster.arrive; barrier.cluster.arrive;", "found a second arrival"),
        ("setp.lt.u32 %q1, %t, 9; @%q1 barrier.cluster.arrive.aligned;", r"thread \(9, 0, 0\).*not here"),
        (f"{END_OF_ONE} barrier.cluster.wait;", r"wait for ever: .* waits at the cluster's barrier"),
    ],
)
def test_misuse_is_named(code: str, message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        run(code, grid=PAIR, cluster=PAIR, variables=MEMORY)


def test_an_address_of_the_cluster_is_none_of_the_block() -> None:
    with fault(Defect.OUT_OF_BOUNDS, match="found an address of the cluster"):
        exchange(space="shared")


def test_a_grid_is_whole_clusters_and_blocks_that_have_ended_are_not_waited_for() -> None:
    assert run(f"setp.eq.u32 %q1, %b, 0; @%q1 bra END; {SYNC} END:", grid=PAIR, cluster=PAIR).hazards == ()
    with pytest.raises(UsageError, match=r"found a grid of \(3, 1, 1\), allowed multiples of \(2, 1, 1\)"):
        run("", grid=(3, 1, 1), cluster=PAIR)


def test_a_warp_that_the_block_fills_in_part_is_whole() -> None:
    out = np.zeros((2, 64), np.uint32)
    code = f"""{SYNC} mad.lo.u32 %r9, %b, 64, %t; mul.wide.u32 %rd9, %r9, 4; add.s64 %rd9, %rd9, %p0;
      mov.u32 %r1, 7; st.global.u32 [%rd9], %r1;"""
    run(code, out, threads=48, grid=PAIR, cluster=PAIR)
    assert out.tolist() == [[7] * 48 + [0] * 16] * 2


# Block 0 arrives at the mbarrier of block 1, whose first thread waits for it.
ARRIVAL = text_beside(__file__, "ARRIVAL")
REMOTE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];"


def arrival(first: str = SYNC, arrive: str = REMOTE, wait: str = "WAIT:", seed: Seed = None) -> Simulation:
    code = ARRIVAL.format(first=first, arrive=arrive).replace("WAIT:", wait)
    return run(code, grid=PAIR, cluster=PAIR, variables=MEMORY, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_arrives_at_the_mbarrier_of_another(seed: Seed) -> None:
    assert arrival(seed=seed).hazards == ()


def test_wrong_arrivals_at_another_block_are_noticed() -> None:
    with pytest.raises(SimulationError, match="wait for ever"):
        arrival(arrive="mbarrier.arrive.shared.b64 %rd1, [%r1];")
    assert kinds(arrival(first="bar.sync 0;")) == {Defect.SHARED_RACE}
    assert kinds(arrival(wait="bra END; WAIT:")) == {Defect.ENDED_BLOCK}


# Each block copies 64 bytes to both: its half of the tile.
MULTICAST = text_beside(__file__, "MULTICAST")


def multicast(seed: Seed = None, **changes: Any) -> tuple[Simulation, Array]:
    words = {"first": SYNC, "bytes": 128, "mask": 3, "cast": ".multicast::cluster", "operand": ", %rs1"}
    code = MULTICAST.format(place=PLACE, last=SYNC, **words | changes)
    out, source = np.zeros((2, 32), np.float32), np.arange(32, dtype=np.float32)
    tensor = TensorMap(source, (16,), 0)
    return run(code, out, tensor, grid=PAIR, cluster=PAIR, variables=MEMORY, seed=seed), out


@pytest.mark.parametrize("seed", SEEDS)
def test_a_multicast_arrives_in_each_block_and_counts_at_its_mbarrier(seed: Seed) -> None:
    found, out = multicast(seed)
    np.testing.assert_array_equal(out, np.tile(np.arange(32, dtype=np.float32), (2, 1)))
    assert found.hazards == ()
    assert Defect.UNFINISHED in kinds(multicast(seed, bytes=64)[0])  # bytes that were not announced


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bytes": 192}, "wait for ever"),
        ({"mask": 1}, "wait for ever|bytes more"),
        ({"mask": 4}, "found mask 0x4, allowed ranks of a cluster of 2 blocks"),
        ({"cast": "", "operand": ""}, "wait for ever"),
    ],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_multicast_is_noticed(changes: dict[str, Any], message: str, seed: Seed) -> None:
    with pytest.raises(SimulationError, match=message):
        multicast(seed, **changes)


def test_a_multicast_before_the_other_block_has_its_mbarrier_is_noticed() -> None:
    try:
        found = kinds(multicast(first="bar.sync 0;")[0])
    except SimulationError as error:
        found = {error.kind}
    assert found <= {Defect.SHARED_RACE, Defect.BARRIER}
    assert found
