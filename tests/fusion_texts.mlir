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
// ----- softmax
%least = arith.constant 0xFF800000 : f32
%z = arith.constant 0.0 : f32
%e1 = tensor.empty() : {each}
%e2 = tensor.empty() : {whole}
%f1 = linalg.fill ins(%least : f32) outs(%e1 : {each}) -> {each}
%f2 = linalg.fill ins(%z : f32) outs(%e1 : {each}) -> {each}
%most = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%a_t : {whole})
    outs(%f1 : {each}) {
  ^bb0(%x0: f32, %o: f32):
    %m = arith.maximumf %x0, %o : f32
    linalg.yield %m : f32
} -> {each}
%powers = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%a_t, %most : {whole}, {each})
    outs(%e2 : {whole}) {
  ^bb0(%x0: f32, %x1: f32, %o: f32):
    %d = arith.subf %x0, %x1 : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
} -> {whole}
%sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%powers : {whole})
    outs(%f2 : {each}) {
  ^bb0(%x0: f32, %o: f32):
    %s = arith.addf %x0, %o : f32
    linalg.yield %s : f32
} -> {each}
%r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%powers, %sum : {whole}, {each})
    outs(%out_t : {whole}) attrs = {root} {
  ^bb0(%x0: f32, %x1: f32, %o: f32):
    %q = arith.divf %x0, %x1 : f32
    linalg.yield %q : f32
} -> {whole}
// ----- row_sums
%z = arith.constant 0.0 : f32
%f = linalg.fill ins(%z : f32) outs(%out_t : {each}) -> {each}
%r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%a_t : {whole})
    outs(%f : {each}) attrs = {root} {
  ^bb0(%x0: f32, %o: f32):
    %s = arith.addf %x0, %o : f32
    linalg.yield %s : f32
} -> {each}
// ----- row_means
%z = arith.constant 0.0 : f32
%third = arith.constant 3.0 : f32
%e = tensor.empty() : {each}
%f = linalg.fill ins(%z : f32) outs(%e : {each}) -> {each}
%sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%a_t : {whole})
    outs(%f : {each}) {
  ^bb0(%x0: f32, %o: f32):
    %s = arith.addf %x0, %o : f32
    linalg.yield %s : f32
} -> {each}
%r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%sum : {each})
    outs(%out_t : {each}) attrs = {root} {
  ^bb0(%x0: f32, %o: f32):
    %q = arith.divf %x0, %third : f32
    linalg.yield %q : f32
} -> {each}
// ----- narrow_rows
%z = arith.constant 0.0 : f32
%c1 = arith.constant 1.0 : f32
%e = tensor.empty() : {each}
%f = linalg.fill ins(%z : f32) outs(%e : {each}) -> {each}
%sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%a_t : {whole})
    outs(%f : {each}) {
  ^bb0(%x0: bf16, %o: f32):
    %w = arith.extf %x0 : bf16 to f32
    %q = arith.mulf %w, %w : f32
    %s = arith.addf %q, %o : f32
    linalg.yield %s : f32
} -> {each}
%r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%a_t, %sum : {whole}, {each})
    outs(%out_t : {whole}) attrs = {root} {
  ^bb0(%x0: bf16, %x1: f32, %o: bf16):
    %w = arith.extf %x0 : bf16 to f32
    %d = arith.addf %x1, %c1 : f32
    %q = arith.divf %w, %d : f32
    %t = arith.truncf %q : f32 to bf16
    linalg.yield %t : bf16
} -> {whole}
// ----- layer_norm
%z = arith.constant 0.0 : {s}
%n = arith.constant {n} : {s}
%e1 = tensor.empty() : {each}
%es = tensor.empty() : {sums}
%ew = tensor.empty() : {wide}
%f = linalg.fill ins(%z : {s}) outs(%es : {sums}) -> {sums}
%sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%a_t : {whole})
    outs(%f : {sums}) {
  ^bb0(%x0: f32, %o: {s}):
    %cz = arith.constant 0.0 : {s}
    %w = {extend}
    %t = arith.addf %w, %o : {s}
    linalg.yield %t : {s}
} -> {sums}
%mean = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%sum : {sums})
    outs(%es : {sums}) {
  ^bb0(%x0: {s}, %o: {s}):
    %q = arith.divf %x0, %n : {s}
    linalg.yield %q : {s}
} -> {sums}
%c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%a_t, %mean : {whole}, {sums})
    outs(%ew : {wide}) {
  ^bb0(%x0: f32, %x1: {s}, %o: {s}):
    %cz = arith.constant 0.0 : {s}
    %w = {extend}
    {subtract}
    linalg.yield {centred} : {s}
} -> {wide}
%squares = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%c : {wide})
    outs(%f : {sums}) {
  ^bb0(%x0: {s}, %o: {s}):
    %q = arith.mulf %x0, %x0 : {s}
    %t = arith.addf %q, %o : {s}
    linalg.yield %t : {s}
} -> {sums}
%root = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%squares : {sums})
    outs(%e1 : {each}) {
  ^bb0(%x0: {s}, %o: f32):
    %v = arith.divf %x0, %n : {s}
    %t = {narrow_mean}
    %e = arith.constant 1.0e-5 : f32
    %u = arith.addf %t, %e : f32
    %q = math.rsqrt %u : f32
    linalg.yield %q : f32
} -> {each}
%r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%c, %root, %g_t, %b_t : {wide}, {each}, {scale}, {scale})
    outs(%out_t : {whole}) attrs = {root} {
  ^bb0(%x0: {s}, %x1: f32, %x2: f32, %x3: f32, %o: f32):
    %v = {narrow}
    %p = arith.mulf %v, %x1 : f32
    %q = arith.mulf %p, %x2 : f32
    %s = arith.addf %q, %x3 : f32
    linalg.yield %s : f32
} -> {whole}
