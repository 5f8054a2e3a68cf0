// ----- GUARDED_DIVISION
%z = arith.constant 0 : i32
%p = arith.cmpi ne, %b, %z : i32
%r = scf.if %p -> i32 {
  %q = arith.divsi %a, %b : i32
  scf.yield %q : i32
} else { scf.yield %z : i32 }
