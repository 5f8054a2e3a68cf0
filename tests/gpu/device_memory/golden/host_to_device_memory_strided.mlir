  func.func @main(%arg0: memref<?x4xf32, strided<[?, 1], offset: ?>>) {
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %base_buffer, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %arg0 : memref<?x4xf32, strided<[?, 1], offset: ?>> -> memref<f32>, index, index, index, index, index
    %0 = arith.subi %sizes#0, %c1 : index
    %1 = arith.muli %0, %strides#0 : index
    %2 = arith.addi %1, %c4 : index
    %3 = arith.maxsi %2, %c0 : index
    %memref = gpu.alloc  (%3) : memref<?xf32>
    %reinterpret_cast = memref.reinterpret_cast %memref to offset: [0], sizes: [%sizes#0, 4], strides: [%strides#0, 1] : memref<?xf32> to memref<?x4xf32, strided<[?, 1]>>
    %cast = memref.cast %reinterpret_cast : memref<?x4xf32, strided<[?, 1]>> to memref<?x4xf32, strided<[?, 1], offset: ?>>
    %alloc = memref.alloc(%3) : memref<?xf32>
    %reinterpret_cast_0 = memref.reinterpret_cast %alloc to offset: [0], sizes: [%sizes#0, 4], strides: [%strides#0, 1] : memref<?xf32> to memref<?x4xf32, strided<[?, 1]>>
    %dim = memref.dim %reinterpret_cast_0, %c0 : memref<?x4xf32, strided<[?, 1]>>
    scf.parallel (%arg1, %arg2) = (%c0, %c0) to (%dim, %c4) step (%c1, %c1) {
      %4 = memref.load %arg0[%arg1, %arg2] : memref<?x4xf32, strided<[?, 1], offset: ?>>
      memref.store %4, %reinterpret_cast_0[%arg1, %arg2] : memref<?x4xf32, strided<[?, 1]>>
      scf.reduce 
    }
    gpu.memcpy  %memref, %alloc : memref<?xf32>, memref<?xf32>
    gpu.launch_func  @main_kernel::@main_kernel blocks in (%c4, %c1, %c1) threads in (%c4, %c1, %c1)  args(%cast : memref<?x4xf32, strided<[?, 1], offset: ?>>)
    gpu.memcpy  %alloc, %memref : memref<?xf32>, memref<?xf32>
    %dim_1 = memref.dim %arg0, %c0 : memref<?x4xf32, strided<[?, 1], offset: ?>>
    scf.parallel (%arg1, %arg2) = (%c0, %c0) to (%dim_1, %c4) step (%c1, %c1) {
      %4 = memref.load %reinterpret_cast_0[%arg1, %arg2] : memref<?x4xf32, strided<[?, 1]>>
      memref.store %4, %arg0[%arg1, %arg2] : memref<?x4xf32, strided<[?, 1], offset: ?>>
      scf.reduce 
    }
    gpu.dealloc  %memref : memref<?xf32>
    memref.dealloc %alloc : memref<?xf32>
    return
  }
