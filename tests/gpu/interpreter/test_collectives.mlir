// ----- REGION
%r = gpu.all_reduce %x {
^bb0(%one: f64, %other: f64):
  %p = arith.cmpf ogt, %one, %other : f64
  %larger = scf.if %p -> f64 { scf.yield %one : f64 } else { scf.yield %other : f64 }
  gpu.yield %larger : f64
} : (f64) -> f64
// ----- SOME_LANES
%c10 = arith.constant 10 : index
%p = arith.cmpi ult, %t, %c10 : index
%r = scf.if %p -> f64 {
  %s = gpu.subgroup_reduce add %x : (f64) -> f64
  scf.yield %s : f64
} else { scf.yield %x : f64 }
// ----- PLACE
%tx = gpu.thread_id x %ty = gpu.thread_id y %tz = gpu.thread_id z
%bx = gpu.block_id x %by = gpu.block_id y %bz = gpu.block_id z
%c2 = arith.constant 2 : index %c3 = arith.constant 3 : index
%c4 = arith.constant 4 : index %c5 = arith.constant 5 : index
%p0 = arith.muli %tz, %c4 : index %p1 = arith.addi %p0, %ty : index
%p2 = arith.muli %p1, %c5 : index %p = arith.addi %p2, %tx : index
%q0 = arith.muli %bz, %c3 : index %q1 = arith.addi %q0, %by : index
%q2 = arith.muli %q1, %c2 : index %q = arith.addi %q2, %bx : index
// ----- OVER_LANES
%b = gpu.block_id x
%t = gpu.thread_id x
%x = memref.load %0[%b, %t] : KIND
LINES
memref.store %r, %1[%b, %t] : KIND
// ----- VECTORS
%neg = arith.negf %x : f32
%v = vector.from_elements %x, %neg : vector<2xf32>
%w = gpu.subgroup_reduce add %v : (vector<2xf32>) -> vector<2xf32>
%r = vector.extract %w[1] : f32 from vector<2xf32>
// ----- SHUFFLE
%o = arith.constant OFFSET : i32
%w = arith.constant WIDTH : i32
%z = arith.constant ZERO : TYPE
%y, %ok = gpu.shuffle MODE %x, %o, %w : TYPE
%r = arith.select %ok, %y, %z : TYPE
// ----- PRINTS
%t = gpu.thread_id x
%b = gpu.block_id x
%i = arith.index_cast %t : index to i32
%f = arith.sitofp %i : i32 to f64
%c1 = arith.constant 1 : index
%p = arith.cmpi uge, %t, %c1 : index
scf.if %p { gpu.printf "%lld:%3d %.2f%%\0A", %b, %i, %f : index, i32, f64 }
// ----- TF32
%t = gpu.thread_id x %c0 = arith.constant 0 : index
%x = vector.load %0[%t, %c0, %c0] : memref<32x4x1xf32>, vector<4x1xf32>
%y = vector.load %1[%t, %c0, %c0] : memref<32x2x1xf32>, vector<2x1xf32>
%z = arith.constant dense<0.0> : vector<2x2xf32>
%d = nvgpu.mma.sync (%x, %y, %z) {mmaShape = [16, 8, 8], tf32Enabled}
  : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
vector.store %d, %2[%t, %c0, %c0] : memref<32x2x2xf32>, vector<2x2xf32>
// ----- ASYNC_COPY
%t = gpu.thread_id x %c0 = arith.constant 0 : index %c4 = arith.constant 4 : index
%c3 = arith.constant 3 : index
%s = memref.get_global @shared : memref<32x4xf32, 3>
%n = arith.remui %t, %c4 : index
%a = nvgpu.device_async_copy %0[%t, %c0], %s[%t, %c0], 4, %n
  : memref<32x4xf32> to memref<32x4xf32, 3>
%g = nvgpu.device_async_create_group %a
nvgpu.device_async_wait %g {numGroups = 0 : i32}
gpu.barrier
%x = vector.load %s[%t, %c0] : memref<32x4xf32, 3>, vector<4xf32>
vector.store %x, %1[%t, %c0] : memref<32x4xf32>, vector<4xf32>
// ----- SUBGROUP
%t = gpu.thread_id x %c0 = arith.constant 0 : index %c2 = arith.constant 2 : index
%c32 = arith.constant 32 : index %w = arith.divui %t, %c32 : index
%one = arith.constant 1.0 : f32 %three = arith.constant 3.0 : f32
%c1 = arith.constant 1 : index
%a = gpu.subgroup_mma_load_matrix %0[%w, %c0, %c2] {leadDimension = 20 : index}
  : memref<2x16x20xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
%b = gpu.subgroup_mma_load_matrix %1[%w, %c0, %c0] {leadDimension = 16 : index, transpose}
  : memref<2x16x16xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
%z = gpu.subgroup_mma_constant_matrix %one : !gpu.mma_matrix<16x16xf32, "COp">
%k = gpu.subgroup_mma_constant_matrix %three : !gpu.mma_matrix<16x16xf32, "COp">
%s = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %z) -> (!gpu.mma_matrix<16x16xf32, "COp">) {
%d = gpu.subgroup_mma_compute %a, %b, %acc : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
scf.yield %d : !gpu.mma_matrix<16x16xf32, "COp">
}
%e = gpu.subgroup_mma_elementwise mulf %s, %k : (!gpu.mma_matrix<16x16xf32, "COp">, !gpu.mma_matrix<16x16xf32, "COp">) -> !gpu.mma_matrix<16x16xf32, "COp">
gpu.subgroup_mma_store_matrix %e, %2[%w, %c0, %c1] {leadDimension = 24 : index}
  : !gpu.mma_matrix<16x16xf32, "COp">, memref<2x16x24xf32>
// ----- HALF
%t = gpu.thread_id x %c0 = arith.constant 0 : index %c16 = arith.constant 16 : index
%p = arith.cmpi ult, %t, %c16 : index %one = arith.constant 1.0 : f32
scf.if %p {
  %z = gpu.subgroup_mma_constant_matrix %one : !gpu.mma_matrix<16x16xf32, "COp">
  gpu.subgroup_mma_store_matrix %z, %0[%c0, %c0] {leadDimension = 16 : index}
    : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>
}
// ----- LDMATRIX
%t = gpu.thread_id x %c0 = arith.constant 0 : index
%s = memref.get_global @shared : memref<32x8xf16, 3>
%row = vector.load %0[%t, %c0] : memref<32x8xf16>, vector<8xf16>
vector.store %row, %s[%t, %c0] : memref<32x8xf16, 3>, vector<8xf16>
gpu.barrier
%x = nvgpu.ldmatrix %s[%t, %c0] {numTiles = TILES : i32, transpose = TRANSPOSED}
  : memref<32x8xf16, 3> -> vector<TILESx2xf16>
vector.store %x, %1[%t, %c0, %c0] : memref<32xTILESx2xf16>, vector<TILESx2xf16>
// ----- MMA_SYNC
%t = gpu.thread_id x
%c0 = arith.constant 0 : index
LOADS
%d = PRODUCT : (KINDS) -> KIND
vector.store %d, %3[%t, %c0, %c0] : MEMREF, KIND
