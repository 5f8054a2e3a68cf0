module attributes {gpu.container_module} {
  func.func private @mgpuEventDestroy(!llvm.ptr)
  func.func private @mgpuStreamWaitEvent(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventRecord(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventCreate() -> !llvm.ptr
  func.func private @mgpuStreamSynchronize(!llvm.ptr)
  func.func @main(%arg0: memref<16xf32>, %arg1: memref<16xf32>, %arg2: !llvm.ptr, %arg3: !llvm.ptr, %arg4: !llvm.ptr) {
    %0 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%0, %arg2) : (!llvm.ptr, !llvm.ptr) -> ()
    %1 = builtin.unrealized_conversion_cast %arg2 : !llvm.ptr to !gpu.async.token
    %2 = builtin.unrealized_conversion_cast %arg3 : !llvm.ptr to !gpu.async.token
    %3 = builtin.unrealized_conversion_cast %arg4 : !llvm.ptr to !gpu.async.token
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c3 = arith.constant 3 : index
    call @mgpuStreamWaitEvent(%arg3, %0) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%0) : (!llvm.ptr) -> ()
    %memref, %asyncToken = gpu.alloc async [%2] () : memref<16xf32>
    %memref_0, %asyncToken_1 = gpu.alloc async [%1] () : memref<16xf32>
    %4 = gpu.memcpy async [%2] %memref, %arg0 : memref<16xf32>, memref<16xf32>
    %5 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%5, %arg3) : (!llvm.ptr, !llvm.ptr) -> ()
    %6 = gpu.memcpy async [%1] %memref_0, %arg1 : memref<16xf32>, memref<16xf32>
    call @mgpuStreamWaitEvent(%arg2, %5) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%5) : (!llvm.ptr) -> ()
    %7 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%7, %arg2) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuStreamWaitEvent(%arg4, %7) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%7) : (!llvm.ptr) -> ()
    scf.for %arg5 = %c0 to %c3 step %c1 {
      %16 = gpu.launch_func async [%3] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>)
      %17 = gpu.launch_func async [%1] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref_0 : memref<16xf32>)
      %18 = gpu.memcpy async [%1] %arg1, %memref_0 : memref<16xf32>, memref<16xf32>
      func.call @mgpuStreamSynchronize(%arg2) : (!llvm.ptr) -> ()
      %19 = memref.load %arg1[%c0] : memref<16xf32>
      %20 = arith.addf %19, %19 : f32
      memref.store %20, %arg1[%c1] : memref<16xf32>
      %21 = gpu.memcpy async [%1] %memref_0, %arg1 : memref<16xf32>, memref<16xf32>
    }
    %8 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%8, %arg4) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuStreamWaitEvent(%arg2, %8) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%8) : (!llvm.ptr) -> ()
    %9 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%9, %arg2) : (!llvm.ptr, !llvm.ptr) -> ()
    %10 = gpu.launch_func async [%1] @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>, %memref_0 : memref<16xf32>, %memref_0 : memref<16xf32>)
    call @mgpuStreamWaitEvent(%arg3, %9) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%9) : (!llvm.ptr) -> ()
    %11 = gpu.memcpy async [%2] %arg0, %memref : memref<16xf32>, memref<16xf32>
    %12 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%12, %arg3) : (!llvm.ptr, !llvm.ptr) -> ()
    %13 = gpu.memcpy async [%1] %arg1, %memref_0 : memref<16xf32>, memref<16xf32>
    %14 = gpu.dealloc async [%1] %memref_0 : memref<16xf32>
    call @mgpuStreamWaitEvent(%arg2, %12) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%12) : (!llvm.ptr) -> ()
    %15 = gpu.dealloc async [%1] %memref : memref<16xf32>
    return
  }
