// ----- BY_TOKENS
// Asynchronous already, by tokens.
func.func @main(%a: memref<16xf32>, %b: memref<16xf32>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<16xf32>
  %t2 = gpu.memcpy async [%t1] %d, %a : memref<16xf32>, memref<16xf32>
  %t3 = gpu.launch async [%t2] blocks(%bx, %by, %bz) in (%gx = %c16, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %old = memref.load %d[%bx] : memref<16xf32>
    %new = arith.addf %old, %old : f32
    memref.store %new, %d[%bx] : memref<16xf32>
    gpu.terminator
  }
  %t4 = gpu.memcpy async [%t3] %b, %d : memref<16xf32>, memref<16xf32>
  %t5 = gpu.dealloc async [%t4] %d : memref<16xf32>
  gpu.wait [%t5]
  return
}
// ----- REGISTERED
// The caller's memory is page-locked.
func.func @main(%a: memref<16xf32>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %any = memref.cast %a : memref<16xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c16, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %old = memref.load %a[%bx] : memref<16xf32>
    %new = arith.addf %old, %old : f32
    memref.store %new, %a[%bx] : memref<16xf32>
    gpu.terminator
  }
  gpu.host_unregister %any : memref<*xf32>
  return
}
// ----- IN_ITERATIONS
// Each iteration has memory of its own, on the host alone.
func.func @main(%a: memref<16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %n step %c1 {
    %t = memref.alloc() : memref<16xf32>
    memref.copy %a, %t : memref<16xf32> to memref<16xf32>
    %old = memref.load %t[%c0] : memref<16xf32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %new = arith.addf %old, %old : f32
      memref.store %new, %a[%c0] : memref<16xf32>
      gpu.terminator
    }
    memref.dealloc %t : memref<16xf32>
  }
  return
}
// ----- DYNAMIC
// The kernel's sizes are known at run time only.
func.func @main(%a: memref<?xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %old = memref.load %a[%bx] : memref<?xf32>
    %new = arith.mulf %old, %x : f32
    memref.store %new, %a[%bx] : memref<?xf32>
    gpu.terminator
  }
  return
}
// ----- TWO_PRODUCTS
// Two products on buffers of their own, and their sum: a constant is uploaded, a result handed out.
module {
  memref.global "private" constant @bias : memref<16x16xf32> = dense<0.5>
  func.func @main(%a: memref<16x16xf32>, %b: memref<16x16xf32>) -> memref<16x16xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c = memref.alloc() : memref<16x16xf32>
    %d = memref.alloc() : memref<16x16xf32>
    %e = memref.alloc() : memref<16x16xf32>
    %g = memref.get_global @bias : memref<16x16xf32>
    memref.copy %g, %d : memref<16x16xf32> to memref<16x16xf32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c8, %sz = %c1) {
      %sa = memref.alloc() : memref<8x8xf32, #gpu.address_space<workgroup>>
      %sb = memref.alloc() : memref<8x8xf32, #gpu.address_space<workgroup>>
      %i0 = arith.muli %by, %c8 : index
      %i = arith.addi %i0, %ty : index
      %j0 = arith.muli %bx, %c8 : index
      %j = arith.addi %j0, %tx : index
      %first = arith.constant 0.0 : f32
      %sum = scf.for %k = %c0 to %c16 step %c8 iter_args(%part = %first) -> f32 {
        %ka = arith.addi %k, %tx : index
        %kb = arith.addi %k, %ty : index
        %x = memref.load %a[%i, %ka] : memref<16x16xf32>
        memref.store %x, %sa[%ty, %tx] : memref<8x8xf32, #gpu.address_space<workgroup>>
        %y = memref.load %b[%kb, %j] : memref<16x16xf32>
        memref.store %y, %sb[%ty, %tx] : memref<8x8xf32, #gpu.address_space<workgroup>>
        gpu.barrier
        %row = scf.for %l = %c0 to %c8 step %c1 iter_args(%old = %part) -> f32 {
          %u = memref.load %sa[%ty, %l] : memref<8x8xf32, #gpu.address_space<workgroup>>
          %v = memref.load %sb[%l, %tx] : memref<8x8xf32, #gpu.address_space<workgroup>>
          %product = arith.mulf %u, %v : f32
          %new = arith.addf %old, %product : f32
          scf.yield %new : f32
        }
        gpu.barrier
        scf.yield %row : f32
      }
      memref.store %sum, %c[%i, %j] : memref<16x16xf32>
      gpu.terminator
    }
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c8, %sz = %c1) {
      %sa = memref.alloc() : memref<8x8xf32, #gpu.address_space<workgroup>>
      %sb = memref.alloc() : memref<8x8xf32, #gpu.address_space<workgroup>>
      %i0 = arith.muli %by, %c8 : index
      %i = arith.addi %i0, %ty : index
      %j0 = arith.muli %bx, %c8 : index
      %j = arith.addi %j0, %tx : index
      %first = memref.load %d[%i, %j] : memref<16x16xf32>
      %sum = scf.for %k = %c0 to %c16 step %c8 iter_args(%part = %first) -> f32 {
        %ka = arith.addi %k, %tx : index
        %kb = arith.addi %k, %ty : index
        %x = memref.load %a[%i, %ka] : memref<16x16xf32>
        memref.store %x, %sa[%ty, %tx] : memref<8x8xf32, #gpu.address_space<workgroup>>
        %y = memref.load %b[%kb, %j] : memref<16x16xf32>
        memref.store %y, %sb[%ty, %tx] : memref<8x8xf32, #gpu.address_space<workgroup>>
        gpu.barrier
        %row = scf.for %l = %c0 to %c8 step %c1 iter_args(%old = %part) -> f32 {
          %u = memref.load %sa[%ty, %l] : memref<8x8xf32, #gpu.address_space<workgroup>>
          %v = memref.load %sb[%l, %tx] : memref<8x8xf32, #gpu.address_space<workgroup>>
          %product = arith.mulf %u, %v : f32
          %new = arith.addf %old, %product : f32
          scf.yield %new : f32
        }
        gpu.barrier
        scf.yield %row : f32
      }
      memref.store %sum, %d[%i, %j] : memref<16x16xf32>
      gpu.terminator
    }
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c16, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
      %x = memref.load %c[%bx, %tx] : memref<16x16xf32>
      %y = memref.load %d[%bx, %tx] : memref<16x16xf32>
      %q = arith.addf %x, %y : f32
      memref.store %q, %e[%bx, %tx] : memref<16x16xf32>
      gpu.terminator
    }
    memref.dealloc %c : memref<16x16xf32>
    memref.dealloc %d : memref<16x16xf32>
    return %e : memref<16x16xf32>
  }
}
// ----- VIEWS
func.func @main(%a: memref<2x4xf32>, %b: memref<2x4xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %j = arith.muli %bx, %c2 : index
    %x = memref.subview %a[0, %j] [2, 2] [1, 1] : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1], offset: ?>>
    %y = memref.subview %b[0, %j] [2, 2] [1, 1] : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1], offset: ?>>
    memref.copy %x, %y : memref<2x2xf32, strided<[4, 1], offset: ?>> to memref<2x2xf32, strided<[4, 1], offset: ?>>
    gpu.terminator
  }
  return
}
// ----- CAST
llvm.func @f(%a: i64) -> !llvm.ptr {
  %p = builtin.unrealized_conversion_cast %a : i64 to !llvm.ptr
  llvm.return %p : !llvm.ptr
}
// ----- LEFT
module attributes {gpu.container_module} {
  llvm.func @f(%p: !llvm.ptr) {
    %one = llvm.mlir.constant(1 : i64) : i64
    %a = builtin.unrealized_conversion_cast %p : !llvm.ptr to memref<16xf32>
    gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) : i64 args(%a : TYPE)
    llvm.return
  }
  gpu.binary @m [#gpu.object<#nvvm.target<chip = "sm_90">, "code">]
}
// ----- COPY_OF_A_VIEW
%d = gpu.alloc () : memref<8xf32>
%v = memref.subview %aWHERE : memref<16xf32> to memref<8xf32, LAYOUT>
gpu.memcpy %d, %v : memref<8xf32>, memref<8xf32, LAYOUT>
gpu.memcpy %c, %d : memref<8xf32>, memref<8xf32>
gpu.dealloc %d : memref<8xf32>
// ----- TENSOR
// An operation on the host that is no LLVM.
%t = "tensor.empty"() : () -> tensor<4xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%a : memref<16xf32>)
%e = tensor.extract %t[%c0] : tensor<4xf32>
memref.store %e, %a[%c0] : memref<16xf32>
