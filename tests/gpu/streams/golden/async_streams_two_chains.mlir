module attributes {gpu.container_module} {
  func.func private @mgpuEventDestroy(!llvm.ptr)
  func.func private @mgpuStreamWaitEvent(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventRecord(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventCreate() -> !llvm.ptr
  func.func @main(%arg0: memref<16xf32>, %arg1: memref<16xf32>, %arg2: !llvm.ptr, %arg3: !llvm.ptr) {
    %0 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%0, %arg2) : (!llvm.ptr, !llvm.ptr) -> ()
    %1 = builtin.unrealized_conversion_cast %arg2 : !llvm.ptr to !gpu.async.token
    %2 = builtin.unrealized_conversion_cast %arg3 : !llvm.ptr to !gpu.async.token
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c3 = arith.constant 3 : index
    call @mgpuStreamWaitEvent(%arg3, %0) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%0) : (!llvm.ptr) -> ()
    %memref, %asyncToken = gpu.alloc async [%2] () : memref<16xf32>
    %memref_0, %asyncToken_1 = gpu.alloc async [%1] () : memref<16xf32>
    %memref_2, %asyncToken_3 = gpu.alloc async [%1] () : memref<16xf32>
    %3 = gpu.memcpy async [%2] %memref, %arg0 : memref<16xf32>, memref<16xf32>
    %4 = gpu.launch_func async [%2] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>)
    %5 = gpu.launch_func async [%2] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>)
    %6 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%6, %arg3) : (!llvm.ptr, !llvm.ptr) -> ()
    %7 = gpu.memcpy async [%1] %memref_0, %arg1 : memref<16xf32>, memref<16xf32>
    %8 = gpu.launch_func async [%1] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref_0 : memref<16xf32>)
    %9 = gpu.launch_func async [%1] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref_0 : memref<16xf32>)
    call @mgpuStreamWaitEvent(%arg2, %6) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%6) : (!llvm.ptr) -> ()
    %10 = gpu.launch_func async [%1] @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>, %memref_0 : memref<16xf32>, %memref_2 : memref<16xf32>)
    %11 = gpu.memcpy async [%1] %arg0, %memref_2 : memref<16xf32>, memref<16xf32>
    %12 = gpu.dealloc async [%1] %memref : memref<16xf32>
    %13 = gpu.dealloc async [%1] %memref_0 : memref<16xf32>
    %14 = gpu.dealloc async [%1] %memref_2 : memref<16xf32>
    return
  }
