// ----- FUSION
func.func @group({arguments}) {
          {reads}
          %z = arith.constant 0.0 : {sums}
          %e = tensor.empty() : {of_y}
          %zeros = linalg.fill ins(%z : {sums}) outs(%e : {of_y}) -> {of_y}
          %p = {name} {contraction, {steps}{root}}
            ins(%t0, %t1 : {of_x}, {of_w})
            outs(%zeros : {of_y}) -> {of_y}
          {epilogue}
          bufferization.materialize_in_destination %{result}
            in restrict writable %m{last} : ({stored}, {memref}) -> ()
          return
        }
// ----- EPILOGUE
{empty}
          %r = linalg.generic {
            indexing_maps = [{maps}],
            iterator_types = [{parallel}]
          } ins({operands} : {types}) outs({start} : {of_y}) attrs = {root} {
            ^bb0({given}, %o: {output}):
              {lines}
              linalg.yield {yielded} : {output}
          } -> {of_y}
