// ----- KERNEL
func.func @main(%x: memref<64xTYPE>, %y: memref<64xTYPE>, %flags: memref<64xi32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1)
      threads(%t, %u, %v) in (%ta = %c64, %tb = %c1, %tc = %c1) {
    %p = memref.load %x[%t] : memref<64xTYPE>
    BODY
    %flag = arith.extui %ok : i1 to i32
    memref.store %flag, %flags[%t] : memref<64xi32>
    memref.store %s, %y[%t] : memref<64xTYPE>
    gpu.terminator
  }
  return
}
// ----- ROTATED
%q, %ok = gpu.rotate %p, 5, 16 : TYPE
%s = arith.select %ok, %q, %p : TYPE
// ----- BROADCAST
%lane = arith.constant 5 : i32
%ok = arith.constant true
%s = gpu.subgroup_broadcast %p, specific_lane %lane : TYPE
// ----- FIRST
%size = gpu.subgroup_size : index
%ok = arith.cmpi ult, %t, %size : index
%s = gpu.subgroup_broadcast %p, first_active_lane : TYPE
// ----- IN_A_BRANCH
%ok = arith.cmpi ult, %t, %c1 : index
%s = scf.if %ok -> TYPE {
  %r = gpu.subgroup_broadcast %p, first_active_lane : TYPE
  scf.yield %r : TYPE
} else {
  scf.yield %p : TYPE
}
// ----- MATH
func.func @main(%x: memref<64xf32>, %n: memref<64xi32>, %y: memref<64x4xf32>, %m: memref<64x4xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant -2.0 : f32
  %high = arith.constant 3.5 : f32
  %seven = arith.constant 7 : i32
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    %f = memref.load %x[%i] : memref<64xf32>
    %k = memref.load %n[%i] : memref<64xi32>
    %clamped = math.clampf %f to [%low, %high] : f32
    %sine, %cosine = math.sincos %f : f32
    %is_normal = math.isnormal %f : f32
    %normal = arith.uitofp %is_normal : i1 to f32
    memref.store %clamped, %y[%i, %c0] : memref<64x4xf32>
    memref.store %sine, %y[%i, %c1] : memref<64x4xf32>
    memref.store %cosine, %y[%i, %c2] : memref<64x4xf32>
    memref.store %normal, %y[%i, %c3] : memref<64x4xf32>
    %exponent = arith.subi %k, %seven : i32
    %power = math.ipowi %k, %exponent : i32
    %leading = math.ctlz %k : i32
    %trailing = math.cttz %k : i32
    %ones = math.ctpop %k : i32
    memref.store %power, %m[%i, %c0] : memref<64x4xi32>
    memref.store %leading, %m[%i, %c1] : memref<64x4xi32>
    memref.store %trailing, %m[%i, %c2] : memref<64x4xi32>
    memref.store %ones, %m[%i, %c3] : memref<64x4xi32>
  }
  return
}
// ----- CLAMPED
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %low = arith.constant -0.5 : f32
  %high = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%f: f32, %o: f32):
    %c = math.clampf %f to [%low, %high] : f32
    linalg.yield %c : f32
  } -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
