// ----- LAUNCH
module {
  func.func @f(%a: memref<{a}> {tuner.buffer = "a"{bounds_a}}, %b: memref<32x64xf32> {tuner.buffer = "b"},
      %other: memref<64x64xf32>, %c: memref<64x64xf32>, %i: index, %j: index, %flag: i1, %sums: vector<2xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    gpu.launch blocks(%x, %y, %z) in (%gx = %c2, %gy = %c2, %gz = %c2) threads(%s, %t, %u) in (%bx = %c32, %by = %c1, %bz = %c1) {
      {stores}
      gpu.terminator
    }
    return
  }
}
