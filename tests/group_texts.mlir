// ----- none
%r = arith.addf %x0, %cz : {e}
// ----- bias
%r = arith.addf %x0, %x1 : {e}
// ----- bias_relu
%s = arith.addf %x0, %x1 : {e}
%t = arith.cmpf ugt, %s, %cz : {e}
%r = arith.select %t, %s, %cz : {e}
// ----- gelu
%s = arith.addf %x0, %x1 : {e}
%ch = arith.constant 0.5 : {e}
%cs = arith.constant 0.70710678 : {e}
%c1 = arith.constant 1.0 : {e}
%u = arith.mulf %s, %cs : {e}
%v = math.erf %u : {e}
%w = arith.addf %v, %c1 : {e}
%y = arith.mulf %w, %ch : {e}
%r = arith.mulf %s, %y : {e}
// ----- silu
%c1 = arith.constant 1.0 : {e}
%s = arith.negf %x0 : {e}
%u = math.exp %s : {e}
%v = arith.addf %u, %c1 : {e}
%r = arith.divf %x0, %v : {e}
// ----- residual
%r = arith.addf %x0, %x1 : {e}
// ----- scale
%cs = arith.constant 0.125 : {e}
%r = arith.mulf %x0, %cs : {e}
// ----- squares_narrow
%w = arith.extf %x0 : bf16 to f32
%q = arith.mulf %w, %w : f32
%s = arith.addf %q, %o : f32
linalg.yield %s : f32
// ----- divide_narrow
%w = arith.extf %x0 : bf16 to f32
%d = arith.addf %x1, %c1 : f32
%q = arith.divf %w, %d : f32
%t = arith.truncf %q : f32 to bf16
linalg.yield %t : bf16
// ----- inverse_root
%v = arith.divf %x0, %n : {s}
%t = {narrow}
%e = arith.constant 1.0e-5 : f32
%u = arith.addf %t, %e : f32
%q = math.rsqrt %u : f32
linalg.yield %q : f32
// ----- scale_and_shift
%v = {narrow}
%p = arith.mulf %v, %x1 : f32
%q = arith.mulf %p, %x2 : f32
%s = arith.addf %q, %x3 : f32
linalg.yield %s : f32
