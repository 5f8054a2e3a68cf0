module attributes {gpu.container_module} {
  func.func private @mgpuStreamSynchronize(!llvm.ptr)
  func.func private @mgpuEventDestroy(!llvm.ptr)
  func.func private @mgpuStreamWaitEvent(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventRecord(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventCreate() -> !llvm.ptr
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
    scf.for %arg5 = %c0 to %c3 step %c1 {
      %14 = func.call @mgpuEventCreate() : () -> !llvm.ptr
      func.call @mgpuEventRecord(%14, %arg2) : (!llvm.ptr, !llvm.ptr) -> ()
      func.call @mgpuStreamWaitEvent(%arg4, %14) : (!llvm.ptr, !llvm.ptr) -> ()
      func.call @mgpuEventDestroy(%14) : (!llvm.ptr) -> ()
      %15 = gpu.launch_func async [%3] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>)
      %16 = func.call @mgpuEventCreate() : () -> !llvm.ptr
      func.call @mgpuEventRecord(%16, %arg4) : (!llvm.ptr, !llvm.ptr) -> ()
      %17 = gpu.launch_func async [%1] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref_0 : memref<16xf32>)
      %18 = gpu.memcpy async [%1] %arg1, %memref_0 : memref<16xf32>, memref<16xf32>
      func.call @mgpuStreamSynchronize(%arg2) : (!llvm.ptr) -> ()
      %19 = memref.load %arg1[%c0] : memref<16xf32>
      %20 = arith.addf %19, %19 : f32
      memref.store %20, %arg1[%c1] : memref<16xf32>
      %21 = gpu.memcpy async [%1] %memref_0, %arg1 : memref<16xf32>, memref<16xf32>
      func.call @mgpuStreamWaitEvent(%arg2, %16) : (!llvm.ptr, !llvm.ptr) -> ()
      func.call @mgpuEventDestroy(%16) : (!llvm.ptr) -> ()
    }
    %7 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%7, %arg2) : (!llvm.ptr, !llvm.ptr) -> ()
    %8 = gpu.launch_func async [%1] @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>, %memref_0 : memref<16xf32>, %memref_0 : memref<16xf32>)
    call @mgpuStreamWaitEvent(%arg3, %7) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%7) : (!llvm.ptr) -> ()
    %9 = gpu.memcpy async [%2] %arg0, %memref : memref<16xf32>, memref<16xf32>
    %10 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%10, %arg3) : (!llvm.ptr, !llvm.ptr) -> ()
    %11 = gpu.memcpy async [%1] %arg1, %memref_0 : memref<16xf32>, memref<16xf32>
    %12 = gpu.dealloc async [%1] %memref_0 : memref<16xf32>
    call @mgpuStreamWaitEvent(%arg2, %10) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%10) : (!llvm.ptr) -> ()
    %13 = gpu.dealloc async [%1] %memref : memref<16xf32>
    return
  }
