// ----- MATMUL
// change: %t[%p, %tx] : memref => %t[%tx, %p] : memref
// change: %s[%ty, %p] => %s[%tx, %p]
// change: arith.mulf %v, %w => arith.addf %v, %w
// change: %n step %c16 => %c32 step %c16
// change: %a[%row, %ka] => %a[%row, %k]
// change: %c[%row, %col] => %c[%col, %row]
func.func @f(%a: memref<32x48xf32>, %b: memref<48x32xf32>, %c: memref<32x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c16, %sz = %c1)
             workgroup(%s : memref<16x16xf32, #gpu.address_space<workgroup>>,
                       %t : memref<16x16xf32, #gpu.address_space<workgroup>>) {
    %row0 = arith.muli %by, %c16 : index
    %col0 = arith.muli %bx, %c16 : index
    %row = arith.addi %row0, %ty : index
    %col = arith.addi %col0, %tx : index
    %n = memref.dim %a, %c1 : memref<32x48xf32>
    %sum = scf.for %k = %c0 to %n step %c16 iter_args(%acc = %zero) -> (f32) {
      %ka = arith.addi %k, %tx : index
      %kb = arith.addi %k, %ty : index
      %x = memref.load %a[%row, %ka] : memref<32x48xf32>
      %y = memref.load %b[%kb, %col] : memref<48x32xf32>
      memref.store %x, %s[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
      memref.store %y, %t[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %part = scf.for %p = %c0 to %c16 step %c1 iter_args(%u = %acc) -> (f32) {
        %v = memref.load %s[%ty, %p] : memref<16x16xf32, #gpu.address_space<workgroup>>
        %w = memref.load %t[%p, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
        %m = arith.mulf %v, %w : f32
        %q = arith.addf %u, %m : f32
        scf.yield %q : f32
      }
      gpu.barrier
      scf.yield %part : f32
    }
    memref.store %sum, %c[%row, %col] : memref<32x32xf32>
    gpu.terminator
  }
  return
}
// ----- TRANSPOSE
// change: %s[%tx, %i] => %s[%i, %tx]
// change: %b[%row, %col] => %b[%i, %col]
func.func @f(%a: memref<64x32xf32>, %b: memref<32x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %bytes = arith.constant 1088 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c4, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c8, %sz = %c1)
             dynamic_shared_memory_size %bytes {
    %m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %s = memref.view %m[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<16x17xf32, #gpu.address_space<workgroup>>
    %row0 = arith.muli %by, %c16 : index
    %col0 = arith.muli %bx, %c16 : index
    scf.for %i = %ty to %c16 step %c8 {
      %row = arith.addi %row0, %i : index
      %col = arith.addi %col0, %tx : index
      %x = memref.load %a[%row, %col] : memref<64x32xf32>
      memref.store %x, %s[%i, %tx] : memref<16x17xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    scf.for %i = %ty to %c16 step %c8 {
      %row = arith.addi %col0, %i : index
      %col = arith.addi %row0, %tx : index
      %x = memref.load %s[%tx, %i] : memref<16x17xf32, #gpu.address_space<workgroup>>
      memref.store %x, %b[%row, %col] : memref<32x64xf32>
    }
    gpu.terminator
  }
  return
}
// ----- TREE
// change: arith.addf %y, %z => arith.maximumf %y, %z
// change: (%half = %c32) => (%half = %c16)
// change: %s[%c0] : memref => %s[%c1] : memref
func.func @f(%a: memref<8x64xf32>, %b: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>>) {
    %x = memref.load %a[%bx, %tx] : memref<8x64xf32>
    memref.store %x, %s[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %last = scf.while (%half = %c32) : (index) -> index {
      %goes = arith.cmpi ugt, %half, %c0 : index
      scf.condition(%goes) %half : index
    } do {
    ^bb0(%half: index):
      %adds = arith.cmpi ult, %tx, %half : index
      scf.if %adds {
        %o = arith.addi %tx, %half : index
        %y = memref.load %s[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
        %z = memref.load %s[%o] : memref<64xf32, #gpu.address_space<workgroup>>
        %w = arith.addf %y, %z : f32
        memref.store %w, %s[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      %less = arith.divui %half, %c2 : index
      scf.yield %less : index
    }
    %is_first = arith.cmpi eq, %tx, %c0 : index
    scf.if %is_first {
      %sum = memref.load %s[%c0] : memref<64xf32, #gpu.address_space<workgroup>>
      memref.store %sum, %b[%bx] : memref<8xf32>
    }
    gpu.terminator
  }
  return
}
// ----- REDUCTIONS
// change: maximumf %acc => minimumf %acc
// change: add %s => mul %s
// change: uge, %bx, %c2 => ugt, %bx, %c2
func.func @f(%a: memref<4x33xf32>, %b: memref<4x33xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c33 = arith.constant 33 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c33, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%bx, %tx] : memref<4x33xf32>
    %s = scf.for %i = %c0 to %bx step %c1 iter_args(%acc = %x) -> (f32) {
      %y = gpu.all_reduce maximumf %acc {} : (f32) -> (f32)
      %u = arith.addf %acc, %y : f32
      scf.yield %u : f32
    }
    %p = arith.cmpi uge, %bx, %c2 : index
    %r = scf.if %p -> f32 {
      %m = gpu.all_reduce add %s {} : (f32) -> (f32)
      scf.yield %m : f32
    } else {
      scf.yield %s : f32
    }
    memref.store %r, %b[%bx, %tx] : memref<4x33xf32>
    gpu.terminator
  }
  return
}
// ----- SHUFFLES
// change: xor %s2, %o2 => xor %s2, %o1
// change: up %x, %o1 => down %x, %o1
// change: %up, %zero => %up, %x
func.func @f(%a: memref<2x64xf32>, %b: memref<2x64xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %w = arith.constant 32 : i32
    %o16 = arith.constant 16 : i32 %o8 = arith.constant 8 : i32 %o4 = arith.constant 4 : i32
    %o2 = arith.constant 2 : i32 %o1 = arith.constant 1 : i32
    %x = memref.load %a[%bx, %tx] : memref<2x64xf32>
    %y0, %k0 = gpu.shuffle xor %x, %o16, %w : f32
    %s0 = arith.addf %x, %y0 : f32
    %y1, %k1 = gpu.shuffle xor %s0, %o8, %w : f32
    %s1 = arith.addf %s0, %y1 : f32
    %y2, %k2 = gpu.shuffle xor %s1, %o4, %w : f32
    %s2 = arith.addf %s1, %y2 : f32
    %y3, %k3 = gpu.shuffle xor %s2, %o2, %w : f32
    %s3 = arith.addf %s2, %y3 : f32
    %y4, %k4 = gpu.shuffle xor %s3, %o1, %w : f32
    %s4 = arith.addf %s3, %y4 : f32
    %up, %ok = gpu.shuffle up %x, %o1, %w : f32
    %before = arith.select %ok, %up, %zero : f32
    %r = arith.subf %s4, %before : f32
    memref.store %r, %b[%bx, %tx] : memref<2x64xf32>
    gpu.terminator
  }
  return
}
// ----- HISTOGRAM
// change: addi %one, %s[%i] => addi %n, %s[%i]
// change: %y = memref.load %s[%tx] => %y = memref.load %s[%c1]
func.func @f(%a: memref<4x64xf32>, %b: memref<4x8xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<8xi32, #gpu.address_space<workgroup>>) {
    %one = arith.constant 1 : i32 %none = arith.constant 0 : i32
    %p = arith.cmpi ult, %tx, %c8 : index
    scf.if %p { memref.store %none, %s[%tx] : memref<8xi32, #gpu.address_space<workgroup>> }
    gpu.barrier
    %x = memref.load %a[%bx, %tx] : memref<4x64xf32>
    %n = arith.fptosi %x : f32 to i32
    %i = arith.index_cast %n : i32 to index
    %old = memref.atomic_rmw addi %one, %s[%i] : (i32, memref<8xi32, #gpu.address_space<workgroup>>) -> i32
    gpu.barrier
    scf.if %p {
      %y = memref.load %s[%tx] : memref<8xi32, #gpu.address_space<workgroup>>
      memref.store %y, %b[%bx, %tx] : memref<4x8xi32>
    }
    gpu.terminator
  }
  return
}
