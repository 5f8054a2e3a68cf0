// ----- OWN_MEMORY
module attributes {gpu.container_module} {
gpu.module @m { gpu.func @k(%a: memref<4xf32>) workgroup(%s : memref<4xf32, 3>) kernel {
  %t = gpu.thread_id x
  %x = memref.load %a[%t] : memref<4xf32>
  memref.store %x, %s[%t] : memref<4xf32, 3>
  gpu.barrier
  %c3 = arith.constant 3 : index
  %o = arith.subi %c3, %t : index
  %y = memref.load %s[%o] : memref<4xf32, 3>
  memref.store %y, %a[%t] : memref<4xf32>
  gpu.return } }
func.func @f(%a: memref<4xf32>) {
  %c1 = arith.constant 1 : index %c4 = arith.constant 4 : index
  gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%a : memref<4xf32>)
  return
} }
// ----- TOKENS
func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
  %two = arith.constant 2.0 : f32
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<4xf32>
  %t2 = gpu.memset async [%t1] %d, %two : memref<4xf32>, f32
  %t3 = gpu.memcpy async [%t2] %b, %d : memref<4xf32>, memref<4xf32>
  %t4 = gpu.memcpy async [%t3] %d, %a : memref<4xf32>, memref<4xf32>
  %t5 = gpu.dealloc async [%t4] %d : memref<4xf32>
  gpu.wait [%t5]
  return
}
// ----- REVERSE
%x = memref.load %a[%bx, %tx] : memref<2x64xf32>
memref.store %x, %m[%tx] : memref<64xf32, 3>
gpu.barrier
%c63 = arith.constant 63 : index
%r = arith.subi %c63, %tx : index
%y = memref.load %m[%r] : memref<64xf32, 3>
memref.store %y, %a[%bx, %tx] : memref<2x64xf32>
// ----- READS
%x = memref.load %a[%bx, %tx] : memref<2x64xf32>
%y = gpu.all_reduce add %x {} : (f32) -> (f32)
memref.store %y, %b[%bx] : memref<2xf32>
// ----- REPORTED_SIZE
%m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
%v = memref.view %m[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64xf32, #gpu.address_space<workgroup>>
%x = memref.load %a[%bx, %tx] : memref<2x64xf32>
memref.store %x, %v[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
// ----- SIZES
%n = gpu.grid_dim y
%m = gpu.block_dim x
%g = gpu.global_id x
%s = arith.muli %n, %m : index
%t = arith.addi %s, %g : index
%i = arith.index_cast %t : index to i32
%v = arith.sitofp %i : i32 to f32
memref.store %v, %a[%bx, %by, %tx, %tz] : memref<2x3x5x2xf32>
// ----- INDEPENDENT
%x = memref.load %a[%bx, %tx] : memref<2x64xf32>
%y = arith.addf %x, %x : f32
memref.store %y, %a[%bx, %tx] : memref<2x64xf32>
// ----- ONCE
%x = memref.load %a[%bx, %by, %tx, %tz] : memref<2x3x5x2xf32>
%y = arith.addf %x, %one : f32
memref.store %y, %a[%bx, %by, %tx, %tz] : memref<2x3x5x2xf32>
// ----- VECTOR
gpu.barrier
%x = vector.extract %v[1, 2] : f32 from vector<2x3xf32>
memref.store %x, %a[%bx, %tx] : memref<2x64xf32>
