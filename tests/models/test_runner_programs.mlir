// ----- SQUARES
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @squares(%a: memref<2x3xf32>, %first: i32) kernel {
      %i = gpu.block_id x
      %j = gpu.thread_id x
      %s = arith.addi %i, %j : index
      %n = arith.index_cast %s : index to i32
      %m = arith.addi %n, %first : i32
      %x = arith.sitofp %m : i32 to f32
      %y = arith.mulf %x, %x : f32
      memref.store %y, %a[%i, %j] : memref<2x3xf32>
      gpu.return
    }
  }
  func.func private @printMemrefF32(memref<*xf32>) INTERFACE
  func.func private @printI64(i64)
  func.func private @printNewline()
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %first = arith.constant 1 : i32
    %n = arith.constant 42 : i64
    %a = memref.alloc() : memref<2x3xf32>
    gpu.launch_func @kernels::@squares blocks in (%c2, %c1, %c1) threads in (%c3, %c1, %c1)
      args(%a : memref<2x3xf32>, %first : i32)
    %u = memref.cast %a : memref<2x3xf32> to memref<*xf32>
    call @printMemrefF32(%u) : (memref<*xf32>) -> ()
    call @printI64(%n) : (i64) -> ()
    call @printNewline() : () -> ()
    memref.dealloc %a : memref<2x3xf32>
    return
  }
}
// ----- VECTORS
func.func @main() {
  %v = arith.constant dense<[[1.5, 2.0], [3.0, -4.0]]> : vector<2x2xf32>
  vector.print %v : vector<2x2xf32>
  %n = arith.constant 7 : index
  vector.print %n : index
  vector.print str "end\0A"
  return
}
// ----- PROGRAM
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @fails(%wrong: i1, %memory: memref<2xf32>) kernel {
      %i = gpu.thread_id x
      %c9 = arith.constant 9 : index
      %one = arith.constant 1.0 : f32
      gpu.printf "thread %lld was here\0A", %i : index
      FAILURE
      gpu.printf "thread %lld went on\0A", %i : index
      gpu.return
    }
  }
  func.func private @printNewline()
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %wrong = arith.constant false
    %zero = arith.constant 0.0 : f32
    %memory = memref.alloc() : memref<2xf32>
    linalg.fill ins(%zero : f32) outs(%memory : memref<2xf32>)
    vector.print str "before the kernel\0A"
    gpu.launch_func @kernels::@fails blocks in (%c1, %c1, %c1) threads in (%c2, %c1, %c1)
      args(%wrong : i1, %memory : memref<2xf32>)
    memref.dealloc %memory : memref<2xf32>
    return
  }
}
// ----- ENDLESS
scf.while : () -> () {
  %v = memref.atomic_rmw addf %one, %memory[%i] : (f32, memref<2xf32>) -> f32
  %waits = arith.cmpf oeq, %v, %v : f32
  scf.condition(%waits)
} do {
  scf.yield
}
// ----- OF_A_WAY
func.func private @printMemrefF32(memref<*xf32>)
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<4xf32>
  %out = memref.alloc() : memref<4xf32>
  %flag = memref.alloc() : memref<i1>
  %t = arith.constant true
  memref.store %t, %flag[] : memref<i1>
  %true = memref.load %flag[] : memref<i1>
  scf.for %i = %c0 to %c4 step %c1 {
    %n = arith.index_cast %i : index to i32
    %x = arith.sitofp %n : i32 to f32
    memref.store %x, %a[%i] : memref<4xf32>
  }
  %o = gpu.alloc () : memref<4xf32>
  %d = gpu.alloc () : memref<4xf32>
  gpu.memcpy %d, %a : memref<4xf32>, memref<4xf32>
  WAY
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    LOAD
    memref.store %v, %o[%tx] : memref<4xf32>
    gpu.terminator
  }
  gpu.memcpy %out, %o : memref<4xf32>, memref<4xf32>
  %u = memref.cast %out : memref<4xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
// ----- FROM_MEMREF
%v = memref.load %r[%tx] : memref<4xf32>
// ----- FROM_VIEW
%v = memref.load %r[%tx] : memref<4xf32, strided<[1], offset: ?>>
// ----- FROM_POINTER
%at = arith.index_cast %tx : index to i64
%q = llvm.getelementptr %p[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
%v = llvm.load %q : !llvm.ptr -> f32
// ----- FROM_NUMBER
%w = arith.index_cast %r : index to i64
%p = llvm.inttoptr %w : i64 to !llvm.ptr
%at = arith.index_cast %tx : index to i64
%q = llvm.getelementptr %p[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
%v = llvm.load %q : !llvm.ptr -> f32
// ----- FROM_KEPT
%r = memref.load %kept[%c0] : memref<1xindex>
%w = arith.index_cast %r : index to i64
%p = llvm.inttoptr %w : i64 to !llvm.ptr
%at = arith.index_cast %tx : index to i64
%q = llvm.getelementptr %p[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
%v = llvm.load %q : !llvm.ptr -> f32
// ----- of_each_iteration
scf.for %i = %c0 to %c2 step %c1 {
  %e = gpu.alloc () : memref<4xf32>
  gpu.memcpy %e, %d : memref<4xf32>, memref<4xf32>
  %n = memref.extract_aligned_pointer_as_index %e : memref<4xf32> -> index
  %r = arith.addi %n, %c0 : index
// ----- freed_too_early
%kept = gpu.alloc () : memref<1xindex>
gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
           threads(%t0, %t1, %t2) in (%s0 = %c1, %s1 = %c1, %s2 = %c1) {
  %n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
  memref.store %n, %kept[%c0] : memref<1xindex>
  gpu.terminator
}
gpu.dealloc %d : memref<4xf32>
// ----- CAST_OF_A_VIEW
%base, %o0, %n0, %n1, %s0, %s1 = memref.extract_strided_metadata %da
  : memref<16x64xf16> -> memref<f16>, index, index, index, index, index
%view = memref.reinterpret_cast %base to offset: [0], sizes: [16, 64], strides: [64, 1]
  : memref<f16> to memref<16x64xf16>
%any = memref.cast %view : memref<16x64xf16>
// ----- CAST_OF_MORE
%more = memref.reinterpret_cast %da to offset: [0], sizes: [32, 64], strides: [64, 1]
  : memref<16x64xf16> to memref<32x64xf16>
%any = memref.cast %more : memref<32x64xf16>
// ----- WAYS
// way: arithmetic
// load: FROM_NUMBER
%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
%r = arith.addi %n, %c0 : index

// way: vector
// load: FROM_NUMBER
%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
%b = vector.broadcast %n : index to vector<2xindex>
%r = vector.extract %b[0] : index from vector<2xindex>

// way: double
// load: FROM_NUMBER
%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
%m = arith.index_cast %n : index to i64
%f = arith.sitofp %m : i64 to f64
%g = arith.select %true, %f, %f : f64
%x = arith.fptosi %g : f64 to i64
%r = arith.index_cast %x : i64 to index

// way: struct
// load: FROM_NUMBER
%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
%m = arith.index_cast %n : index to i64
%none = llvm.mlir.undef : !llvm.struct<(i64, i64)>
%pair = llvm.insertvalue %m, %none[1] : !llvm.struct<(i64, i64)>
%x = llvm.extractvalue %pair[1] : !llvm.struct<(i64, i64)>
%r = arith.index_cast %x : i64 to index

// way: branch
// load: FROM_NUMBER
%r = scf.if %true -> (index) {
  %e = gpu.alloc () : memref<4xf32>
  gpu.memcpy %e, %d : memref<4xf32>, memref<4xf32>
  %n = memref.extract_aligned_pointer_as_index %e : memref<4xf32> -> index
  scf.yield %n : index
} else {
  scf.yield %c0 : index
}

// way: loop
// load: FROM_NUMBER
%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
%r = scf.for %i = %c0 to %c2 step %c1 iter_args(%k = %n) -> (index) {
  %s = arith.addi %k, %c0 : index
  scf.yield %s : index
}

// way: while
// load: FROM_NUMBER
%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
%r = scf.while (%k = %n) : (index) -> index {
  %go = arith.cmpi eq, %k, %c0 : index
  scf.condition(%go) %k : index
} do {
^bb0(%k: index):
  scf.yield %k : index
}

// way: blocks
// load: FROM_NUMBER
%r = scf.execute_region -> index {
  %n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
  cf.cond_br %true, ^bb1(%n : index), ^bb1(%c0 : index)
^bb1(%z: index):
  scf.yield %z : index
}

// way: memory
// load: FROM_NUMBER
%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
%box = memref.alloc() : memref<2xindex>
memref.store %n, %box[%c1] : memref<2xindex>
%r = memref.load %box[%c1] : memref<2xindex>

// way: yielded
// load: FROM_NUMBER
%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
%box = memref.alloc() : memref<2xindex>
%other = memref.alloc() : memref<2xindex>
linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["reduction"]}
    outs(%other, %box : memref<2xindex>, memref<2xindex>) {
^bb0(%old: index, %older: index):
  linalg.yield %c0, %n : index, index
}
%r = memref.load %box[%c1] : memref<2xindex>

// way: unranked
// load: FROM_MEMREF
%q = memref.cast %d : memref<4xf32> to memref<*xf32>
%r = memref.cast %q : memref<*xf32> to memref<4xf32>

// way: token
// load: FROM_MEMREF
%t0 = gpu.wait async
%r, %t1 = gpu.alloc async [%t0] () : memref<4xf32>
%t2 = gpu.memcpy async [%t1] %r, %d : memref<4xf32>, memref<4xf32>
gpu.wait [%t2]

// way: metadata
// load: FROM_VIEW
%base, %o0, %n0, %s0 = memref.extract_strided_metadata %d
  : memref<4xf32> -> memref<f32>, index, index, index
%r = memref.reinterpret_cast %base to offset: [%o0], sizes: [4], strides: [1]
  : memref<f32> to memref<4xf32, strided<[1], offset: ?>>

// way: descriptor
// load: FROM_POINTER
%s = builtin.unrealized_conversion_cast %d : memref<4xf32>
  to !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
%p = llvm.extractvalue %s[1] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>

// way: device memory
// load: FROM_KEPT
%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
%box = memref.alloc() : memref<1xindex>
memref.store %n, %box[%c0] : memref<1xindex>
%kept = gpu.alloc () : memref<1xindex>
gpu.memcpy %kept, %box : memref<1xindex>, memref<1xindex>

// way: kernel
// load: FROM_KEPT
%kept = gpu.alloc () : memref<1xindex>
gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
           threads(%t0, %t1, %t2) in (%s0 = %c1, %s1 = %c1, %s2 = %c1) {
  %n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
  memref.store %n, %kept[%c0] : memref<1xindex>
  gpu.terminator
}
