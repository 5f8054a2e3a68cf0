"""vprintf: what a kernel prints, in C's format; __assertfail: the error of a failing assertion."""

import struct

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.gpu.ptxsim.ptx.snippets import fault, kinds, run
from tests.texts import filled, text_beside
from tuner.gpu.ptxsim.launch import simulate
from tuner.gpu.ptxsim.ptx.defects import Defect

FAILING = text_beside(__file__, "FAILING")
TILE = ".shared .align 4 .b8 tile[512];\n"
OUT = "add.s64 %rd9, %p0, %t4w; st.global.u32 [%rd9], %r1;"
BARRIERS = ("bar.sync 0", "barrier.sync 0", "barrier.cta.sync.aligned 0", "bar.sync 3, 128")
NOT_ALL = "setp.lt.u32 %q1, %t, 8; @!%q1 bra OUT; bar.sync 0; OUT:"
TWO_BARRIERS = "setp.lt.u32 %q1, %t, 32; @%q1 bra A; bar.sync 1, 64; A: bar.sync 2, 64;"


def kernel(text: str, values: bytes, guard: str = "") -> str:
    format_ = (*text.encode(), 0)
    stores = "\n".join(f"st.local.b8 [buffer+{place}], {byte};" for place, byte in enumerate(values))
    words = {"bytes": ", ".join(map(str, format_)), "length": len(format_), "stores": stores}
    return filled(__file__, "PRINT", **words, guard=guard)


def printed(text: str, values: bytes, threads: int = 1, guard: str = "") -> str:
    out = np.zeros(1, np.int32)
    return simulate(kernel(text, values, guard), "k", (1, 1, 1), (threads, 1, 1), (out,)).printed


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("plain\n", b"", "plain\n"),
        ("%d and %i\n", struct.pack("<ii", -7, 8), "-7 and 8\n"),
        ("%u %x %o %c", struct.pack("<IIII", 2**32 - 1, 255, 8, 65), "4294967295 ff 10 A"),
        ("%lld|%5d|%-5d|%05d", struct.pack("<qiii", -(2**40), 4, 4, 4), "-1099511627776|    4|4    |00004"),
        ("%f %.2f %e %g", struct.pack("<dddd", 1.5, 2.25, 1000.0, 0.5), "1.500000 2.25 1.000000e+03 0.5"),
        ("%d %f %d", struct.pack("<ixxxxdi", 1, 2.0, 3), "1 2.000000 3"),  # each value at its alignment
        ("%zu%% %p", struct.pack("<QQ", 9, 0xABC), "9% 0xabc"),
        ("%f %f", struct.pack("<dd", np.inf, np.nan), "inf nan"),
    ],
)
def test_each_conversion(text: str, values: bytes, expected: str) -> None:
    assert printed(text, values) == expected


def test_threads_print_in_their_order_and_only_those_that_call() -> None:
    assert printed("x\n", b"", threads=5) == "x\n" * 5
    assert printed("x\n", b"", threads=5, guard="@!%p bra END;") == "x\n" * 2


def test_no_other_function_is_known() -> None:
    text = kernel("x", b"").replace("vprintf, (", "helper, (")
    with fault(Defect.UNSUPPORTED, match="does not know a call of helper, only of vprintf"):
        simulate(text, "k", (1, 1, 1), (1, 1, 1), (np.zeros(1, np.int32),))


def test_an_assertion_fails_with_its_text_and_the_first_thread() -> None:
    launch = ("k", (1, 1, 1), (5, 1, 1), (np.zeros(1, np.int32),))
    simulate(FAILING.replace("LIMIT", "5"), *launch)  # no thread reaches it
    said = r"assertion fails: 'wrong', in thread \(3, 0, 0\) of block \(0, 0, 0\)"
    with fault(Defect.ASSERTION, match=said):
        simulate(FAILING.replace("LIMIT", "3"), *launch)


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_lanes_leave_a_loop_one_after_the_other(seed: int | None) -> None:
    out = np.zeros(32, np.uint32)
    code = f"""mov.u32 %r1, 0; mov.u32 %r2, 0;
      LOOP: add.u32 %r2, %r2, 1; add.u32 %r1, %r1, %r2; setp.le.u32 %q1, %r2, %t; @%q1 bra LOOP; {OUT}"""
    run(code, out, seed=seed)
    assert out.tolist() == [(n + 1) * (n + 2) // 2 for n in range(32)]


@pytest.mark.parametrize("spelling", BARRIERS)
def test_a_barrier_orders_the_block(spelling: str) -> None:
    out = np.zeros(128, np.uint32)
    code = f"""mov.u32 %r2, tile; add.u32 %r2, %r2, %t4; st.shared.u32 [%r2], %t; {spelling};
      mov.u32 %r3, tile; sub.u32 %r4, 508, %t4; add.u32 %r3, %r3, %r4; ld.shared.u32 %r1, [%r3]; {OUT}"""
    found = run(code, out, threads=128, variables=TILE)
    assert (out.tolist(), found.races) == (list(range(127, -1, -1)), ())
    assert run(code.replace(f"{spelling};", ""), out, threads=128, variables=TILE).races != ()


def test_named_barriers_join_only_those_who_come() -> None:
    out = np.zeros(128, np.uint32)
    code = f"""shr.u32 %r5, %t, 6; add.u32 %r5, %r5, 1; mov.u32 %r2, tile; add.u32 %r2, %r2, %t4;
      st.shared.u32 [%r2], %t; bar.sync %r5, 64; xor.b32 %r3, %t4, %r6;
      mov.u32 %r4, tile; add.u32 %r4, %r4, %r3; ld.shared.u32 %r1, [%r4]; {OUT}"""
    assert run(f"mov.u32 %r6, 128; {code}", out, threads=128, variables=TILE).races == ()
    np.testing.assert_array_equal(out, np.arange(128) ^ 32)
    assert kinds(run(f"mov.u32 %r6, 256; {code}", out, threads=128, variables=TILE)) == {Defect.SHARED_RACE}


def test_threads_may_arrive_without_waiting() -> None:
    out = np.zeros(64, np.uint32)
    code = f"""mov.u32 %r1, 5; setp.ge.u32 %q1, %t, 32; @%q1 bra LATER;
      mov.u32 %r2, tile; add.u32 %r2, %r2, %t4; st.shared.u32 [%r2], %t; bar.arrive 1, 64; bra.uni DONE;
      LATER: bar.sync 1, 64; mov.u32 %r2, tile; add.u32 %r2, %r2, %t4; ld.shared.u32 %r1, [%r2+-128];
      DONE: {OUT}"""
    found = run(code, out, threads=64, variables=TILE)
    assert (out.tolist(), found.races) == ([5] * 32 + list(range(32)), ())


def test_each_block_and_each_barrier_counts_its_own_arrivals() -> None:
    out = np.zeros((2, 128), np.uint32)
    found = run(text_beside(__file__, "ARRIVALS"), out, threads=128, grid=(2, 1, 1), variables=TILE)
    half = [[5] * 32 + list(range(32)), [5] * 32 + list(range(64, 96))]
    assert (out.tolist(), found.races) == ([half[0] + half[1]] * 2, ())


BELOW_10, PICK = "setp.lt.u32 %q1, %t, 10;", "selp.b32 %r1, 1, 0, %q2;"
HALF_ENDS = "setp.lt.u32 %q1, %t, 32; @%q1 exit;"
MEETING = f"""{BELOW_10} @%q1 bra LOW; mov.u32 %r1, 200; bra.uni BOTH;
  LOW: mov.u32 %r1, 100; BOTH: activemask.b32 %r2; add.u32 %r1, %r1, 1; popc.b32 %r3, %r2;
  add.u32 %r1, %r1, %r3;"""
ENDING = f"mov.u32 %r1, 7; setp.lt.u32 %q1, %t, 4; @%q1 ret; {OUT} setp.lt.u32 %q2, %t, 8; @!%q2 exit;"
IN_PARTS = """mov.u32 %r1, 1; setp.lt.u32 %q1, %t, 8; @%q1 bra A; barrier.sync 0; bra.uni END;
  A: barrier.sync 0; END:"""
LONG_LOOP = "mov.u32 %r1, 0; LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %q1, %r1, 3000; @%q1 bra LOOP;"
WAITING = """setp.ge.u32 %q1, %t, 32; @%q1 bra WRITE;
  LOOP: ld.volatile.global.u32 %r1, [%p0+128]; setp.eq.u32 %q2, %r1, 0; @%q2 bra LOOP; bra.uni END;
  WRITE: mov.u32 %r1, 7; END:"""
RESULTS = {  # of 64 threads
    "a barrier combines predicates by and": (f"{BELOW_10} bar.red.and.pred %q2, 0, %q1; {PICK}", [0] * 64),
    "a barrier combines predicates by or": (f"{BELOW_10} bar.red.or.pred %q2, 0, %q1; {PICK}", [1] * 64),
    "a barrier counts": (f"{BELOW_10} bar.red.popc.u32 %r1, 0, %q1;", [10] * 64),
    "ended threads are not waited for": (f"mov.u32 %r1, 3; {HALF_ENDS} bar.sync 0;", [0] * 32 + [3] * 32),
    "diverged lanes meet again after a branch": (MEETING, [133] * 10 + [233] * 54),
    "predicated ends let the others go on": (ENDING, [0] * 4 + [7] * 60),
    "a barrier without alignment is reached in parts": (IN_PARTS, [1] * 64),
    "a long loop that ends is run to its end": (LONG_LOOP, [3000] * 64),
    "a warp waits for one that the fixed order runs later": (WAITING, [7] * 64),
}


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("case", RESULTS)
def test_results_of_threads(case: str) -> None:
    code, expected = RESULTS[case]
    out = np.zeros(64, np.uint32)
    run(f"{code} {OUT}", out, threads=64)
    assert out.tolist() == expected


def test_blocks_of_odd_size_run_in_whole_warps() -> None:
    out = np.zeros((3, 45), np.uint32)
    code = """bar.sync 0; mad.lo.u32 %r1, %b, 45, %t; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd1, %rd1, %p0;
      st.global.u32 [%rd1], %r1;"""
    run(code, out, threads=45, grid=(3, 1, 1))
    np.testing.assert_array_equal(out.ravel(), np.arange(135))


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (NOT_ALL, Defect.DIVERGENCE, r"thread \(8, 0, 0\).*not here"),
        (TWO_BARRIERS, Defect.DEADLOCK, "waits at barrier"),
        ("bar.sync 0, 32;", Defect.BARRIER, "barrier 0: found 64 threads, allowed 32"),
        ("bar.sync 16;", Defect.BARRIER, "found barrier 16, allowed 0 to 15"),
        ("bar.sync 1, 33;", Defect.BARRIER, "found a count of 33 threads, allowed multiples of 32"),
        ("trap;", Defect.TRAP, "ran into it"),
    ],
)
def test_what_never_ends_well_is_a_fault(code: str, kind: Defect, reason: str) -> None:
    with fault(kind, match=reason):
        run(code, threads=64)


def test_threads_that_wait_for_what_nobody_writes_are_an_error_that_names_the_loop() -> None:
    code = "LOOP: ld.volatile.global.u32 %r1, [%p0];\nsetp.eq.u32 %q1, %r1, 0; @%q1 bra LOOP;"
    repeated = r"thread \(0, 0, 0\) of block \(0, 0, 0\) and 31 more repeat lines \d+ to \d+ of the PTX$"
    reason = f"kernel snippet: endless: nothing writes what is waited for: {repeated}"
    with fault(Defect.ENDLESS, match=reason):
        run(code, np.zeros(1, np.uint32))


@pytest.mark.parametrize(("limit", "found"), [("STEPS", "100 basic blocks"), ("SECONDS", "0 s")])
def test_a_loop_that_counts_is_stopped_by(limit: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"tuner.gpu.ptxsim.engine.{limit}_LIMIT", int(found.split()[0]))
    monkeypatch.setattr("tuner.gpu.ptxsim.engine.PAUSE_BLOCKS", 1 << 11)
    reason = f"kernel snippet: endless: found more than {found}: thread .* repeat line .* of the PTX"
    with fault(Defect.ENDLESS, match=reason):
        run("mov.u32 %r1, 0; LOOP: add.u32 %r1, %r1, 1; bra.uni LOOP;")


@pytest.mark.parametrize("threads", [64, 48, 20])
def test_a_partial_warp_is_ordered_by_a_barrier(threads: int) -> None:
    write = "setp.eq.u32 %q1, %t, 0; @%q1 st.shared.u32 [tile], {};"
    for wait, expected in (("bar.sync 0;", set()), ("", {Defect.SHARED_RACE})):
        code = f"{write.format(5)} bar.sync 0; ld.shared.u32 %r1, [tile]; {wait} {write.format(7)}"
        assert kinds(run(code, threads=threads, variables=".shared .align 4 .b8 tile[4];")) == expected
