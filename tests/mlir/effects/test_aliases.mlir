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
