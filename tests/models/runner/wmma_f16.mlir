// All in f16.
// CHECK: data =
// CHECK-NEXT: {{\[\[}}43,   49,   43,   45,   43,   49,   43,   45,   43,   49,   43,   45,   43,   49,   43,   45],
// CHECK-NEXT: [52,   43,   42,   49,   52,   43,   42,   49,   52,   43,   42,   49,   52,   43,   42,   49],
// CHECK-NEXT: [51,   47,   51,   43,   51,   47,   51,   43,   51,   47,   51,   43,   51,   47,   51,   43],
// CHECK-NEXT: [45,   46,   55,   52,   45,   46,   55,   52,   45,   46,   55,   52,   45,   46,   55,   52],
// CHECK-NEXT: [49,   55,   49,   51,   49,   55,   49,   51,   49,   55,   49,   51,   49,   55,   49,   51],
// CHECK-NEXT: [43,   49,   43,   45,   43,   49,   43,   45,   43,   49,   43,   45,   43,   49,   43,   45],
// CHECK-NEXT: [52,   43,   42,   49,   52,   43,   42,   49,   52,   43,   42,   49,   52,   43,   42,   49],
// CHECK-NEXT: [51,   47,   51,   43,   51,   47,   51,   43,   51,   47,   51,   43,   51,   47,   51,   43],
// CHECK-NEXT: [45,   46,   55,   52,   45,   46,   55,   52,   45,   46,   55,   52,   45,   46,   55,   52],
// CHECK-NEXT: [49,   55,   49,   51,   49,   55,   49,   51,   49,   55,   49,   51,   49,   55,   49,   51],
// CHECK-NEXT: [43,   49,   43,   45,   43,   49,   43,   45,   43,   49,   43,   45,   43,   49,   43,   45],
// CHECK-NEXT: [52,   43,   42,   49,   52,   43,   42,   49,   52,   43,   42,   49,   52,   43,   42,   49],
// CHECK-NEXT: [51,   47,   51,   43,   51,   47,   51,   43,   51,   47,   51,   43,   51,   47,   51,   43],
// CHECK-NEXT: [45,   46,   55,   52,   45,   46,   55,   52,   45,   46,   55,   52,   45,   46,   55,   52],
// CHECK-NEXT: [49,   55,   49,   51,   49,   55,   49,   51,   49,   55,   49,   51,   49,   55,   49,   51],
// CHECK-NEXT: [43,   49,   43,   45,   43,   49,   43,   45,   43,   49,   43,   45,   43,   49,   43,   45]]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f16
  %a = memref.alloc() : memref<16x16xf16>
  %b = memref.alloc() : memref<16x16xf16>
  %c = memref.alloc() : memref<16x16xf16>
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c16 step %c1 {
      %ap = arith.constant 1 : index
      %aq = arith.constant 2 : index
      %am = arith.constant 5 : index
      %ai = arith.muli %i, %ap : index
      %aj = arith.muli %j, %aq : index
      %as = arith.addi %ai, %aj : index
      %ar = arith.remui %as, %am : index
      %an = arith.index_cast %ar : index to i32
      %av = arith.sitofp %an : i32 to f16
      memref.store %av, %a[%i, %j] : memref<16x16xf16>
    }
  }
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c16 step %c1 {
      %bp = arith.constant 3 : index
      %bq = arith.constant 1 : index
      %bm = arith.constant 4 : index
      %bi = arith.muli %i, %bp : index
      %bj = arith.muli %j, %bq : index
      %bs = arith.addi %bi, %bj : index
      %br = arith.remui %bs, %bm : index
      %bn = arith.index_cast %br : index to i32
      %bv = arith.sitofp %bn : i32 to f16
      memref.store %bv, %b[%i, %j] : memref<16x16xf16>
    }
  }
  linalg.fill ins(%zero : f16) outs(%c : memref<16x16xf16>)
  %a_any = memref.cast %a : memref<16x16xf16> to memref<*xf16>
  gpu.host_register %a_any : memref<*xf16>
  %b_any = memref.cast %b : memref<16x16xf16> to memref<*xf16>
  gpu.host_register %b_any : memref<*xf16>
  %c_any = memref.cast %c : memref<16x16xf16> to memref<*xf16>
  gpu.host_register %c_any : memref<*xf16>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %fa = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
    %fb = gpu.subgroup_mma_load_matrix %b[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
    %fc = gpu.subgroup_mma_load_matrix %c[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "COp">
    %fd = gpu.subgroup_mma_compute %fa, %fb, %fc : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf16, "COp">
    gpu.subgroup_mma_store_matrix %fd, %c[%c0, %c0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf16, "COp">, memref<16x16xf16>
    gpu.terminator
  }
  call @printMemrefF16(%c_any) : (memref<*xf16>) -> ()
  return
}
func.func private @printMemrefF16(memref<*xf16>)
