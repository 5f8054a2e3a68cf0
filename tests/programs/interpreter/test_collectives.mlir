// ----- REGION
%r = gpu.all_reduce %x {
^bb0(%one: f64, %other: f64):
  %p = arith.cmpf ogt, %one, %other : f64
  %larger = scf.if %p -> f64 { scf.yield %one : f64 } else { scf.yield %other : f64 }
  gpu.yield %larger : f64
} : (f64) -> f64
// ----- WHOLE_BLOCKS
%c0 = arith.constant 0 : index %c1 = arith.constant 1 : index
%zero = arith.constant 0.0 : f64
%bound = arith.addi %b, %c1 : index
%s = scf.for %i = %c0 to %bound step %c1 iter_args(%acc = %zero) -> (f64) {
  %y = gpu.all_reduce add %x uniform {} : (f64) -> (f64)
  %u = arith.addf %acc, %y : f64
  scf.yield %u : f64
}
%p = arith.cmpi eq, %b, %c1 : index
%r = scf.if %p -> f64 {
  gpu.barrier
  %m = gpu.all_reduce maximumf %s {} : (f64) -> (f64)
  scf.yield %m : f64
} else { scf.yield %s : f64 }
// ----- SOME_LANES
%c10 = arith.constant 10 : index
%p = arith.cmpi ult, %t, %c10 : index
%r = scf.if %p -> f64 {
  %s = gpu.subgroup_reduce add %x : (f64) -> f64
  scf.yield %s : f64
} else { scf.yield %x : f64 }
// ----- PLACE
%tx = gpu.thread_id x %ty = gpu.thread_id y %tz = gpu.thread_id z
%bx = gpu.block_id x %by = gpu.block_id y %bz = gpu.block_id z
%c2 = arith.constant 2 : index %c3 = arith.constant 3 : index
%c4 = arith.constant 4 : index %c5 = arith.constant 5 : index
%p0 = arith.muli %tz, %c4 : index %p1 = arith.addi %p0, %ty : index
%p2 = arith.muli %p1, %c5 : index %p = arith.addi %p2, %tx : index
%q0 = arith.muli %bz, %c3 : index %q1 = arith.addi %q0, %by : index
%q2 = arith.muli %q1, %c2 : index %q = arith.addi %q2, %bx : index
