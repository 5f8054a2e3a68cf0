// ----- VECTORS
%v = vector.broadcast %x0 : f32 to vector<2x4xf32>
%two = arith.constant dense<2.0> : vector<2x4xf32>
%e = math.tanh %v : vector<2x4xf32>
%is = math.isinf %v : vector<2x4xf32>
%f = math.floor %e : vector<2x4xf32>
%g = math.exp2 %e : vector<2x4xf32>
%p = math.powf %g, %two : vector<2x4xf32>
%s = arith.select %is, %f, %p : vector<2x4xi1>, vector<2x4xf32>
%y = vector.extract %s[1, 2] : f32 from vector<2x4xf32>
