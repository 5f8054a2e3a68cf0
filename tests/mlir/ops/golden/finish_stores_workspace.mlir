module {
  func.func @f(%arg0: memref<3x64x64xf32> {tuner.bounds = array<i64: 3, 64, 64>}, %arg1: memref<64xf16>, %arg2: memref<64xf32>, %arg3: index, %arg4: index, %arg5: vector<4xf32>) {
    %block_id_z = gpu.block_id z
    vector.store %arg5, %arg0[%block_id_z, %arg3, %arg4] : memref<3x64x64xf32>, vector<4xf32>
    return
  }
}
