module {
  func.func @f(%arg0: memref<16x64xf16>, %arg1: memref<2x16x32xf16, #gpu.address_space<workgroup>>, %arg2: memref<2x16x8xf16, #gpu.address_space<workgroup>>, %arg3: index, %arg4: vector<2x2xf32>, %arg5: !nvgpu.device.async.token) -> vector<2x2xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    nvgpu.device_async_wait %arg5 {numGroups = 0 : i32}
    gpu.barrier
    %0 = nvgpu.ldmatrix %arg1[%c0, %arg3, %c0] {numTiles = 4 : i32, transpose = false} : memref<2x16x32xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
    %1 = nvgpu.ldmatrix %arg2[%c0, %arg3, %c0] {numTiles = 2 : i32, transpose = false} : memref<2x16x8xf16, #gpu.address_space<workgroup>> -> vector<2x2xf16>
    %2:5 = scf.for %arg6 = %c0 to %c64 step %c16 iter_args(%arg7 = %arg4, %arg8 = %arg5, %arg9 = %c0, %arg10 = %0, %arg11 = %1) -> (vector<2x2xf32>, !nvgpu.device.async.token, index, vector<4x2xf16>, vector<2x2xf16>) {
      %3 = nvgpu.ldmatrix %arg1[%arg9, %arg3, %c16] {numTiles = 4 : i32, transpose = false} : memref<2x16x32xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %4 = nvgpu.ldmatrix %arg2[%arg9, %arg3, %c0] {numTiles = 2 : i32, transpose = false} : memref<2x16x8xf16, #gpu.address_space<workgroup>> -> vector<2x2xf16>
      %5 = arith.subi %c1, %arg9 : index
      %6 = nvgpu.device_async_copy %arg0[%arg3, %arg6], %arg1[%5, %arg3, %c0], 8 : memref<16x64xf16> to memref<2x16x32xf16, #gpu.address_space<workgroup>>
      %7 = nvgpu.device_async_create_group %6
      %8 = nvgpu.mma.sync(%arg10, %arg11, %arg7) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      %9 = arith.addi %arg6, %c16 : index
      nvgpu.device_async_wait %7 {numGroups = 0 : i32}
      gpu.barrier
      %10 = nvgpu.ldmatrix %arg1[%5, %arg3, %c0] {numTiles = 4 : i32, transpose = false} : memref<2x16x32xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %11 = nvgpu.ldmatrix %arg2[%5, %arg3, %c0] {numTiles = 2 : i32, transpose = false} : memref<2x16x8xf16, #gpu.address_space<workgroup>> -> vector<2x2xf16>
      %12 = nvgpu.mma.sync(%3, %4, %8) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      scf.yield %12, %7, %5, %10, %11 : vector<2x2xf32>, !nvgpu.device.async.token, index, vector<4x2xf16>, vector<2x2xf16>
    }
    return %2#0 : vector<2x2xf32>
  }
}
