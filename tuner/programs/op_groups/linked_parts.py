"""The function that each thread of a program runs: its share of each group, and barriers between groups.

A thread waits in a loop until all threads have arrived, and after some microseconds sleeps: the thread that
it waits for may need its processor. Arrivals are counted up to the end of the call, so nothing is reset
between two barriers. All threads wait for one another at the end, too:

    llvm.func @program_part(%part: !llvm.ptr) {
      llvm.call @call_0(%frame, %thread, %threads) : (!llvm.ptr, i64, i64) -> ()
      llvm.call @wait_for_all(%arrivals, %until_1) : (!llvm.ptr, i64) -> ()    // until 1 * %threads arrived
      llvm.cond_br %is_first, ^alone_1, ^after_1
    ^alone_1:
      llvm.call @call_1(%frame) : (!llvm.ptr) -> ()
      llvm.br ^after_1
    ^after_1:
      llvm.return
    }
"""

from collections.abc import Sequence

from tuner.core.grouped_program import GroupCode
from tuner.programs.run.grouped_code import ARRIVALS_OFFSET, PART_ENTRY

POINTER = "!llvm.ptr"
# Before a waiting thread sleeps, some 0.1 to 0.4 ms: one that has slept may wake on a busy processor.
PAUSES = 8192
SYSTEM_CALLS = "syscall"  # of the C library
# Linux, x86-64: SYS_futex, FUTEX_WAIT and FUTEX_WAKE of one process, as many threads as there are
FUTEX, WAIT_PRIVATE, WAKE_PRIVATE, EVERYBODY = 202, 128, 129, 2**31 - 1
SYSTEM_CALL = f"vararg(!llvm.func<i64 (i64, ...)>) : (i64, {POINTER}, i64, i64, i64) -> i64"
# The last thread that arrives wakes the sleepers. One that is about to sleep counts itself first, and the
# kernel looks at the arrivals again, so that no wake-up is lost.
WAIT = f"""
llvm.func internal @wait_for_all(%arrivals: {POINTER}, %until: i64) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %limit = llvm.mlir.constant({PAUSES} : i64) : i64
  %futex = llvm.mlir.constant({FUTEX} : i64) : i64
  %wait = llvm.mlir.constant({WAIT_PRIVATE} : i64) : i64
  %wake = llvm.mlir.constant({WAKE_PRIVATE} : i64) : i64
  %everybody = llvm.mlir.constant({EVERYBODY} : i64) : i64
  %low_word = llvm.mlir.constant({2**32 - 1} : i64) : i64
  %sleepers = llvm.getelementptr %arrivals[8] : ({POINTER}) -> {POINTER}, i8
  %before = llvm.atomicrmw add %arrivals, %one seq_cst : {POINTER}, i64
  %now = llvm.add %before, %one : i64
  %is_last = llvm.icmp "sge" %now, %until : i64
  llvm.cond_br %is_last, ^last, ^look(%zero : i64)
^last:
  %asleep = llvm.load %sleepers atomic seq_cst {{alignment = 8 : i64}} : {POINTER} -> i64
  %is_asleep = llvm.icmp "ne" %asleep, %zero : i64
  llvm.cond_br %is_asleep, ^wake, ^done
^wake:
  %woken = llvm.call @{SYSTEM_CALLS}(%futex, %arrivals, %wake, %everybody, %zero) {SYSTEM_CALL}
  llvm.br ^done
^look(%pauses: i64):
  %arrived = llvm.load %arrivals atomic acquire {{alignment = 8 : i64}} : {POINTER} -> i64
  %is_done = llvm.icmp "sge" %arrived, %until : i64
  llvm.cond_br %is_done, ^done, ^pause
^pause:
  llvm.inline_asm has_side_effects "pause", "" : () -> ()
  %more = llvm.add %pauses, %one : i64
  %may_pause = llvm.icmp "slt" %more, %limit : i64
  llvm.cond_br %may_pause, ^look(%more : i64), ^doze
^doze:
  %sleeping = llvm.atomicrmw add %sleepers, %one seq_cst : {POINTER}, i64
  %seen = llvm.load %arrivals atomic seq_cst {{alignment = 8 : i64}} : {POINTER} -> i64
  %is_late = llvm.icmp "sge" %seen, %until : i64
  llvm.cond_br %is_late, ^awake, ^sleep
^sleep:
  %word = llvm.and %seen, %low_word : i64
  %status = llvm.call @{SYSTEM_CALLS}(%futex, %arrivals, %wait, %word, %zero) {SYSTEM_CALL}
  llvm.br ^awake
^awake:
  %left = llvm.atomicrmw sub %sleepers, %one seq_cst : {POINTER}, i64
  llvm.br ^look(%zero : i64)
^done:
  llvm.return
}}"""
HEAD = f"""llvm.func @{PART_ENTRY}(%part: {POINTER}) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %thread_at = llvm.getelementptr %part[8] : ({POINTER}) -> {POINTER}, i8
  %threads_at = llvm.getelementptr %part[16] : ({POINTER}) -> {POINTER}, i8
  %call = llvm.load %part : {POINTER} -> {POINTER}
  %thread = llvm.load %thread_at : {POINTER} -> i64
  %threads = llvm.load %threads_at : {POINTER} -> i64
  %frame = llvm.load %call : {POINTER} -> {POINTER}
  %arrivals = llvm.getelementptr %call[{ARRIVALS_OFFSET}] : ({POINTER}) -> {POINTER}, i8
  %is_first = llvm.icmp "eq" %thread, %zero : i64"""


def part_texts(codes: Sequence[GroupCode], waits: Sequence[bool]) -> list[str]:
    """Returns the texts of ``@program_part`` and of what it calls; ``waits``: before which groups."""
    lines, barriers = [HEAD], 0
    for number, (code, is_barrier) in enumerate(zip(codes, waits, strict=True)):
        if is_barrier:
            barriers += 1
            lines += _wait(number, barriers)
        lines += _divided(number, code) if code.is_divided else _alone(number, code)
    lines += _wait(len(codes), barriers + 1)
    return [f"llvm.func @{SYSTEM_CALLS}(i64, ...) -> i64", WAIT, "\n".join([*lines, "  llvm.return", "}"])]


def call_of(number: int, code: GroupCode, thread: str, threads: str) -> str:
    """Returns the call of a group by a thread, whose number and whose team's size are values."""
    if not code.is_divided:
        return f"  llvm.call @call_{number}(%frame) : ({POINTER}) -> ()"
    return f"  llvm.call @call_{number}(%frame, {thread}, {threads}) : ({POINTER}, i64, i64) -> ()"


def _wait(number: int, barriers: int) -> list[str]:
    return [
        f"  %barriers_{number} = llvm.mlir.constant({barriers} : i64) : i64",
        f"  %until_{number} = llvm.mul %barriers_{number}, %threads : i64",
        f"  llvm.call @wait_for_all(%arrivals, %until_{number}) : ({POINTER}, i64) -> ()",
    ]


def _divided(number: int, code: GroupCode) -> list[str]:
    return [call_of(number, code, "%thread", "%threads")]


def _alone(number: int, code: GroupCode) -> list[str]:
    return [
        f"  llvm.cond_br %is_first, ^alone_{number}, ^after_{number}",
        f"^alone_{number}:",
        call_of(number, code, "", ""),
        f"  llvm.br ^after_{number}",
        f"^after_{number}:",
    ]
