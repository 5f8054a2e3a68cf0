// ----- LAUNCH
module {
  func.func @f(%parts: {parts} {tuner.buffer = "parts"}, %zeroed: memref<{words}xi32> {tuner.buffer = "zeroed"},
      %other: memref<8x64xf32>, %c: memref<8x64xf32>, %i: index, %j: index, %flag: i1, %sums: vector<2xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c128 = arith.constant 128 : index
    gpu.launch blocks(%x, %y, %z) in (%gx = {blocks}, %gy = %c2, %gz = %c3) threads(%a, %b, %d) in (%bx = %c128, %by = %c1, %bz = %c1) {
      {stores}
      gpu.terminator
    }
    return
  }
}
