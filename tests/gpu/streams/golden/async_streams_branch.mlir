module attributes {gpu.container_module} {
  func.func private @mgpuEventDestroy(!llvm.ptr)
  func.func private @mgpuStreamWaitEvent(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventRecord(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventCreate() -> !llvm.ptr
  func.func @main(%arg0: memref<16xf32>, %arg1: memref<16xf32>, %arg2: i1, %arg3: !llvm.ptr, %arg4: !llvm.ptr, %arg5: !llvm.ptr, %arg6: !llvm.ptr) {
    %0 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%0, %arg3) : (!llvm.ptr, !llvm.ptr) -> ()
    %1 = builtin.unrealized_conversion_cast %arg3 : !llvm.ptr to !gpu.async.token
    %2 = builtin.unrealized_conversion_cast %arg4 : !llvm.ptr to !gpu.async.token
    %3 = builtin.unrealized_conversion_cast %arg5 : !llvm.ptr to !gpu.async.token
    %4 = builtin.unrealized_conversion_cast %arg6 : !llvm.ptr to !gpu.async.token
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c3 = arith.constant 3 : index
    call @mgpuStreamWaitEvent(%arg5, %0) : (!llvm.ptr, !llvm.ptr) -> ()
    %memref, %asyncToken = gpu.alloc async [%3] () : memref<16xf32>
    call @mgpuStreamWaitEvent(%arg4, %0) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%0) : (!llvm.ptr) -> ()
    %memref_0, %asyncToken_1 = gpu.alloc async [%2] () : memref<16xf32>
    %memref_2, %asyncToken_3 = gpu.alloc async [%1] () : memref<16xf32>
    %5 = gpu.memcpy async [%3] %memref, %arg0 : memref<16xf32>, memref<16xf32>
    %6 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%6, %arg5) : (!llvm.ptr, !llvm.ptr) -> ()
    %7 = gpu.memcpy async [%2] %memref_0, %arg1 : memref<16xf32>, memref<16xf32>
    %8 = gpu.memcpy async [%1] %memref_2, %arg0 : memref<16xf32>, memref<16xf32>
    call @mgpuStreamWaitEvent(%arg4, %6) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%6) : (!llvm.ptr) -> ()
    scf.if %arg2 {
      %16 = func.call @mgpuEventCreate() : () -> !llvm.ptr
      func.call @mgpuEventRecord(%16, %arg4) : (!llvm.ptr, !llvm.ptr) -> ()
      func.call @mgpuStreamWaitEvent(%arg6, %16) : (!llvm.ptr, !llvm.ptr) -> ()
      func.call @mgpuEventDestroy(%16) : (!llvm.ptr) -> ()
      %17 = gpu.launch_func async [%4] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>)
      %18 = func.call @mgpuEventCreate() : () -> !llvm.ptr
      func.call @mgpuEventRecord(%18, %arg6) : (!llvm.ptr, !llvm.ptr) -> ()
      %19 = gpu.launch_func async [%2] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref_0 : memref<16xf32>)
      func.call @mgpuStreamWaitEvent(%arg4, %18) : (!llvm.ptr, !llvm.ptr) -> ()
      func.call @mgpuEventDestroy(%18) : (!llvm.ptr) -> ()
    } else {
      %16 = gpu.launch_func async [%2] @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>, %memref_0 : memref<16xf32>)
    }
    %9 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%9, %arg4) : (!llvm.ptr, !llvm.ptr) -> ()
    %10 = gpu.launch_func async [%1] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref_2 : memref<16xf32>)
    call @mgpuStreamWaitEvent(%arg3, %9) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%9) : (!llvm.ptr) -> ()
    %11 = gpu.launch_func async [%1] @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>, %memref_2 : memref<16xf32>, %memref_0 : memref<16xf32>)
    %12 = gpu.memcpy async [%1] %arg1, %memref_0 : memref<16xf32>, memref<16xf32>
    %13 = gpu.dealloc async [%1] %memref : memref<16xf32>
    %14 = gpu.dealloc async [%1] %memref_0 : memref<16xf32>
    %15 = gpu.dealloc async [%1] %memref_2 : memref<16xf32>
    return
  }
