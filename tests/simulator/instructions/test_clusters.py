"""Clusters: registers, barriers, distributed shared memory, multicast, and what blocks may not do."""

from typing import Any

import numpy as np
import pytest

from tests.simulator.ptx.snippets import Array, run
from tests.texts import text_beside
from tuner.core.errors import UsageError
from tuner.simulator.launch import Simulation
from tuner.simulator.memory.async_copies import TensorMap
from tuner.simulator.ptx.defects import Defect, SimulationError

SEEDS = [None, 1, 2, 3]
PAIR = (2, 1, 1)
MEMORY = ".shared .align 128 .b8 tile[256];\n.shared .align 8 .b8 full[8];\n"
SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
PLACE = (
    "mad.lo.u32 %r9, %b, 32, %t; mul.wide.u32 %rd9, %r9, 4; add.s64 %rd9, %rd9, %p0;"  # of a thread's result
)


def kinds(found: Simulation) -> set[Defect]:
    return {hazard.kind for hazard in found.hazards}


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ((2, 1, 1), [(x % 2, x // 2) for y in range(2) for x in range(4)]),
        ((1, 2, 1), [(y, x) for y in range(2) for x in range(4)]),
        ((2, 2, 1), [(x % 2 + 2 * y, x // 2) for y in range(2) for x in range(4)]),
    ],
)
def test_registers_name_the_block_in_its_cluster(cluster: Any, expected: list[tuple[int, int]]) -> None:
    out = np.zeros((2, 4, 2), np.uint32)
    code = """mov.u32 %r1, %ctaid.y; mad.lo.u32 %r1, %r1, 4, %b; mul.wide.u32 %rd1, %r1, 8;
      add.s64 %rd1, %rd1, %p0; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %clusterid.x;
      st.global.b32 [%rd1], %r2; st.global.b32 [%rd1+4], %r3;"""
    run(code, out, grid=(4, 2, 1), cluster=cluster, threads=1)
    np.testing.assert_array_equal(out.reshape(-1, 2), expected)


# Every thread writes what its neighbour in the other block reads.
EXCHANGE = """mov.u32 %r1, tile; add.u32 %r1, %r1, %t4; mad.lo.u32 %r2, %b, 100, %t; st.shared.b32 [%r1], %r2;
  {first} mov.u32 %r3, %cluster_ctarank; xor.b32 %r3, %r3, 1; mapa.shared::cluster.u32 %r4, %r1, %r3;
  getctarank.shared::cluster.u32 %r6, %r4; setp.ne.u32 %q1, %r3, %r6; @%q1 trap;
  ld.{space}.b32 %r5, [%r4]; {last} {place} st.global.b32 [%rd9], %r5;"""


def exchange(
    first: str = SYNC, last: str = SYNC, space: str = "shared::cluster", seed: int | None = None
) -> Any:
    out = np.zeros((4, 32), np.uint32)
    code = EXCHANGE.format(first=first, last=last, space=space, place=PLACE)
    return run(code, out, grid=(4, 1, 1), cluster=PAIR, variables=MEMORY, seed=seed), out


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_read_the_shared_memory_of_each_other(seed: int | None) -> None:
    found, out = exchange(seed=seed)
    np.testing.assert_array_equal(out, np.array([[100], [0], [300], [200]]) + np.arange(32))
    assert found.hazards == ()
    assert found.blocks == 4


@pytest.mark.parametrize("seed", SEEDS)
def test_a_read_of_a_block_that_does_not_wait_is_reported(seed: int | None) -> None:
    assert kinds(exchange(first="bar.sync 0;", seed=seed)[0]) & {Defect.SHARED_RACE, Defect.UNINITIALISED}
    assert kinds(exchange(last="", seed=seed)[0]) == {Defect.ENDED_BLOCK}
    assert Defect.SHARED_RACE in kinds(exchange(first=SYNC.replace("arrive", "arrive.relaxed"), seed=seed)[0])


AWAY = "mov.u32 %r1, 0; mapa.shared::cluster.u32 %r1, %r1, 7; ld.shared::cluster.b32 %r2, [%r1];"
END_OF_ONE = (
    "setp.eq.u32 %q1, %b, 0; @%q1 bra END; barrier.cluster.arrive; END: bar.sync 0; @%q1 bar.sync 1, 64;"
)


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
    with pytest.raises(SimulationError, match="found an address of the cluster") as error:
        exchange(space="shared")
    assert error.value.kind is Defect.OUT_OF_BOUNDS


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


def arrival(
    first: str = SYNC, arrive: str = REMOTE, wait: str = "WAIT:", seed: int | None = None
) -> Simulation:
    code = ARRIVAL.format(first=first, arrive=arrive).replace("WAIT:", wait)
    return run(code, grid=PAIR, cluster=PAIR, variables=MEMORY, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_arrives_at_the_mbarrier_of_another(seed: int | None) -> None:
    assert arrival(seed=seed).hazards == ()


def test_wrong_arrivals_at_another_block_are_noticed() -> None:
    with pytest.raises(SimulationError, match="wait for ever"):
        arrival(arrive="mbarrier.arrive.shared.b64 %rd1, [%r1];")
    assert kinds(arrival(first="bar.sync 0;")) == {Defect.SHARED_RACE}
    assert kinds(arrival(wait="bra END; WAIT:")) == {Defect.ENDED_BLOCK}


# Each block copies 64 bytes to both: its half of the tile.
MULTICAST = text_beside(__file__, "MULTICAST")


def multicast(seed: int | None = None, **changes: Any) -> tuple[Simulation, Array]:
    words = {"first": SYNC, "bytes": 128, "mask": 3, "cast": ".multicast::cluster", "operand": ", %rs1"}
    code = MULTICAST.format(place=PLACE, last=SYNC, **words | changes)
    out, source = np.zeros((2, 32), np.float32), np.arange(32, dtype=np.float32)
    tensor = TensorMap(source, (16,), 0)
    return run(code, out, tensor, grid=PAIR, cluster=PAIR, variables=MEMORY, seed=seed), out


@pytest.mark.parametrize("seed", SEEDS)
def test_a_multicast_arrives_in_each_block_and_counts_at_its_mbarrier(seed: int | None) -> None:
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
def test_a_wrong_multicast_is_noticed(changes: dict[str, Any], message: str, seed: int | None) -> None:
    with pytest.raises(SimulationError, match=message):
        multicast(seed, **changes)


def test_a_multicast_before_the_other_block_has_its_mbarrier_is_noticed() -> None:
    try:
        found = kinds(multicast(first="bar.sync 0;")[0])
    except SimulationError as error:
        found = {error.kind}
    assert found <= {Defect.SHARED_RACE, Defect.BARRIER}
    assert found
