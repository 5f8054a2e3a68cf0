// ----- PRODUCT
module {
  func.func @f(%a: vector<4x1xf32>, %b: vector<2x1xf32>, %c: vector<2x2xf32>) -> vector<2x2xf32> {
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
    return %d : vector<2x2xf32>
  }
}
// ----- CHAINS
module {
  func.func @f(%a: memref<3xvector<4x1xf32>>, %b: vector<2x1xf32>, %start: vector<2x2xf32>) -> (vector<2x2xf32>, vector<2x2xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %sums:2 = scf.for %k = %c0 to %c8 step %c1 iter_args(%x = %start, %y = %start) -> (vector<2x2xf32>, vector<2x2xf32>) {
      %a0 = memref.load %a[%c0] : memref<3xvector<4x1xf32>>
      %x0 = nvgpu.mma.sync(%a0, %b, %x) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %y0 = nvgpu.mma.sync(%a0, %b, %y) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %a1 = memref.load %a[%c1] : memref<3xvector<4x1xf32>>
      %x1 = nvgpu.mma.sync(%a1, %b, %x0) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %y1 = nvgpu.mma.sync(%a1, %b, %y0) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %a2 = memref.load %a[%c2] : memref<3xvector<4x1xf32>>
      %x2 = nvgpu.mma.sync(%a2, %b, %x1) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %y2 = nvgpu.mma.sync(%a2, %b, %y1) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      scf.yield %x2, %y2 : vector<2x2xf32>, vector<2x2xf32>
    }
    return %sums#0, %sums#1 : vector<2x2xf32>, vector<2x2xf32>
  }
}
