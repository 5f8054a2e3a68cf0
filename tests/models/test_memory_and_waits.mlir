// ----- host_arguments_next_to_device_memory_are_copied
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%d : memref<16xf32>, %b : memref<16xf32>, %d : memref<16xf32>)
gpu.memcpy %a, %d : memref<16xf32>, memref<16xf32>
gpu.dealloc %d : memref<16xf32>
// ----- the_host_loads_and_stores_what_the_device_holds
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%d : memref<16xf32>)
%x = memref.load %d[%c3] : memref<16xf32>
memref.store %x, %b[%c0] : memref<16xf32>
memref.store %one, %d[%c1] : memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%d : memref<16xf32>)
memref.copy %d, %a : memref<16xf32> to memref<16xf32>
gpu.dealloc %d : memref<16xf32>
// ----- what_the_device_holds_is_printed_and_returned
%d = gpu.alloc () : memref<16xf32>
memref.copy %a, %d : memref<16xf32> to memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%d : memref<16xf32>)
%u = memref.cast %d : memref<16xf32> to memref<*xf32>
call @printMemrefF32(%u) : (memref<*xf32>) -> ()
return %d : memref<16xf32>
// ----- shared_memory_stays_where_both_reach_it_next_to_copied_arguments
%s = gpu.alloc host_shared () : memref<16xf32>
memref.copy %a, %s : memref<16xf32> to memref<16xf32>
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%s : memref<16xf32>, %b : memref<16xf32>, %s : memref<16xf32>)
%x = memref.load %s[%c3] : memref<16xf32>
memref.store %x, %a[%c0] : memref<16xf32>
gpu.dealloc %s : memref<16xf32>
// ----- a_fill_of_host_memory_is_done
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
gpu.memset %b, %one : memref<16xf32>, f32
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%d : memref<16xf32>, %b : memref<16xf32>, %d : memref<16xf32>)
gpu.memcpy %a, %d : memref<16xf32>, memref<16xf32>
gpu.dealloc %d : memref<16xf32>
// ----- memory_of_a_stream_that_the_host_reads_is_copied
%s = "gpux.create_stream"() : () -> !gpux.StreamType
%d = "gpux.alloc"(%s) : (!gpux.StreamType) -> memref<16xf32>
"gpux.memcpy"(%s, %d, %a) : (!gpux.StreamType, memref<16xf32>, memref<16xf32>) -> ()
%x = memref.load %d[%c3] : memref<16xf32>
memref.store %x, %b[%c0] : memref<16xf32>
"gpux.dealloc"(%s, %d) : (!gpux.StreamType, memref<16xf32>) -> ()
"gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
// ----- a_program_that_copies_for_itself_stays_as_it_is
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%d : memref<16xf32>)
gpu.memcpy %b, %d : memref<16xf32>, memref<16xf32>
gpu.dealloc %d : memref<16xf32>
// ----- a_loop_over_host_and_device_memory
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
scf.for %i = %c0 to %c3 step %c1 {
  gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%d : memref<16xf32>, %b : memref<16xf32>, %d : memref<16xf32>)
  %x = memref.load %d[%i] : memref<16xf32>
  memref.store %x, %b[%i] : memref<16xf32>
}
gpu.memcpy %a, %d : memref<16xf32>, memref<16xf32>
gpu.dealloc %d : memref<16xf32>
// ----- memory_that_a_kernel_fills_is_returned
%r = memref.alloc() : memref<16xf32>
gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%a : memref<16xf32>, %r : memref<16xf32>)
return %r : memref<16xf32>
// ----- memory_that_is_neither_freed_nor_returned_is_freed
%t = memref.alloc() : memref<16xf32>
gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%a : memref<16xf32>, %t : memref<16xf32>)
%r = memref.alloc() : memref<16xf32>
gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%t : memref<16xf32>, %r : memref<16xf32>)
return %r : memref<16xf32>
// ----- what_the_author_frees_is_freed_once_next_to_what_he_leaves
%t = memref.alloc() : memref<16xf32>
%u = memref.alloc() : memref<16xf32>
gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%a : memref<16xf32>, %t : memref<16xf32>)
gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%t : memref<16xf32>, %u : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%u : memref<16xf32>)
memref.copy %u, %b : memref<16xf32> to memref<16xf32>
memref.dealloc %t : memref<16xf32>
// ----- shared_memory_is_returned_after_a_wait
%s = gpu.alloc host_shared () : memref<16xf32>
%r = gpu.alloc host_shared () : memref<16xf32>
%t0 = gpu.wait async
memref.copy %a, %s : memref<16xf32> to memref<16xf32>
%t1 = gpu.launch_func async [%t0] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%s : memref<16xf32>)
%t2 = gpu.launch_func async [%t1] @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%s : memref<16xf32>, %r : memref<16xf32>)
gpu.wait [%t2]
return %r : memref<16xf32>
// ----- memory_of_asynchronous_work_is_freed_after_the_wait
%t0 = gpu.wait async
%d, %t1 = gpu.alloc async [%t0] () : memref<16xf32>
%t2 = gpu.memcpy async [%t1] %d, %a : memref<16xf32>, memref<16xf32>
%t3 = gpu.launch_func async [%t2] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%d : memref<16xf32>)
%t4 = gpu.memcpy async [%t3] %b, %d : memref<16xf32>, memref<16xf32>
gpu.wait [%t4]
// ----- memory_of_either_branch_is_returned
%r = scf.if %flag -> (memref<16xf32>) {
  %x = memref.alloc() : memref<16xf32>
  gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%a : memref<16xf32>, %x : memref<16xf32>)
  scf.yield %x : memref<16xf32>
} else {
  %y = memref.alloc() : memref<16xf32>
  gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%b : memref<16xf32>, %y : memref<16xf32>)
  scf.yield %y : memref<16xf32>
}
return %r : memref<16xf32>
// ----- an_argument_or_own_memory_is_returned
%x = memref.alloc() : memref<16xf32>
gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%a : memref<16xf32>, %x : memref<16xf32>)
%r = arith.select %flag, %x, %b : memref<16xf32>
return %r : memref<16xf32>
// ----- the_same_memory_and_a_view_of_it_are_returned_once_each
%x = memref.alloc() : memref<16xf32>
gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%a : memref<16xf32>, %x : memref<16xf32>)
%v = memref.subview %x[8] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 8>>
return %x, %v, %a : memref<16xf32>, memref<8xf32, strided<[1], offset: 8>>, memref<16xf32>
// ----- memory_of_an_iteration_is_freed_in_it
scf.for %i = %c0 to %c3 step %c1 {
  %x = memref.alloc() : memref<16xf32>
  gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%a : memref<16xf32>, %x : memref<16xf32>)
  gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%x : memref<16xf32>, %b : memref<16xf32>, %b : memref<16xf32>)
}
// ----- shared_and_registered_memory_are_in_reach_of_both
%d = gpu.alloc host_shared () : memref<16xf32>
memref.copy %a, %d : memref<16xf32> to memref<16xf32>
%u = memref.cast %b : memref<16xf32> to memref<*xf32>
gpu.host_register %u : memref<*xf32>
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%d : memref<16xf32>, %b : memref<16xf32>, %b : memref<16xf32>)
gpu.host_unregister %u : memref<*xf32>
gpu.dealloc %d : memref<16xf32>
// ----- TWO_MATMULS
func.func @main(%a: memref<16x16xf32>, %b: memref<16x16xf32>, %c: memref<16x16xf32>, %d: memref<16x16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    linalg.matmul ins(%a, %a : memref<16x16xf32>, memref<16x16xf32>) outs(%c : memref<16x16xf32>)
    linalg.matmul ins(%b, %b : memref<16x16xf32>, memref<16x16xf32>) outs(%d : memref<16x16xf32>)
  }
  return
}
// ----- chains_that_the_author_carries_by_tokens_go_on_without_events
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
%e = gpu.alloc () : memref<16xf32>
gpu.memcpy %e, %b : memref<16xf32>, memref<16xf32>
%s = gpu.wait async
%t = gpu.wait async
%l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%d0 = %s, %e0 = %t) -> (!gpu.async.token, !gpu.async.token) {
  %d1 = gpu.launch_func async [%d0] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%d : memref<16xf32>)
  %e1 = gpu.launch_func async [%e0] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%e : memref<16xf32>)
  scf.yield %d1, %e1 : !gpu.async.token, !gpu.async.token
}
gpu.wait [%l#0, %l#1]
gpu.memcpy %a, %d : memref<16xf32>, memref<16xf32>
gpu.dealloc %d : memref<16xf32>
gpu.memcpy %b, %e : memref<16xf32>, memref<16xf32>
gpu.dealloc %e : memref<16xf32>
// ----- a_dependence_between_chains_is_one_event
scf.for %i = %c0 to %n step %c1 {
  gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%a : memref<16xf32>)
  gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%b : memref<16xf32>)
  gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%a : memref<16xf32>, %b : memref<16xf32>, %a : memref<16xf32>)
}
// ----- the_host_waits_in_a_loop_for_what_it_reads_alone
scf.for %i = %c0 to %n step %c1 {
  gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%a : memref<16xf32>)
  gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%b : memref<16xf32>)
  %x = memref.load %a[%c1] : memref<16xf32>
  memref.store %x, %a[%c3] : memref<16xf32>
}
// ----- a_wait_of_tokens_before_a_free_is_one_wait
%t0 = gpu.wait async
%d, %t1 = gpu.alloc async [%t0] () : memref<16xf32>
%t2 = gpu.memcpy async [%t1] %d, %a : memref<16xf32>, memref<16xf32>
%t3 = gpu.memcpy async [%t2] %b, %d : memref<16xf32>, memref<16xf32>
gpu.wait [%t3]
gpu.dealloc %d : memref<16xf32>
// ----- a_loop_carries_a_token
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
%t0 = gpu.wait async
%t = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %t0) -> (!gpu.async.token) {
  %u = gpu.launch_func async [%p] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%d : memref<16xf32>)
  %v = gpu.launch_func async [%u] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%d : memref<16xf32>)
  scf.yield %v : !gpu.async.token
}
%w = gpu.memcpy async [%t] %b, %d : memref<16xf32>, memref<16xf32>
gpu.wait [%w]
// ----- a_branch_hands_on_a_token
%t0 = gpu.wait async
%t = scf.if %flag -> (!gpu.async.token) {
  %u = gpu.launch_func async [%t0] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%a : memref<16xf32>)
  scf.yield %u : !gpu.async.token
} else {
  scf.yield %t0 : !gpu.async.token
}
%v = gpu.launch_func async [%t] @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%a : memref<16xf32>, %b : memref<16xf32>, %b : memref<16xf32>)
gpu.wait [%v]
// ----- regions_of_the_async_dialect
%t0, %f0 = async.execute -> !async.value<memref<16xf32>> {
  %d = gpu.alloc () : memref<16xf32>
  gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
  async.yield %d : memref<16xf32>
}
%t1, %f1 = async.execute [%t0] (%f0 as %x : !async.value<memref<16xf32>>) -> !async.value<memref<16xf32>> {
  gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%x : memref<16xf32>)
  async.yield %x : memref<16xf32>
}
%t2 = async.execute [%t1] {
  gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%b : memref<16xf32>)
  async.yield
}
async.await %t2 : !async.token
%y = async.await %f1 : !async.value<memref<16xf32>>
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%y : memref<16xf32>, %b : memref<16xf32>, %b : memref<16xf32>)
gpu.dealloc %y : memref<16xf32>
// ----- groups_of_the_async_dialect_are_refused_by_name
%g = async.create_group %c1 : !async.group
%t = async.execute {
  async.yield
}
%n = async.add_to_group %t, %g : !async.token
async.await_all %g
// ----- memory_of_an_iteration_joins_no_chains
scf.for %i = %c0 to %n step %c1 {
  %da = memref.alloc() : memref<16xf32>
  gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%a : memref<16xf32>, %da : memref<16xf32>)
  gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%da : memref<16xf32>, %a : memref<16xf32>, %a : memref<16xf32>)
  memref.dealloc %da : memref<16xf32>
  %db = memref.alloc() : memref<16xf32>
  gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%b : memref<16xf32>, %db : memref<16xf32>)
  gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%db : memref<16xf32>, %b : memref<16xf32>, %b : memref<16xf32>)
  memref.dealloc %db : memref<16xf32>
}
// ----- READ_OF_A_VIEW
%VIEW = memref.subview %a[0] [8] [2] : memref<16xf32> to memref<8xf32, strided<[2]>>
gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
    threads(%tx, %ty, %tz) in (%sx = %c3, %sy = %c1, %sz = %c1) {
  %x = memref.load %VIEW[%tx] : memref<8xf32, strided<[2]>>
  memref.store %x, %b[%tx] : memref<16xf32>
  gpu.terminator
}
// ----- OUT_OF_REACH
%d = gpu.alloc () : memref<16xf32>
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%d : memref<16xf32>)
ACCESS
gpu.dealloc %d : memref<16xf32>
// ----- FAULTS
// fault: host: found a load or store of byte 12 of d0 \(64 bytes\), which is device memory, allowed host memory, gpu.alloc host_shared
%x = memref.load %d[%c3] : memref<16xf32>
memref.store %x, %b[%c0] : memref<16xf32>

// fault: host: found a load or store of byte 4 of d0 \(64 bytes\), which is device memory, allowed host memory, gpu.alloc host_shared
memref.store %one, %d[%c1] : memref<16xf32>

// fault: host: found a load or store of byte 0 of d0 \(64 bytes\), which is device memory, allowed host memory, gpu.alloc host_shared
memref.copy %d, %b : memref<16xf32> to memref<16xf32>

// fault: host: found a print of byte 0 of d0 \(64 bytes\), which is device memory, allowed host memory, gpu.alloc host_shared
%u = memref.cast %d : memref<16xf32> to memref<*xf32>
call @printMemrefF32(%u) : (memref<*xf32>) -> ()

// fault: kernel add: .*found global address .*; host memory that is not registered is in parameter 1
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%d : memref<16xf32>, %b : memref<16xf32>, %d : memref<16xf32>)
// ----- FREED_AFTER_A_WAIT
module attributes {gpu.container_module} {
  func.func @main(%s: !gpux.StreamType, %a: memref<16xf32>) {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %d = gpux.alloc (%s) : memref<16xf32>
    gpux.memcpy %s, %d, %a : memref<16xf32>, memref<16xf32>
    gpux.launch_func %s, @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%d : memref<16xf32>)
    gpux.memcpy %s, %a, %d : memref<16xf32>, memref<16xf32>
    gpux.wait %s
    FREE
    return
  }
KERNELS}
// ----- WITHOUT_ONE_OWNER
// refused: memref.alloc at .*: found memory that leaves scf.for and that nobody frees, allowed memory that
%r = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %b) -> (memref<16xf32>) {
  %x = memref.alloc() : memref<16xf32>
  gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
    args(%p : memref<16xf32>, %x : memref<16xf32>)
  scf.yield %x : memref<16xf32>
}
memref.copy %r, %a : memref<16xf32> to memref<16xf32>

// refused: gpu.alloc at .*: found shared memory that control flow exchanges for other memory, allowed one
%s = gpu.alloc host_shared () : memref<16xf32>
%r = arith.select %flag, %s, %a : memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%r : memref<16xf32>)
gpu.dealloc %s : memref<16xf32>
