// Fork and join of a thread team, see thread_team.py. A thread's slot, by byte offset:
//   0 posts: number of calls posted      8 function, 0: thread ends   16 its argument
//   128 done: the last post finished     256 sleeping: 1 while the member waits on the semaphore    384 semaphore
module {
  llvm.func @sem_wait(!llvm.ptr) -> i32
  llvm.func @sem_post(!llvm.ptr) -> i32
  llvm.func @sched_yield() -> i32

  llvm.func @team_member(%slot: !llvm.ptr, %limit: i64) attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %yield_mask = llvm.mlir.constant(1023 : i64) : i64
    %function_at = llvm.getelementptr %slot[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %argument_at = llvm.getelementptr %slot[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %done = llvm.getelementptr %slot[128] : (!llvm.ptr) -> !llvm.ptr, i8
    %sleeping = llvm.getelementptr %slot[256] : (!llvm.ptr) -> !llvm.ptr, i8
    %semaphore = llvm.getelementptr %slot[384] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.br ^spin(%zero, %zero : i64, i64)
  ^spin(%last: i64, %spins: i64):
    %posts = llvm.load %slot atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
    %is_same = llvm.icmp "eq" %posts, %last : i64
    llvm.cond_br %is_same, ^idle, ^work(%posts : i64)
  ^idle:
    llvm.inline_asm has_side_effects "SPIN_WAIT", "" : () -> ()
    %more = llvm.add %spins, %one : i64
    %patient = llvm.icmp "slt" %more, %limit : i64
    llvm.cond_br %patient, ^stay, ^doze
  ^stay:
    %remainder = llvm.and %more, %yield_mask : i64
    %is_due = llvm.icmp "eq" %remainder, %zero : i64
    llvm.cond_br %is_due, ^give_way, ^spin(%last, %more : i64, i64)
  ^give_way:
    // More threads than processors: a thread with work needs this processor.
    %yielded = llvm.call @sched_yield() : () -> i32
    llvm.br ^spin(%last, %more : i64, i64)
  ^doze:
    llvm.store %one, %sleeping atomic seq_cst {alignment = 8 : i64} : i64, !llvm.ptr
    %late = llvm.load %slot atomic seq_cst {alignment = 8 : i64} : !llvm.ptr -> i64
    %still_same = llvm.icmp "eq" %late, %last : i64
    llvm.cond_br %still_same, ^sleep, ^wake
  ^wake:
    // Work was posted before the sleep. If the caller has cleared the flag first, its sem_post must be waited for.
    %flag = llvm.atomicrmw xchg %sleeping, %zero seq_cst : !llvm.ptr, i64
    %was_mine = llvm.icmp "eq" %flag, %one : i64
    llvm.cond_br %was_mine, ^spin(%last, %zero : i64, i64), ^sleep
  ^sleep:
    %status = llvm.call @sem_wait(%semaphore) : (!llvm.ptr) -> i32
    llvm.br ^spin(%last, %zero : i64, i64)
  ^work(%post: i64):
    %function = llvm.load %function_at : !llvm.ptr -> !llvm.ptr
    %argument = llvm.load %argument_at : !llvm.ptr -> !llvm.ptr
    %address = llvm.ptrtoint %function : !llvm.ptr to i64
    %is_leave = llvm.icmp "eq" %address, %zero : i64
    llvm.cond_br %is_leave, ^leave, ^call
  ^call:
    llvm.call %function(%argument) : !llvm.ptr, (!llvm.ptr) -> ()
    llvm.store %post, %done atomic release {alignment = 8 : i64} : i64, !llvm.ptr
    llvm.br ^spin(%post, %zero : i64, i64)
  ^leave:
    llvm.store %post, %done atomic release {alignment = 8 : i64} : i64, !llvm.ptr
    llvm.return
  }

  // Posts work to `members` slots, calls the caller's function (`own`), waits for all slots.
  llvm.func internal @team_once(%slots: !llvm.ptr, %members: i64, %own: !llvm.ptr, %argument: !llvm.ptr) attributes {always_inline} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %slot_bytes = llvm.mlir.constant(512 : i64) : i64
    %patience = llvm.mlir.constant(1024 : i64) : i64
    %own_address = llvm.ptrtoint %own : !llvm.ptr to i64
    %has_own = llvm.icmp "ne" %own_address, %zero : i64
    llvm.br ^post(%zero : i64)
  ^post(%member: i64):
    %is_member = llvm.icmp "slt" %member, %members : i64
    llvm.cond_br %is_member, ^give, ^own_work
  ^give:
    %offset = llvm.mul %member, %slot_bytes : i64
    %slot = llvm.getelementptr %slots[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %sleeping = llvm.getelementptr %slot[256] : (!llvm.ptr) -> !llvm.ptr, i8
    %old = llvm.atomicrmw add %slot, %one seq_cst : !llvm.ptr, i64
    %flag = llvm.atomicrmw xchg %sleeping, %zero seq_cst : !llvm.ptr, i64
    %was_asleep = llvm.icmp "eq" %flag, %one : i64
    llvm.cond_br %was_asleep, ^rouse, ^posted
  ^rouse:
    %semaphore = llvm.getelementptr %slot[384] : (!llvm.ptr) -> !llvm.ptr, i8
    %status = llvm.call @sem_post(%semaphore) : (!llvm.ptr) -> i32
    llvm.br ^posted
  ^posted:
    %next_member = llvm.add %member, %one : i64
    llvm.br ^post(%next_member : i64)
  ^own_work:
    llvm.cond_br %has_own, ^own_call, ^join(%zero, %zero : i64, i64)
  ^own_call:
    llvm.call %own(%argument) : !llvm.ptr, (!llvm.ptr) -> ()
    llvm.br ^join(%zero, %zero : i64, i64)
  ^join(%waited: i64, %spins: i64):
    %is_waiting = llvm.icmp "slt" %waited, %members : i64
    llvm.cond_br %is_waiting, ^look, ^finished
  ^look:
    %its_offset = llvm.mul %waited, %slot_bytes : i64
    %its_slot = llvm.getelementptr %slots[%its_offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %its_done = llvm.getelementptr %its_slot[128] : (!llvm.ptr) -> !llvm.ptr, i8
    %posts = llvm.load %its_slot atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
    %done = llvm.load %its_done atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
    %is_done = llvm.icmp "eq" %posts, %done : i64
    %after = llvm.add %waited, %one : i64
    llvm.cond_br %is_done, ^join(%after, %zero : i64, i64), ^pause
  ^pause:
    llvm.inline_asm has_side_effects "SPIN_WAIT", "" : () -> ()
    %more = llvm.add %spins, %one : i64
    %patient = llvm.icmp "slt" %more, %patience : i64
    llvm.cond_br %patient, ^join(%waited, %more : i64, i64), ^yield
  ^yield:
    // More threads than processors: let the member run.
    %yielded = llvm.call @sched_yield() : () -> i32
    llvm.br ^join(%waited, %zero : i64, i64)
  ^finished:
    llvm.return
  }

  llvm.func @team_repeat(%slots: !llvm.ptr, %members: i64, %own: !llvm.ptr, %argument: !llvm.ptr, %times: i64) attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    llvm.br ^again(%zero : i64)
  ^again(%round: i64):
    %is_more = llvm.icmp "slt" %round, %times : i64
    llvm.cond_br %is_more, ^call, ^finished
  ^call:
    llvm.call @team_once(%slots, %members, %own, %argument) : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> ()
    %next = llvm.add %round, %one : i64
    llvm.br ^again(%next : i64)
  ^finished:
    llvm.return
  }

  // Like team_repeat; before each call the sign of another number of A or B is flipped and another element of C is set to
  // NaN. Returns the number of calls after which this element was still NaN. `marks`: `ring` pairs of addresses (a power
  // of two, used cyclically): the highest byte of a number of A or B, the two highest bytes of an element of C.
  llvm.func @team_watch(%slots: !llvm.ptr, %members: i64, %own: !llvm.ptr, %argument: !llvm.ptr, %times: i64, %marks: !llvm.ptr, %ring: i64) -> i64 attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %pair_bytes = llvm.mlir.constant(16 : i64) : i64
    %sign = llvm.mlir.constant(-128 : i8) : i8
    %nan = llvm.mlir.constant(32767 : i16) : i16
    %mask = llvm.sub %ring, %one : i64
    llvm.br ^again(%zero, %zero : i64, i64)
  ^again(%round: i64, %stale: i64):
    %is_more = llvm.icmp "slt" %round, %times : i64
    llvm.cond_br %is_more, ^call, ^finished
  ^call:
    %pair = llvm.and %round, %mask : i64
    %offset = llvm.mul %pair, %pair_bytes : i64
    %flip_at = llvm.getelementptr %marks[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %mark_at = llvm.getelementptr %flip_at[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %flip = llvm.load %flip_at : !llvm.ptr -> !llvm.ptr
    %mark = llvm.load %mark_at : !llvm.ptr -> !llvm.ptr
    %was = llvm.load %flip : !llvm.ptr -> i8
    %flipped = llvm.xor %was, %sign : i8
    llvm.store %flipped, %flip : i8, !llvm.ptr
    llvm.store %nan, %mark {alignment = 1 : i64} : i16, !llvm.ptr
    llvm.call @team_once(%slots, %members, %own, %argument) : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> ()
    %found = llvm.load %mark {alignment = 1 : i64} : !llvm.ptr -> i16
    %now = llvm.load %flip : !llvm.ptr -> i8
    %restored = llvm.xor %now, %sign : i8
    llvm.store %restored, %flip : i8, !llvm.ptr
    %is_stale = llvm.icmp "eq" %found, %nan : i16
    %more = llvm.zext %is_stale : i1 to i64
    %sum = llvm.add %stale, %more : i64
    %next = llvm.add %round, %one : i64
    llvm.br ^again(%next, %sum : i64, i64)
  ^finished:
    llvm.return %stale : i64
  }
}
