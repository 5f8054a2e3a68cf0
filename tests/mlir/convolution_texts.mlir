// ----- CONVOLUTION
%z = arith.constant 0.0 : {sums}
%e = tensor.empty() : {y}
%zeros = linalg.fill ins(%z : {sums}) outs(%e : {y}) -> {y}
%p = {name} {contraction, {attributes}} ins(%x_t, %w_t : {x}, {w}) outs(%zeros : {y}) -> {y}
