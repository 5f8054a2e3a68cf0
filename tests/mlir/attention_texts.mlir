// ----- ATTENTION
%least = arith.constant {least} : {e}
%z = arith.constant 0.0 : {e}
%true = arith.constant true
%scale = arith.constant 0.125 : {e}
%e0 = tensor.empty() : {scores}
%f0 = linalg.fill ins(%z : {e}) outs(%e0 : {scores}) -> {scores}
%e1 = tensor.empty() : {row}
%f1 = linalg.fill ins(%least : {e}) outs(%e1 : {row}) -> {row}
%e2 = tensor.empty() : {row}
%f2 = linalg.fill ins(%z : {e}) outs(%e2 : {row}) -> {row}
%e3 = tensor.empty() : {truths}
%f3 = linalg.fill ins(%true : i1) outs(%e3 : {truths}) -> {truths}
%e4 = tensor.empty() : {out}
%f4 = linalg.fill ins(%z : {e}) outs(%e4 : {out}) -> {out}
%p = {matmul} {contraction} ins(%q_t, %k_t : {q}, {k}) outs(%f0 : {scores}) -> {scores}
%s = linalg.generic {indexing_maps = [{whole}{mask_map}, {whole}], iterator_types = [{parallel}]}
    ins(%p{mask} : {scores}{mask_type}) outs(%e0 : {scores}) {
  ^bb0(%x0: {e}{mask_element}, %o: {e}):
    %v0 = {change} : {e}
    linalg.yield %v0 : {e}
} -> {scores}
%most = linalg.generic {indexing_maps = [{whole}, {by_row}], iterator_types = [{reduced}]}
    ins(%s : {scores}) outs(%f1 : {row}) {
  ^bb0(%x0: {e}, %o: {e}):
    %v0 = arith.maximumf %x0, %o : {e}
    linalg.yield %v0 : {e}
} -> {row}
%powers = linalg.generic {indexing_maps = [{whole}, {by_row}, {whole}], iterator_types = [{parallel}]}
    ins(%s, %most : {scores}, {row}) outs(%e0 : {scores}) {
  ^bb0(%x0: {e}, %x1: {e}, %o: {e}):
    %v0 = arith.subf %x0, %x1 : {e}
    %v1 = math.exp %v0 : {e}
    linalg.yield %v1 : {e}
} -> {scores}
%sum = linalg.generic {indexing_maps = [{whole}, {by_row}], iterator_types = [{reduced}]}
    ins(%powers : {scores}) outs(%f2 : {row}) {
  ^bb0(%x0: {e}, %o: {e}):
    %v0 = arith.addf %x0, %o : {e}
    linalg.yield %v0 : {e}
} -> {row}
{weights}
%u = {matmul} {marks} ins(%w, %v_t : {scores}, {v}) outs(%f4 : {out}) -> {out}
// ----- WEIGHTS
%w = linalg.generic {indexing_maps = [{whole}, {by_row}, {whole}], iterator_types = [{parallel}]}
    ins(%powers, %sum : {scores}, {row}) outs(%e0 : {scores}) {
  ^bb0(%x0: {e}, %x1: {e}, %o: {e}):
    %v0 = arith.divf %x0, %x1 : {e}
    linalg.yield %v0 : {e}
} -> {scores}
// ----- WEIGHTS_OF_HIDDEN_ROWS
%hidden = linalg.generic {indexing_maps = [{whole}, {by_row}], iterator_types = [{reduced}]}
    ins(%s : {scores}) outs(%f3 : {truths}) {
  ^bb0(%x0: {e}, %o: i1):
    %v0 = arith.cmpf oeq, %x0, %least : {e}
    %v1 = arith.andi %v0, %o : i1
    linalg.yield %v1 : i1
} -> {truths}
%w = linalg.generic {indexing_maps = [{whole}, {by_row}, {by_row}, {whole}], iterator_types = [{parallel}]}
    ins(%powers, %sum, %hidden : {scores}, {row}, {truths}) outs(%e0 : {scores}) {
  ^bb0(%x0: {e}, %x1: {e}, %x2: i1, %o: {e}):
    %v0 = arith.divf %x0, %x1 : {e}
    %v1 = arith.select %x2, %z, %v0 : {e}
    linalg.yield %v1 : {e}
} -> {scores}
// ----- RESIDUAL
%y = linalg.generic {indexing_maps = [{whole}, {whole}, {whole}], iterator_types = [{parallel}]}
    ins(%u, %r_t : {out}, {out}) outs(%out_t : {out}) attrs = {root} {
  ^bb0(%x0: {e}, %x1: {e}, %o: {e}):
    %v0 = arith.addf %x0, %x1 : {e}
    linalg.yield %v0 : {e}
} -> {out}
