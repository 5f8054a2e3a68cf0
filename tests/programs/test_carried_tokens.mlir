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
