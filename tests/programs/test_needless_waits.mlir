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
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%a : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%b : memref<16xf32>)
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%a : memref<16xf32>, %b : memref<16xf32>, %a : memref<16xf32>)
// ----- the_host_waits_in_a_loop_for_what_it_reads_alone
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%a : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%b : memref<16xf32>)
%x = memref.load %a[%c1] : memref<16xf32>
memref.store %x, %a[%c3] : memref<16xf32>
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
// ----- FREED_AFTER_A_WAIT
module attributes {gpu.container_module} {
      func.func @main(%s: STREAM, %a: BUFFER) {
        %c1 = arith.constant 1 : index
        %c16 = arith.constant 16 : index
        %d = gpux.alloc (%s) : BUFFER
        gpux.memcpy %s, %d, %a : BUFFER, BUFFER
        gpux.launch_func %s, @m::@inc ONE_BLOCK args(%d : BUFFER)
        gpux.memcpy %s, %a, %d : BUFFER, BUFFER
        gpux.wait %s
        FREE
        return
      }
    KERNELS}
