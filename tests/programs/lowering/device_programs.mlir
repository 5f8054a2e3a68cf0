// ----- KERNELS
  gpu.module @m {
    gpu.func @inc(%a: memref<16xf32>) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      %v = memref.load %a[%i] : memref<16xf32>
      %w = arith.addf %v, %one : f32
      memref.store %w, %a[%i] : memref<16xf32>
      gpu.return
    }
    gpu.func @twice(%a: memref<16xf32>, %b: memref<16xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<16xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %b[%i] : memref<16xf32>
      gpu.return
    }
    gpu.func @add(%a: memref<16xf32>, %b: memref<16xf32>, %c: memref<16xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<16xf32>
      %w = memref.load %b[%i] : memref<16xf32>
      %x = arith.addf %v, %w : f32
      memref.store %x, %c[%i] : memref<16xf32>
      gpu.return
    }
  }
// ----- OF_PARTS
    gpu.func @spread(%a: memref<16xf32>, %p: memref<16xf32, strided<[1], offset: ?>>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<16xf32>
      memref.store %v, %p[%i] : memref<16xf32, strided<[1], offset: ?>>
      gpu.return
    }
    gpu.func @inc_part(%p: memref<16xf32, strided<[1], offset: ?>>) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      %v = memref.load %p[%i] : memref<16xf32, strided<[1], offset: ?>>
      %w = arith.addf %v, %one : f32
      memref.store %w, %p[%i] : memref<16xf32, strided<[1], offset: ?>>
      gpu.return
    }
    gpu.func @gather(%p: memref<16xf32, strided<[1], offset: ?>>, %a: memref<16xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %p[%i] : memref<16xf32, strided<[1], offset: ?>>
      memref.store %v, %a[%i] : memref<16xf32>
      gpu.return
    }
  }
