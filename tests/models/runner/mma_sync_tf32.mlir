// One mma.sync of a warp on f32 numbers rounded to tf32.
// CHECK: data =
// CHECK-NEXT: {{\[\[}}23,   31,   23,   19,   23,   31,   23,   19],
// CHECK-NEXT: [20,   18,   20,   26,   20,   18,   20,   26],
// CHECK-NEXT: [32,   25,   22,   23,   32,   25,   22,   23],
// CHECK-NEXT: [19,   22,   29,   20,   19,   22,   29,   20],
// CHECK-NEXT: [26,   24,   26,   32,   26,   24,   26,   32],
// CHECK-NEXT: [23,   31,   23,   19,   23,   31,   23,   19],
// CHECK-NEXT: [20,   18,   20,   26,   20,   18,   20,   26],
// CHECK-NEXT: [32,   25,   22,   23,   32,   25,   22,   23],
// CHECK-NEXT: [19,   22,   29,   20,   19,   22,   29,   20],
// CHECK-NEXT: [26,   24,   26,   32,   26,   24,   26,   32],
// CHECK-NEXT: [23,   31,   23,   19,   23,   31,   23,   19],
// CHECK-NEXT: [20,   18,   20,   26,   20,   18,   20,   26],
// CHECK-NEXT: [32,   25,   22,   23,   32,   25,   22,   23],
// CHECK-NEXT: [19,   22,   29,   20,   19,   22,   29,   20],
// CHECK-NEXT: [26,   24,   26,   32,   26,   24,   26,   32],
// CHECK-NEXT: [23,   31,   23,   19,   23,   31,   23,   19]]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<16x8xf32>
  %b = memref.alloc() : memref<8x8xf32>
  %c = memref.alloc() : memref<16x8xf32>
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %ap = arith.constant 1 : index
      %aq = arith.constant 2 : index
      %am = arith.constant 5 : index
      %ai = arith.muli %i, %ap : index
      %aj = arith.muli %j, %aq : index
      %as = arith.addi %ai, %aj : index
      %ar = arith.remui %as, %am : index
      %an = arith.index_cast %ar : index to i32
      %av = arith.sitofp %an : i32 to f32
      memref.store %av, %a[%i, %j] : memref<16x8xf32>
    }
  }
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %bp = arith.constant 3 : index
      %bq = arith.constant 1 : index
      %bm = arith.constant 4 : index
      %bi = arith.muli %i, %bp : index
      %bj = arith.muli %j, %bq : index
      %bs = arith.addi %bi, %bj : index
      %br = arith.remui %bs, %bm : index
      %bn = arith.index_cast %br : index to i32
      %bv = arith.sitofp %bn : i32 to f32
      memref.store %bv, %b[%i, %j] : memref<8x8xf32>
    }
  }
  linalg.fill ins(%zero : f32) outs(%c : memref<16x8xf32>)
  %a_any = memref.cast %a : memref<16x8xf32> to memref<*xf32>
  gpu.host_register %a_any : memref<*xf32>
  %b_any = memref.cast %b : memref<8x8xf32> to memref<*xf32>
  gpu.host_register %b_any : memref<*xf32>
  %c_any = memref.cast %c : memref<16x8xf32> to memref<*xf32>
  gpu.host_register %c_any : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %two = arith.constant 2 : index
    %four = arith.constant 4 : index
    %eight = arith.constant 8 : index
    %group = arith.divui %tx, %four : index
    %lane = arith.remui %tx, %four : index
    %pair = arith.muli %lane, %two : index
    %below = arith.addi %group, %eight : index
    %right = arith.addi %lane, %four : index
    %a0 = memref.load %a[%group, %lane] : memref<16x8xf32>
    %a1 = memref.load %a[%below, %lane] : memref<16x8xf32>
    %a2 = memref.load %a[%group, %right] : memref<16x8xf32>
    %a3 = memref.load %a[%below, %right] : memref<16x8xf32>
    %fa = vector.from_elements %a0, %a1, %a2, %a3 : vector<4x1xf32>
    %b0 = memref.load %b[%lane, %group] : memref<8x8xf32>
    %b1 = memref.load %b[%right, %group] : memref<8x8xf32>
    %fb = vector.from_elements %b0, %b1 : vector<2x1xf32>
    %fc = arith.constant dense<0.0> : vector<2x2xf32>
    %fd = nvgpu.mma.sync (%fa, %fb, %fc) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
    %d0 = vector.extract %fd[0] : vector<2xf32> from vector<2x2xf32>
    %d1 = vector.extract %fd[1] : vector<2xf32> from vector<2x2xf32>
    vector.store %d0, %c[%group, %pair] : memref<16x8xf32>, vector<2xf32>
    vector.store %d1, %c[%below, %pair] : memref<16x8xf32>, vector<2xf32>
    gpu.terminator
  }
  call @printMemrefF32(%c_any) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
