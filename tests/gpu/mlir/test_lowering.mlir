// ----- TWO_KERNELS
func.func @twice(%a: memref<64xf32>, %c: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %w = memref.alloc() {tuner.buffer = "workspace"} : memref<64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %start = arith.muli %bx, %c32 : index
    %i = arith.addi %start, %tx : index
    %x = memref.load %a[%i] : memref<64xf32>
    memref.store %x, %w[%i] : memref<64xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c2, %sz = %c1) {
    %start = arith.muli %ty, %c32 : index
    %i = arith.addi %start, %tx : index
    %x = memref.load %w[%i] : memref<64xf32>
    %sum = memref.atomic_rmw addf %x, %c[%i] : (f32, memref<64xf32>) -> f32
    gpu.terminator
  }
  return
}
// ----- TWO_MODULES
module attributes {gpu.container_module} {
  func.func @host(%a: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @first::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<4xf32>)
    gpu.launch_func @second::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @third::@other blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @first { gpu.func @k(%a: memref<4xf32>) kernel { gpu.return } }
  gpu.module @second { gpu.func @k() kernel { gpu.barrier gpu.return } }
  gpu.module @third { gpu.func @other() kernel { gpu.return } }
}
// ----- ATOMICS
llvm.func @k(%p: !llvm.ptr<1>, %x: f32) -> f32 {
  %unread = llvm.atomicrmw fadd %p, %x acq_rel : !llvm.ptr<1>, f32
  %read = llvm.atomicrmw fadd %p, %x acq_rel : !llvm.ptr<1>, f32
  %release = llvm.atomicrmw xchg %p, %x syncscope("device") release : !llvm.ptr<1>, f32
  llvm.return %read : f32
}
// ----- WARPS
func.func @k() -> (index, index) {
  %id = gpu.subgroup_id : index
  %count = gpu.num_subgroups : index
  return %id, %count : index, index
}
// ----- GLOBAL_ID
gpu.module @m {
  gpu.func @k(%a: memref<64xf32>, %x: f32) kernel {
    %i = gpu.global_id x
    memref.store %x, %a[%i] : memref<64xf32>
    gpu.return
  }
}
// ----- SHUFFLE
gpu.module @m {
  func.func @f(%x: f16, %offset: i32, %width: i32) -> (f16, i1) {
    %y, %valid = gpu.shuffle xor %x, %offset, %width : f16
    return %y, %valid : f16, i1
  }
}
// ----- SHARED_GLOBALS

gpu.module @kernels {
  memref.global "private" @all : memref<0xf16, #gpu.address_space<workgroup>>
  memref.global "private" @tile : memref<4xf16, #gpu.address_space<workgroup>>
  gpu.func @k(%i: index) kernel {
    %all = memref.get_global @all : memref<0xf16, #gpu.address_space<workgroup>>
    %tile = memref.get_global @tile : memref<4xf16, #gpu.address_space<workgroup>>
    %rows = memref.reinterpret_cast %all to offset: [0], sizes: [8, 8], strides: [8, 1]
      : memref<0xf16, #gpu.address_space<workgroup>> to memref<8x8xf16, #gpu.address_space<workgroup>>
    %x = memref.load %rows[%i, %i] : memref<8x8xf16, #gpu.address_space<workgroup>>
    memref.store %x, %tile[%i] : memref<4xf16, #gpu.address_space<workgroup>>
    gpu.return
  }
}
// ----- PRINTED
gpu.module @m {
  gpu.func @f(%a: i8, %b: i1, %c: i32, %d: f32) kernel {
    gpu.printf "%d %d %d %f", %a, %b, %c, %d : i8, i1, i32, f32
    gpu.return
  }
}
// ----- UNDEFINED
func.func @f(%c1: index, %out: memref<2xf32>) {
  %sums = llvm.mlir.undef : !llvm.struct<(f32, f32)>
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
      threads(%g, %h, %i) in (%j = %c1, %k = %c1, %l = %c1) {
    %own = llvm.mlir.undef : !llvm.struct<(f32, f32)>
    %first = llvm.extractvalue %sums[0] : !llvm.struct<(f32, f32)>
    %second = llvm.extractvalue %own[1] : !llvm.struct<(f32, f32)>
    memref.store %first, %out[%a] : memref<2xf32>
    memref.store %second, %out[%c1] : memref<2xf32>
    gpu.terminator
  }
  return
}
// ----- BOUNDS
func.func @f() {
  %one = arith.constant 1 : index
  gpu.launch blocks(%i, %j, %l) in (%p = %one, %q = %one, %r = %one)
             threads(%x, %y, %z) in (%s = %one, %t = %one, %u = %one) {
    gpu.barrier
    gpu.terminator
  }
  gpu.launch blocks(%i, %j, %l) in (%p = %one, %q = %one, %r = %one)
             threads(%x, %y, %z) in (%s = %one, %t = %one, %u = %one) {
    gpu.barrier
    gpu.terminator
  } {nvvm.cluster_dim = array<i32: 1, 2, 1>, nvvm.minctasm = 2 : i32, tuner.tile_grid = array<i32: 4, 2>}
  return
}
// ----- POINTERS
gpu.module @m {
  gpu.func @k(%a: !llvm.ptr, %c: memref<4xf32>, %b: !llvm.ptr) kernel { gpu.return }
  gpu.func @plain(%c: memref<4xf32>) kernel { gpu.return }
}
// ----- NOTED
gpu.module @m {
  llvm.func @k(%a: !llvm.ptr {llvm.noalias}, %c: !llvm.ptr {llvm.nonnull}) attributes {
    gpu.kernel, nvvm.kernel, tuner.tensor_maps = array<i64: 0>} { llvm.return }
}
// ----- SYMBOLS
gpu.module @m {
  llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16} : !llvm.array<0 x i8>
  llvm.mlir.global internal @__wg_k_0() {addr_space = 3 : i32} : !llvm.array<32 x f32>
}
