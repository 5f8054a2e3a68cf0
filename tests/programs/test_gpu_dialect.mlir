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
// ----- PRINTS
%is_first = arith.cmpi eq, %tx, %c0 : index
scf.if %is_first {
  gpu.printf "block %lld: %f\0A", %bx, %v : index, f32
}
memref.store %v, %y[%bx, %tx] : memref<2x64xf32>
// ----- FRAGMENT
func.func @main(%a: KIND, %b: KIND) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %x = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {leadDimension = 16 : index}
      : KIND -> !gpu.mma_matrix<16x16xTYPE, "COp">
    %y = gpu.subgroup_mma_load_matrix %b[%c0, %c0] {leadDimension = 16 : index}
      : KIND -> !gpu.mma_matrix<16x16xTYPE, "COp">
    %z = gpu.subgroup_mma_elementwise NAME INPUTS -> !gpu.mma_matrix<16x16xTYPE, "COp">
    gpu.subgroup_mma_store_matrix %z, %a[%c0, %c0] {leadDimension = 16 : index}
      : !gpu.mma_matrix<16x16xTYPE, "COp">, KIND
    gpu.terminator
  }
  return
}
// ----- OF_A_VECTOR
%two = vector.broadcast %v : f32 to vector<2xf32>
%s = gpu.subgroup_reduce add %two : (vector<2xf32>) -> (vector<2xf32>)
%r = vector.extract %s[1] : f32 from vector<2xf32>
