module {
  func.func @f(%arg0: memref<16x64xf32>, %arg1: memref<2x16x32xf32, #gpu.address_space<workgroup>>, %arg2: memref<2x16x8xf32, #gpu.address_space<workgroup>>, %arg3: index, %arg4: vector<4xf32>, %arg5: !nvgpu.device.async.token) -> vector<4xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    nvgpu.device_async_wait %arg5 {numGroups = 0 : i32}
    gpu.barrier
    %0 = vector.load %arg1[%c0, %arg3, %c0] : memref<2x16x32xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    %1 = vector.load %arg2[%c0, %arg3, %c0] : memref<2x16x8xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    %2:5 = scf.for %arg6 = %c0 to %c64 step %c16 iter_args(%arg7 = %arg4, %arg8 = %arg5, %arg9 = %c0, %arg10 = %0, %arg11 = %1) -> (vector<4xf32>, !nvgpu.device.async.token, index, vector<4xf32>, vector<4xf32>) {
      %3 = vector.load %arg1[%arg9, %arg3, %c16] : memref<2x16x32xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      %4 = vector.load %arg2[%arg9, %arg3, %c0] : memref<2x16x8xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      %5 = arith.subi %c1, %arg9 : index
      %6 = nvgpu.device_async_copy %arg0[%arg3, %arg6], %arg1[%5, %arg3, %c0], 4 : memref<16x64xf32> to memref<2x16x32xf32, #gpu.address_space<workgroup>>
      %7 = nvgpu.device_async_create_group %6
      %8 = vector.fma %arg10, %arg11, %arg7 : vector<4xf32>
      %9 = arith.addi %arg6, %c16 : index
      nvgpu.device_async_wait %7 {numGroups = 0 : i32}
      gpu.barrier
      %10 = vector.load %arg1[%5, %arg3, %c0] : memref<2x16x32xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      %11 = vector.load %arg2[%5, %arg3, %c0] : memref<2x16x8xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      %12 = vector.fma %3, %4, %8 : vector<4xf32>
      llvm.inline_asm has_side_effects "", "~{memory}"  : () -> ()
      scf.yield %12, %7, %5, %10, %11 : vector<4xf32>, !nvgpu.device.async.token, index, vector<4xf32>, vector<4xf32>
    }
    return %2#0 : vector<4xf32>
  }
}
