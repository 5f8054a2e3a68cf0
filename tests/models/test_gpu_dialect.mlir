// ----- LAUNCHES_IN_A_LOOP
func.func @main(%x: memref<8x4xf32>, %y: memref<8x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
      %v = memref.load %x[%i, %tx] : memref<8x4xf32>
      memref.store %v, %y[%i, %tx] : memref<8x4xf32>
      gpu.terminator
    }
    scf.reduce
  }
  return
}
// ----- TWO_MODULES
module attributes {gpu.container_module} {
  gpu.module @m {
    func.func @more(%a: f32) -> f32 { %b = arith.addf %a, %a : f32 return %b : f32 }
    gpu.func @k(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      %r = func.call @more(%v) : (f32) -> f32
      memref.store %r, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  gpu.module @n {
    func.func @more(%a: f32) -> f32 { %b = arith.mulf %a, %a : f32 return %b : f32 }
    gpu.func @k(%y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %y[%i] : memref<64xf32>
      %r = func.call @more(%v) : (f32) -> f32
      memref.store %r, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {
    %c1 = arith.constant 1 : index %c64 = arith.constant 64 : index
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%x : memref<64xf32>, %y : memref<64xf32>)
    gpu.launch_func @n::@k blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%y : memref<64xf32>)
    return
  }
}
// ----- LOOPS
func.func @main(%x: memref<8x4xf32>, %y: memref<8x4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (HIGH, %c4) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<8x4xf32>
    memref.store %v, %y[%i, %j] : memref<8x4xf32>
    scf.reduce
  } {mapping = [
    #gpu.loop_dim_map<processor = FIRST, map = (d0) -> (d0), bound = (d0) -> (d0)>,
    #gpu.loop_dim_map<processor = SECOND, map = (d0) -> (d0), bound = (d0) -> (d0)>]}
  return
}
// ----- REDUCTIONS
%zero = arith.constant 0.0 : f32 %is_second = arith.cmpi eq, %bx, %c1 : index
%all = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %zero) -> (f32) {
  %own = arith.addf %v, %sum : f32
  %q = gpu.all_reduce maximumf %own uniform {} : (f32) -> (f32)
  scf.yield %q : f32
}
%r = scf.if %is_second -> (f32) {
  %q = gpu.all_reduce %all uniform {
  ^bb(%a: f32, %b: f32):
    %m = arith.maximumf %a, %b : f32
    gpu.yield %m : f32
  } : (f32) -> (f32)
  %n = gpu.all_reduce add %q uniform {} : (f32) -> (f32)
  scf.yield %n : f32
} else {
  scf.yield %all : f32
}
// ----- FRAGMENT
!array = memref<16x16xTYPE>
!matrix = !gpu.mma_matrix<16x16xTYPE, "COp">
func.func @main(%a: !array, %b: !array) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %x = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {leadDimension = 16 : index} : !array -> !matrix
    %y = gpu.subgroup_mma_load_matrix %b[%c0, %c0] {leadDimension = 16 : index} : !array -> !matrix
    %z = gpu.subgroup_mma_elementwise KIND INPUTS -> !matrix
    gpu.subgroup_mma_store_matrix %z, %a[%c0, %c0] {leadDimension = 16 : index} : !matrix, !array
    gpu.terminator
  }
  return
}
// ----- OF_A_VECTOR
%two = vector.broadcast %v : f32 to vector<2xf32>
%s = gpu.subgroup_reduce add %two : (vector<2xf32>) -> (vector<2xf32>)
%r = vector.extract %s[1] : f32 from vector<2xf32>
// ----- REVERSE
%r = arith.subi %c63, %tx : index
memref.store %v, %s[%tx] : memref<64xf32, SPACE>
gpu.barrier
%w = memref.load %s[%r] : memref<64xf32, SPACE>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
// ----- VIEWS
%block = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
%at = arith.constant 256 : index
%first = memref.view %block[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64xf32, #gpu.address_space<workgroup>>
%s = memref.view %block[%at][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64xf32, #gpu.address_space<workgroup>>
memref.store %v, %first[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
%r = arith.subi %c63, %tx : index
memref.store %v, %s[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
gpu.barrier
%w = memref.load %s[%r] : memref<64xf32, #gpu.address_space<workgroup>>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
// ----- SUM
%kept = memref.load %mine[%tx] : memref<64xf32, 3>
%sum = arith.addf %kept, %w : f32
memref.store %sum, %y[%bx, %tx] : memref<2x64xf32>
// ----- BESIDE_ATTRIBUTIONS
%s = memref.alloc() : memref<64xf32, 3> %r = arith.subi %c63, %tx : index
memref.store %v, %s[%tx] : memref<64xf32, 3>
gpu.barrier
%w = memref.load %s[%r] : memref<64xf32, 3>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
memref.store %v, %w0[%tx] : memref<64xf32, 3> memref.store %v, %p0[%c0] : memref<4xf32, 5>
%a = memref.load %w0[%tx] : memref<64xf32, 3> %b = memref.load %p0[%c0] : memref<4xf32, 5>
%h0 = memref.load %h[%c0] : memref<4xf32> %ab = arith.addf %a, %b : f32
%abh = arith.addf %ab, %h0 : f32 %all = arith.addf %abh, %w : f32 memref.store %all, %y[%bx, %tx] : memref<2x64xf32>
// ----- LOOPS_AND_BRANCHES
%r = arith.subi %c63, %tx : index
scf.for %i = %c0 to %c4 step %c1 {
  %s = memref.alloc() : memref<64xf32, 3>
  memref.store %v, %s[%tx] : memref<64xf32, 3>
  gpu.barrier
  %w = memref.load %s[%r] : memref<64xf32, 3>
  %is_last = arith.cmpi eq, %i, %c3 : index
  scf.if %is_last {
    %t = memref.alloc() : memref<64xf32, 3>
    memref.store %w, %t[%tx] : memref<64xf32, 3>
    gpu.barrier
    %u = memref.load %t[%r] : memref<64xf32, 3>
    %sum = arith.addf %w, %u : f32
    memref.store %sum, %y[%bx, %tx] : memref<2x64xf32>
  }
  gpu.barrier
}
// ----- TWO_BUFFERS
%r = arith.subi %c63, %tx : index
%zero = arith.constant 0.0 : f32
%all = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %zero) -> (f32) {
  %s = memref.alloc() : memref<64xf32, 3> %t = memref.alloc() : memref<64xf32, 3>
  memref.store %v, %s[%tx] : memref<64xf32, 3>
  gpu.barrier
  memref.store %sum, %t[%tx] : memref<64xf32, 3>
  gpu.barrier
  %a = memref.load %s[%r] : memref<64xf32, 3> %b = memref.load %t[%tx] : memref<64xf32, 3>
  gpu.barrier
  memref.dealloc %s : memref<64xf32, 3> memref.dealloc %t : memref<64xf32, 3>
  %next = arith.addf %a, %b : f32
  scf.yield %next : f32
}
memref.store %all, %y[%bx, %tx] : memref<2x64xf32>
// ----- RACE
%s = memref.alloc() : memref<64xf32, 3>
memref.store %v, %s[%tx] : memref<64xf32, 3>
%r = arith.subi %c63, %tx : index
%w = memref.load %s[%r] : memref<64xf32, 3>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
// ----- OUT_OF_BOUNDS
%far = arith.addi %tx, %c64 : index
%w = memref.load %x[%c1, %far] : memref<2x64xf32>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
// ----- TOKENS
func.func @main(%x: memref<2x64xi8>, %y: memref<2x64xi8>, %k: i8) {
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<2x64xi8>
  %t2 = gpu.memcpy async [%t1] %d, %x : memref<2x64xi8>, memref<2x64xi8>
  %t3 = gpu.memset async [%t2] %d, %k : memref<2x64xi8>, i8
  %t4 = gpu.memcpy async [%t3] %y, %d : memref<2x64xi8>, memref<2x64xi8>
  %t5 = gpu.dealloc async [%t4] %d : memref<2x64xi8>
  gpu.wait [%t5]
  return
}
// ----- OWN_IN_A_LOOP
%p = memref.KIND() : OWN %q = memref.KIND() : OWN
%k = arith.remui %tx, %c4 : index
scf.for %i = %c0 to %c4 step %c1 {
  %t = memref.KIND() : OWN
  memref.store %v, %t[%k] : OWN
  %z = memref.load %t[%k] : OWN
  %n = arith.index_cast %i : index to i32 %f = arith.sitofp %n : i32 to f32
  %zf = arith.mulf %z, %f : f32
  memref.store %zf, %p[%i] : OWN memref.store %z, %q[%i] : OWN
  gpu.barrier
}
%a = memref.load %p[%k] : OWN %b = memref.load %q[%k] : OWN
%w = arith.addf %a, %b : f32 STORED
// ----- COPYING
!array = memref<2x64xELEMENT>
!row = memref<1x64xf32, strided<[64, 1], offset: 64>>
!columns = memref<2x32xf32, strided<[64, 1], offset: 16>>
!any_columns = memref<2x?xf32, strided<[64, 1], offset: ?>>
!every_second = memref<2x32xf32, strided<[64, 2]>>
func.func @main(%x: !array, %y: !array, %at: index, %size: index) {
  %zero = arith.constant 0.0 : f32
  %d = gpu.alloc () : !array
  LINES
  gpu.dealloc %d : !array
  return
}
// ----- columns
gpu.memset %d, %zero : !array, f32
%a = memref.subview %x[0, 16] [2, 32] [1, 1] : !array to !columns
%b = memref.subview %d[0, 16] [2, 32] [1, 1] : !array to !columns
gpu.memcpy %b, %a : !columns, !columns
gpu.memcpy %y, %d : !array, !array
// ----- a_place_that_only_the_run_knows
gpu.memset %d, %zero : !array, f32
%a = memref.subview %x[0, %at] [2, %size] [1, 1] : !array to !any_columns
%b = memref.subview %d[0, %at] [2, %size] [1, 1] : !array to !any_columns
gpu.memcpy %b, %a : !any_columns, !any_columns
gpu.memcpy %y, %d : !array, !array
// ----- elements_apart_among_memory_of_the_device
%e = gpu.alloc () : !array
gpu.memset %d, %zero : !array, f32
%a = memref.subview %x[0, 0] [2, 32] [1, 2] : !array to !every_second
%b = memref.subview %e[0, 0] [2, 32] [1, 2] : !array to !every_second
gpu.memcpy %b, %a : !every_second, !every_second
%c = memref.subview %d[0, 0] [2, 32] [1, 2] : !array to !every_second
gpu.memcpy %c, %b : !every_second, !every_second
gpu.memcpy %y, %d : !array, !array
gpu.dealloc %e : !array
// ----- a_fill_of_a_part
gpu.memcpy %d, %x : !array, !array
%b = memref.subview %d[0, 16] [2, 32] [1, 1] : !array to !columns
gpu.memset %b, %zero : !columns, f32
gpu.memcpy %y, %d : !array, !array
// ----- the_last_row
%a = memref.subview %x[1, 0] [1, 64] [1, 1] : !array to !row
%b = memref.subview %d[1, 0] [1, 64] [1, 1] : !array to !row
%c = memref.subview %y[1, 0] [1, 64] [1, 1] : !array to !row
gpu.memcpy %b, %a : !row, !row
gpu.memcpy %c, %b : !row, !row
// ----- SHUFFLED
%d = arith.constant BY : i32
%w = arith.constant 32 : i32
%moved, %ok = gpu.shuffle MODE %v, %d, %w : TYPE
%r = arith.select %ok, %moved, %v : TYPE
