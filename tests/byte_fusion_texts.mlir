// ----- bias
%r = arith.addi %x0, %x1 : i32
// ----- relu
%c0 = arith.constant 0 : i32
%r = arith.maxsi %x0, %c0 : i32
// ----- scale
%w = arith.sitofp %x0 : i32 to f32
%cs = arith.constant 0.0078125 : f32
%s = arith.mulf %w, %cs : f32
%r = arith.addf %s, %s : f32
// ----- columns
%w = arith.sitofp %x0 : i32 to f32
%s = arith.mulf %w, %x1 : f32
%t = arith.addf %s, %x2 : f32
%c0 = arith.constant 0.0 : f32
%c = arith.cmpf ugt, %t, %c0 : f32
%r = arith.select %c, %t, %c0 : f32
// ----- residual
%w = arith.sitofp %x0 : i32 to f32
%s = arith.mulf %w, %x1 : f32
%r = arith.addf %s, %x2 : f32
// ----- requantized
%w = arith.sitofp %x0 : i32 to f32
%cs = arith.constant 0.0078125 : f32
%s = arith.mulf %w, %cs : f32
%e = math.roundeven %s : f32
%least = arith.constant -128.0 : f32
%greatest = arith.constant 127.0 : f32
%u = arith.maximumf %e, %least : f32
%v = arith.minimumf %u, %greatest : f32
%r = arith.fptosi %v : f32 to i8
// ----- quantized
%by = arith.constant 32.0 : f32
%least = arith.constant -128.0 : f32
%greatest = arith.constant 127.0 : f32
%s = arith.mulf %x0, %by : f32
%e = math.roundeven %s : f32
%is_less = arith.cmpf olt, %e, %least : f32
%t = arith.select %is_less, %least, %e : f32
%is_more = arith.cmpf ogt, %t, %greatest : f32
%u = arith.select %is_more, %greatest, %t : f32
%q = arith.fptosi %u : f32 to i8
linalg.yield %q : i8
