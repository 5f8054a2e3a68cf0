// ----- CONVOLUTION
%z = arith.constant {zero} : {sums}
%e = tensor.empty() : {y}
%zeros = linalg.fill ins(%z : {sums}) outs(%e : {y}) -> {y}
%p = {name} {contraction, {attributes}} ins({input}, %w_t : {x}, {w}) outs(%zeros : {y}) -> {y}

// ----- PADDING
%nothing = arith.constant 0.0 : {element}
%padded = tensor.pad %x_t low[0, 0, {top}, {left}] high[0, 0, {bottom}, {right}] {
^bb0(%n: index, %c: index, %h: index, %w_at: index):
  tensor.yield %nothing : {element}
} : {x} to {padded}
