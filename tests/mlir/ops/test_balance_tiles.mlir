// ----- LAUNCH
module {
  func.func @f(%c: memref<3x64xf32>, %i: index, %x: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = {columns}, %gy = %c1, %gz = {depth}) threads(%a, %b, %d) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %block = gpu.block_id x
      scf.for %k = %c0 to {upper} step %c8 {
        %left = arith.cmpi slt, %k, %c48 : index
        scf.if %left {
          memref.store %x, %c[%block, %k] : memref<3x64xf32>
        }
      }
      gpu.terminator
    }
    return
  }
}
