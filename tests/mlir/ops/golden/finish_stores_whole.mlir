module {
  func.func @f(%arg0: memref<64x64xf32, strided<[64, 1]>> {tuner.bounds = array<i64: 64, 64>}, %arg1: memref<64xf16>, %arg2: memref<64xf32>, %arg3: index, %arg4: index, %arg5: vector<4xf32>) {
    vector.store %arg5, %arg0[%arg3, %arg4] : memref<64x64xf32, strided<[64, 1]>>, vector<4xf32>
    return
  }
}
