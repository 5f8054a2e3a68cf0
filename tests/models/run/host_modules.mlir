// ----- TWO_CHAINS
%fork = func.call @mgpuEventCreate() : () -> !llvm.ptr
func.call @mgpuEventRecord(%fork, %s0) : (!llvm.ptr, !llvm.ptr) -> ()
func.call @mgpuStreamWaitEvent(%s1, %fork) : (!llvm.ptr, !llvm.ptr) -> () // fork
func.call @mgpuEventDestroy(%fork) : (!llvm.ptr) -> ()
%c = memref.alloc() : memref<64xf32>
%da, %t0 = gpu.alloc async [%t_s0] () : memref<64xf32>
%t1 = gpu.memcpy async [%t_s0] %da, %a : memref<64xf32>, memref<64xf32> // copy in
%dx, %t2 = gpu.alloc async [%t_s0] () : memref<64xf32>
%t3 = gpu.launch_func async [%t_s0] @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%da : memref<64xf32>, %dx : memref<64xf32>)
%t4 = gpu.dealloc async [%t_s0] %da : memref<64xf32>
%db, %t5 = gpu.alloc async [%t_s1] () : memref<64xf32>
%t6 = gpu.memcpy async [%t_s1] %db, %b : memref<64xf32>, memref<64xf32> // copy in
%dy, %t7 = gpu.alloc async [%t_s1] () : memref<64xf32>
%t8 = gpu.launch_func async [%t_s1] @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%db : memref<64xf32>, %dy : memref<64xf32>)
%t9 = gpu.dealloc async [%t_s1] %db : memref<64xf32>
%join = func.call @mgpuEventCreate() : () -> !llvm.ptr
func.call @mgpuEventRecord(%join, %s1) : (!llvm.ptr, !llvm.ptr) -> ()
func.call @mgpuStreamWaitEvent(%s0, %join) : (!llvm.ptr, !llvm.ptr) -> () // join
func.call @mgpuEventDestroy(%join) : (!llvm.ptr) -> ()
%dz, %t10 = gpu.alloc async [%t_s0] () : memref<64xf32>
%t11 = gpu.launch_func async [%t_s0] @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%dx : memref<64xf32>, %dy : memref<64xf32>, %dz : memref<64xf32>)
%t12 = gpu.memcpy async [%t_s0] %c, %dz : memref<64xf32>, memref<64xf32> // copy out
%t13 = gpu.dealloc async [%t_s0] %dx : memref<64xf32>
%t14 = gpu.dealloc async [%t_s0] %dy : memref<64xf32>
%t15 = gpu.dealloc async [%t_s0] %dz : memref<64xf32>
return %c : memref<64xf32>
// ----- TOKENS
%c = memref.alloc() : memref<64xf32>
%t0 = gpu.wait async
%da, %t1 = gpu.alloc async [%t0] () : memref<64xf32>
%t2 = gpu.memcpy async [%t1] %da, %a : memref<64xf32>, memref<64xf32>
%dx, %t3 = gpu.alloc async [%t2] () : memref<64xf32>
%t4 = gpu.launch_func async [%t3] @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%da : memref<64xf32>, %dx : memref<64xf32>)
%t5 = gpu.memcpy async [%t4] %c, %dx : memref<64xf32>, memref<64xf32>
%t6 = gpu.dealloc async [%t5] %da : memref<64xf32>
%t7 = gpu.dealloc async [%t6] %dx : memref<64xf32>
gpu.wait [%t7] // finish
return %c : memref<64xf32>
// ----- IN_PLACE
%t0 = gpu.launch_func async [%t_s0] @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%a : memref<64xf32>, %b : memref<64xf32>)
return
// ----- MODULE
module attributes {gpu.container_module} {
  memref.global "private" constant @half : memref<64xf32> = dense<0.5>
  func.func private @mgpuEventCreate() -> !llvm.ptr
  func.func private @mgpuEventDestroy(!llvm.ptr)
  func.func private @mgpuEventRecord(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuStreamWaitEvent(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuStreamSynchronize(!llvm.ptr)
  gpu.module @kernels {
    gpu.func @twice(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %y[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @add(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      %w = memref.load %y[%i] : memref<64xf32>
      %s = arith.addf %v, %w : f32
      memref.store %s, %z[%i] : memref<64xf32>
      gpu.return
    }
  }
  func.func @main(NAMES) -> (OUTS) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
TOKENS
BODY
  }
}
