// ----- GUARDED_DIVISION
%z = arith.constant 0 : i32
%p = arith.cmpi ne, %b, %z : i32
%r = scf.if %p -> i32 {
  %q = arith.divsi %a, %b : i32
  scf.yield %q : i32
} else { scf.yield %z : i32 }
// ----- WHILE
%r, %last = scf.while (%n = %c0, %x = %a) : (i64, i64) -> (i64, i64) {
    %goes = arith.cmpi ne, %x, %c1 : i64
    scf.condition(%goes) %n, %x : i64, i64
  } do {
  ^bb0(%n: i64, %x: i64):
    %low = arith.andi %x, %c1 : i64
    %odd = arith.cmpi eq, %low, %c1 : i64
    %y = scf.if %odd -> i64 {
      %w = arith.muli %x, %c3 : i64
      %u = arith.addi %w, %c1 : i64
      scf.yield %u : i64
    } else {
      %h = arith.divsi %x, %c2 : i64
      scf.yield %h : i64
    }
    %m = arith.addi %n, %c1 : i64
    scf.yield %m, %y : i64, i64
  }
// ----- GRAPH
cf.br ^head(%c0, %a : i64, i64)
  ^head(%n: i64, %x: i64):
    %goes = arith.cmpi ne, %x, %c1 : i64
    cf.cond_br %goes, ^body, ^exit
  ^body:
    %low = arith.andi %x, %c1 : i64
    %odd = arith.cmpi eq, %low, %c1 : i64
    %m = arith.addi %n, %c1 : i64
    cf.cond_br %odd, ^up, ^down
  ^up:
    %w = arith.muli %x, %c3 : i64
    %u = arith.addi %w, %c1 : i64
    cf.br ^head(%m, %u : i64, i64)
  ^down:
    %h = arith.divsi %x, %c2 : i64
    cf.br ^head(%m, %h : i64, i64)
  ^exit:
%r = arith.addi %n, %c0 : i64
// ----- JUMPS
%w = arith.trunci %a : i64 to i32
    cf.switch %w : i32, [
      default: ^end(%c5 : i64),
      2: ^end(%c1 : i64),
      7: ^seven(%a : i64)
    ]
  ^seven(%x: i64):
    %y = arith.muli %x, %c2 : i64
    cf.br ^end(%y : i64)
  ^end(%r: i64):
// ----- FOR
%lo = arith.index_cast %a : i64 to index
  %hi = arith.index_cast %b : i64 to index
  %by = arith.index_cast %c : i64 to index
  %r = scf.for %i = %lo to %hi step %by iter_args(%s = %c0) -> (i64) {
    %x = arith.index_cast %i : index to i64
    %q = arith.muli %x, %x : i64
    %u = arith.addi %s, %q : i64
    scf.yield %u : i64
  }
// ----- SWITCH
%i = arith.index_cast %a : i64 to index
  %r = scf.index_switch %i -> i64
  case 2 { scf.yield %c1 : i64 }
  case 7 {
    %x = arith.muli %a, %c2 : i64
    scf.yield %x : i64
  }
  default { scf.yield %c5 : i64 }
// ----- SQUARES

      cf.br ^head(%c0 : i64)
    ^head(%n: i64):
      %square = arith.muli %n, %n : i64
      %next = arith.addi %n, %c1 : i64
      %goes = arith.cmpi slt, %next, %a : i64
      cf.cond_br %goes, ^head(%next : i64), ^exit
    ^exit:
      %r = arith.addi %square, %c0 : i64
// ----- EARLY_RETURN
%t = gpu.thread_id x
  %four = arith.constant 4 : index
  %one = arith.constant 1 : i64
  %large = arith.cmpi uge, %t, %four : index
  cf.cond_br %large, ^end, ^more
^end:
  gpu.return
^more:
  gpu.barrier
  %s = gpu.all_reduce add %one {} : (i64) -> (i64)
  memref.store %s, %0[%t] : memref<8xi64>
// ----- UNSIGNED
%zero = arith.constant 0 : i8 %one = arith.constant 1 : i8
%r = scf.for unsigned %i = %zero to %a step %one iter_args(%s = %zero) -> (i8) : i8 {
  %u = arith.addi %s, %one : i8
  scf.yield %u : i8
}
// ----- FUNCTIONS
func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }
func.func @early(%x: f32) -> f32 {
  %zero = arith.constant 0.0 : f32
  %p = arith.cmpf olt, %x, %zero : f32
  cf.cond_br %p, ^negative, ^other
^negative:
  return %zero : f32
^other:
  %y = func.call @twice(%x) : (f32) -> f32
  return %y : f32
}
// ----- CALL
%t = gpu.thread_id x
%x = memref.load %0[%t] : memref<4xf32>
%y = func.call @early(%x) : (f32) -> f32
gpu.barrier
memref.store %y, %0[%t] : memref<4xf32>
// ----- NEST
%c0 = arith.constant 0 : index %c1 = arith.constant 1 : index
%c3 = arith.constant 3 : index %c4 = arith.constant 4 : index
scf.parallel (%i, %j) = (%c0, %c0) to (%c3, %c4) step (%c1, %c1) {
  %s = arith.muli %i, %j : index
  %x = arith.index_cast %s : index to i64
  memref.store %x, %0[%i, %j] : memref<3x4xi64>
}
// ----- ELEMENTS
%v = arith.constant CONSTANT
%t = gpu.thread_id x
%e = vector.extract %v[%t] : KIND from vector<COUNTxKIND>
%w = arith.WIDEN %e : KIND to f64
memref.store %w, %0[%t] : memref<COUNTxf64>
// ----- SCALE
%t = gpu.thread_id x
%x = memref.load %0[%t] : KIND
%y = arith.mulf %x, %1 : f32
memref.store %y, %0[%t] : KIND
