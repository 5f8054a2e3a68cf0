// ----- POINTERS
func.func @f(%x: memref<4xf32>, %y: memref<4xf32>, %flag: i1, %i: i64) {
  %n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
  %m = memref.extract_aligned_pointer_as_index %y : memref<4xf32> -> index
  %s = scf.if %flag -> index { scf.yield %n : index } else { scf.yield %m : index }
  %w = arith.index_cast %s : index to i64
  %q = arith.addi %w, %i : i64
  %p = llvm.inttoptr %q : i64 to !llvm.ptr
  %e = llvm.inttoptr %i : i64 to !llvm.ptr
  return
}
// ----- CHOSEN_POINTERS
func.func @f(%x: memref<4xf32>, %y: memref<4xf32>, %flag: i1, %i: i64, %b: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : i64
  %n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
  %m = memref.extract_aligned_pointer_as_index %y : memref<4xf32> -> index
  %w = arith.index_cast %n : index to i64
  %v = arith.index_cast %m : index to i64
  %both = arith.select %flag, %w, %v : i64
  %one = arith.select %flag, %w, %i : i64
  %branch = scf.if %flag -> i64 { scf.yield %w : i64 } else { scf.yield %i : i64 }
  %walk = scf.for %k = %c0 to %b step %b iter_args(%at = %w) -> i64 {
    %next = arith.addi %at, %c4 : i64
    scf.yield %next : i64
  }
  %lost = scf.for %k = %c0 to %b step %b iter_args(%at = %w) -> i64 {
    %next = arith.addi %i, %c4 : i64
    scf.yield %next : i64
  }
  %moved = arith.addi %one, %c4 : i64
  %p0 = llvm.inttoptr %both : i64 to !llvm.ptr
  %p1 = llvm.inttoptr %walk : i64 to !llvm.ptr
  %p2 = llvm.inttoptr %one : i64 to !llvm.ptr
  %p3 = llvm.inttoptr %branch : i64 to !llvm.ptr
  %p4 = llvm.inttoptr %lost : i64 to !llvm.ptr
  %p5 = llvm.inttoptr %moved : i64 to !llvm.ptr
  return
}
// ----- HANDED_ON
func.func @f(%g: memref<4xf32>, %a: index, %flag: i1) {
  %x = gpu.alloc () : memref<4xf32>
  %n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
  %r:2 = scf.while (%w = %n, %k = %a) : (index, index) -> (index, index) {
    scf.condition(%flag) %k, %w : index, index
  } do {
  ^bb0(%k: index, %w: index):
    scf.yield %w, %k : index, index
  }
  %s = scf.index_switch %a -> index case 0 { scf.yield %r#1 : index } default { scf.yield %a : index }
  %t = scf.for %i = %n to %a step %a iter_args(%c = %s) -> (index) { scf.yield %n : index }
  return
}
// ----- MODULE
module attributes {gpu.container_module} {
      func.func private @printMemrefF32(memref<*xf32>)
      func.func private @other(memref<4xf32>)
      MORE
      func.func @f(%g: memref<4xf32>, %a: index, %flag: i1, %box: memref<index>, %many: memref<?xf32>, %one: f32) {
        BODY
        return
      }
    }
// ----- OF_SETS
func.func @main(%a: memref<16xf32>, %b: memref<16xf32>, %c: memref<16xf32>, %flag: i1, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    BODY
    return
  }
// ----- OF_ROOTS
module {
  memref.global @g : memref<16xf32> = dense<0.0>
  func.func private @use(VTYPE)
  func.func private @other(%a: memref<16xf32>) -> memref<16xf32>
  func.func @main(%a: memref<16xf32>, %b: memref<16xf32>, %c: i1, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    BODY
    call @use(%v) : (VTYPE) -> ()
    return
  }
}
// ----- WHILE
%w:2 = scf.while (%x = %a, %z = %c0) : (memref<16xf32>, index) -> (index, memref<16xf32>) {
  %go = arith.cmpi slt, %z, %n : index
  scf.condition(%go) %z, %x : index, memref<16xf32>
} do {
^bb0(%z: index, %x: memref<16xf32>):
  %next = arith.addi %z, %c1 : index
  scf.yield %x, %next : memref<16xf32>, index
}
%v = memref.cast %w#1 : memref<16xf32> to memref<16xf32>
// ----- sizes_of_a_view
%b, %o, %size, %stride = memref.extract_strided_metadata %x
  : memref<4xf32> -> memref<f32>, index, index, index
%l = memref.load %b[] : memref<f32>
%s = arith.addi %size, %size : index
// ----- a_loaded_number
%i = memref.alloc() : memref<4xindex>
%l = memref.load %x[%a] : memref<4xf32>
%s = arith.addf %l, %l : f32
// ----- arithmetic
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
%s = arith.addi %n, %a : index
// ----- a_vector
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
%v = vector.broadcast %n : index to vector<2xindex>
%s = vector.extract %v[0] : index from vector<2xindex>
// ----- a_number_of_64_bits
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
%w = arith.index_cast %n : index to i64
%d = arith.bitcast %w : i64 to f64
%s = arith.select %flag, %d, %d : f64
%r = arith.bitcast %s : f64 to i64
// ----- a_struct
%u = llvm.mlir.undef : !llvm.struct<(i64, i64)>
%st = builtin.unrealized_conversion_cast %x : memref<4xf32> to !llvm.ptr
%w = llvm.ptrtoint %st : !llvm.ptr to i64
%in = llvm.insertvalue %w, %u[1] : !llvm.struct<(i64, i64)>
// ----- a_tuple
%tu = builtin.unrealized_conversion_cast %x : memref<4xf32> to tuple<memref<4xf32>>
%y = builtin.unrealized_conversion_cast %tu : tuple<memref<4xf32>> to memref<4xf32>
%l = memref.load %y[%a] : memref<4xf32>
// ----- a_region_that_is_not_known
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
%r = scf.execute_region -> index { cf.br ^bb1(%n : index) ^bb1(%z: index): scf.yield %z : index }
%s = arith.addi %r, %a : index
// ----- the_bound_of_a_loop
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
scf.for %i = %n to %n step %a { %s = arith.addi %i, %a : index }
// ----- an_address
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
memref.store %n, %box[] : memref<index>
// ----- a_sum
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
%s = arith.addi %n, %a : index
memref.store %s, %box[] : memref<index>
// ----- a_memref
%b = memref.alloc() : memref<memref<4xf32>>
memref.store %x, %b[] : memref<memref<4xf32>>
// ----- machine_code
%p = builtin.unrealized_conversion_cast %x : memref<4xf32> to !llvm.ptr
llvm.inline_asm has_side_effects "keep $0", "l" %p : (!llvm.ptr) -> ()
// ----- machine_code_of_a_GPU
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
%w = arith.index_cast %n : index to i64
nvvm.inline_ptx "st.global.b64 [$0], $1;" ro (%w, %w : i64, i64)
// ----- a_scatter
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
%v = vector.broadcast %n : index to vector<2xindex>
%w = arith.index_cast %v : vector<2xindex> to vector<2xi64>
%p = llvm.inttoptr %w : vector<2xi64> to vector<2x!llvm.ptr>
%m = vector.broadcast %flag : i1 to vector<2xi1>
llvm.intr.masked.scatter %w, %p, %m {alignment = 8 : i32}
  : vector<2xi64>, vector<2xi1> into vector<2x!llvm.ptr>
// ----- a_second_output
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
  outs(%box, %box : memref<index>, memref<index>) {
  ^bb0(%o: index, %q: index): linalg.yield %a, %n : index, index }
// ----- a_fill
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
linalg.fill ins(%n : index) outs(%box : memref<index>)
// ----- an_unknown_function
call @other(%x) : (memref<4xf32>) -> ()
// ----- as_an_index
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
%s = memref.load %many[%n] : memref<?xf32>
// ----- at_an_address
%n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
memref.store %one, %many[%n] : memref<?xf32>
// ----- printed
%u = memref.cast %x : memref<4xf32> to memref<*xf32>
call @printMemrefF32(%u) : (memref<*xf32>) -> ()
// ----- COPIED
%t0 = gpu.wait async
%x, %t1 = gpu.alloc async [%t0] () : memref<4xf32>
%t2 = gpu.memcpy async [%t1] %x, %g : memref<4xf32>, memref<4xf32>
%t3 = gpu.wait async [%t2]
gpu.wait [%t3]
// ----- LAUNCHED
%x = gpu.alloc () : memref<4xf32>
%t = gpu.launch async blocks(%b0, %b1, %b2) in (%g0 = %a, %g1 = %a, %g2 = %a)
  threads(%t0, %t1, %t2) in (%s0 = %a, %s1 = %a, %s2 = %a) {
  memref.store %one, %x[%t0] : memref<4xf32>
  gpu.terminator
}
gpu.wait [%t]
// ----- CARRIED
%x = gpu.alloc () : memref<4xf32>
%s = arith.select %flag, %x, %g : memref<4xf32>
%r = scf.for %i = %a to %a step %a iter_args(%p = %s) -> (memref<4xf32>) {
  %c = memref.cast %p : memref<4xf32> to memref<?xf32>
  scf.yield %g : memref<4xf32>
}
// ----- KERNEL_LAUNCHED
gpu.launch_func @m::@k blocks in (%a, %a, %a) threads in (%a, %a, %a)
  args(%x : memref<4xf32>, %box : memref<index>)
// ----- KERNEL
gpu.module @m { gpu.func @k(%p: memref<4xf32>, %box: memref<index>) kernel {
  %n = memref.extract_aligned_pointer_as_index %p : memref<4xf32> -> index
  BODY
  gpu.return
} }
// ----- SWAP
%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (memref<16xf32>, memref<16xf32>) {
  scf.yield %y, %x : memref<16xf32>, memref<16xf32>
}
// ----- VIEW_OF_A_VIEW
%s = memref.subview %a[4] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: 4>>
%v = memref.expand_shape %s [[0, 1]] output_shape [2, 2]
  : memref<4xf32, strided<[1], offset: 4>> into memref<2x2xf32, strided<[2, 1], offset: 4>>
// ----- CASTS_IN_A_LOOP
%v = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (memref<16xf32>) {
  %s = memref.cast %x : memref<16xf32> to memref<?xf32>
  %t = memref.cast %s : memref<?xf32> to memref<16xf32>
  scf.yield %t : memref<16xf32>
}
