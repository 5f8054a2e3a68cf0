// The same without a mask, of one dimension, of floats, and next to masked reductions with an accumulator.
// issue: https://github.com/llvm/llvm-project/issues/129415
// printed: ( 15, 15, 15 )( -2, -2, -2 )( 7, 3.5, 3.5 )( 6, 3 )123.5

func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %three = arith.constant dense<3> : vector<3xi32>
  %five = arith.constant dense<5> : vector<3xi32>
  %product = vector.multi_reduction <mul>, %three, %five [] : vector<3xi32> to vector<3xi32>
  vector.print %product : vector<3xi32>
  %minus = arith.constant dense<-2> : vector<3xi32>
  %least = vector.multi_reduction <minsi>, %three, %minus [] : vector<3xi32> to vector<3xi32>
  vector.print %least : vector<3xi32>
  %float = arith.constant dense<3.5> : vector<3xf32>
  %mask = vector.create_mask %c1 : vector<3xi1>
  %sum = vector.mask %mask { vector.multi_reduction <add>, %float, %float [] : vector<3xf32> to vector<3xf32> }
    : vector<3xi1> -> vector<3xf32>
  vector.print %sum : vector<3xf32>
  %row = arith.constant dense<[[1, 2], [1, 2]]> : vector<2x2xi32>
  %start = arith.constant dense<[3, 3]> : vector<2xi32>
  %corner = vector.create_mask %c1, %c2 : vector<2x2xi1>
  %rows = vector.mask %corner { vector.multi_reduction <add>, %row, %start [1] : vector<2x2xi32> to vector<2xi32> }
    : vector<2x2xi1> -> vector<2xi32>
  vector.print %rows : vector<2xi32>
  %acc = arith.constant 100.0 : f32
  %steps = arith.constant dense<[23.5, 4.0, 8.0]> : vector<3xf32>
  %all = vector.mask %mask { vector.reduction <add>, %steps, %acc : vector<3xf32> into f32 } : vector<3xi1> -> f32
  vector.print %all : f32
  return
}
