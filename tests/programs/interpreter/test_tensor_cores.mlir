// ----- TF32
%t = gpu.thread_id x %c0 = arith.constant 0 : index
%x = vector.load %0[%t, %c0, %c0] : memref<32x4x1xf32>, vector<4x1xf32>
%y = vector.load %1[%t, %c0, %c0] : memref<32x2x1xf32>, vector<2x1xf32>
%z = arith.constant dense<0.0> : vector<2x2xf32>
%d = nvgpu.mma.sync (%x, %y, %z) {mmaShape = [16, 8, 8], tf32Enabled}
  : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
vector.store %d, %2[%t, %c0, %c0] : memref<32x2x2xf32>, vector<2x2xf32>
// ----- ASYNC_COPY
%t = gpu.thread_id x %c0 = arith.constant 0 : index %c4 = arith.constant 4 : index
%c3 = arith.constant 3 : index
%s = memref.get_global @shared : memref<32x4xf32, 3>
%n = arith.remui %t, %c4 : index
%a = nvgpu.device_async_copy %0[%t, %c0], %s[%t, %c0], 4, %n
  : memref<32x4xf32> to memref<32x4xf32, 3>
%g = nvgpu.device_async_create_group %a
nvgpu.device_async_wait %g {numGroups = 0 : i32}
gpu.barrier
%x = vector.load %s[%t, %c0] : memref<32x4xf32, 3>, vector<4xf32>
vector.store %x, %1[%t, %c0] : memref<32x4xf32>, vector<4xf32>
