// One mma.sync of a warp all in f16.
// CHECK: data =
// CHECK-NEXT: {{\[\[}}43,   49,   43,   45,   43,   49,   43,   45],
// CHECK-NEXT: [52,   43,   42,   49,   52,   43,   42,   49],
// CHECK-NEXT: [51,   47,   51,   43,   51,   47,   51,   43],
// CHECK-NEXT: [45,   46,   55,   52,   45,   46,   55,   52],
// CHECK-NEXT: [49,   55,   49,   51,   49,   55,   49,   51],
// CHECK-NEXT: [43,   49,   43,   45,   43,   49,   43,   45],
// CHECK-NEXT: [52,   43,   42,   49,   52,   43,   42,   49],
// CHECK-NEXT: [51,   47,   51,   43,   51,   47,   51,   43],
// CHECK-NEXT: [45,   46,   55,   52,   45,   46,   55,   52],
// CHECK-NEXT: [49,   55,   49,   51,   49,   55,   49,   51],
// CHECK-NEXT: [43,   49,   43,   45,   43,   49,   43,   45],
// CHECK-NEXT: [52,   43,   42,   49,   52,   43,   42,   49],
// CHECK-NEXT: [51,   47,   51,   43,   51,   47,   51,   43],
// CHECK-NEXT: [45,   46,   55,   52,   45,   46,   55,   52],
// CHECK-NEXT: [49,   55,   49,   51,   49,   55,   49,   51],
// CHECK-NEXT: [43,   49,   43,   45,   43,   49,   43,   45]]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f16
  %a = memref.alloc() : memref<16x16xf16>
  %b = memref.alloc() : memref<16x8xf16>
  %c = memref.alloc() : memref<16x8xf16>
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
    scf.for %j = %c0 to %c8 step %c1 {
      %bp = arith.constant 3 : index
      %bq = arith.constant 1 : index
      %bm = arith.constant 4 : index
      %bi = arith.muli %i, %bp : index
      %bj = arith.muli %j, %bq : index
      %bs = arith.addi %bi, %bj : index
      %br = arith.remui %bs, %bm : index
      %bn = arith.index_cast %br : index to i32
      %bv = arith.sitofp %bn : i32 to f16
      memref.store %bv, %b[%i, %j] : memref<16x8xf16>
    }
  }
  linalg.fill ins(%zero : f16) outs(%c : memref<16x8xf16>)
  %a_any = memref.cast %a : memref<16x16xf16> to memref<*xf16>
  gpu.host_register %a_any : memref<*xf16>
  %b_any = memref.cast %b : memref<16x8xf16> to memref<*xf16>
  gpu.host_register %b_any : memref<*xf16>
  %c_any = memref.cast %c : memref<16x8xf16> to memref<*xf16>
  gpu.host_register %c_any : memref<*xf16>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %two = arith.constant 2 : index
    %four = arith.constant 4 : index
    %eight = arith.constant 8 : index
    %nine = arith.constant 9 : index
    %group = arith.divui %tx, %four : index
    %lane = arith.remui %tx, %four : index
    %pair = arith.muli %lane, %two : index
    %below = arith.addi %group, %eight : index
    %right = arith.addi %pair, %eight : index
    %pair1 = arith.addi %pair, %c1 : index
    %right1 = arith.addi %pair, %nine : index
    %a0 = vector.load %a[%group, %pair] : memref<16x16xf16>, vector<2xf16>
    %a1 = vector.load %a[%below, %pair] : memref<16x16xf16>, vector<2xf16>
    %a2 = vector.load %a[%group, %right] : memref<16x16xf16>, vector<2xf16>
    %a3 = vector.load %a[%below, %right] : memref<16x16xf16>, vector<2xf16>
    %none = arith.constant dense<0.0> : vector<4x2xf16>
    %fa0 = vector.insert %a0, %none[0] : vector<2xf16> into vector<4x2xf16>
    %fa1 = vector.insert %a1, %fa0[1] : vector<2xf16> into vector<4x2xf16>
    %fa2 = vector.insert %a2, %fa1[2] : vector<2xf16> into vector<4x2xf16>
    %fa = vector.insert %a3, %fa2[3] : vector<2xf16> into vector<4x2xf16>
    %b0 = memref.load %b[%pair, %group] : memref<16x8xf16>
    %b1 = memref.load %b[%pair1, %group] : memref<16x8xf16>
    %b2 = memref.load %b[%right, %group] : memref<16x8xf16>
    %b3 = memref.load %b[%right1, %group] : memref<16x8xf16>
    %fb = vector.from_elements %b0, %b1, %b2, %b3 : vector<2x2xf16>
    %fc = arith.constant dense<0.0> : vector<2x2xf16>
    %fd = nvgpu.mma.sync (%fa, %fb, %fc) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>
    %d0 = vector.extract %fd[0] : vector<2xf16> from vector<2x2xf16>
    %d1 = vector.extract %fd[1] : vector<2xf16> from vector<2x2xf16>
    vector.store %d0, %c[%group, %pair] : memref<16x8xf16>, vector<2xf16>
    vector.store %d1, %c[%below, %pair] : memref<16x8xf16>, vector<2xf16>
    gpu.terminator
  }
  call @printMemrefF16(%c_any) : (memref<*xf16>) -> ()
  return
}
func.func private @printMemrefF16(memref<*xf16>)
