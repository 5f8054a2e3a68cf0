// ----- ONE_LARGE
%ones = arith.constant dense<1.0> : {kind}
      %v = vector.insert %x0, %ones[{last}] : f64 into {kind}
      %s = math.sin %v : {kind}
      %first = vector.extract %s[{first}] : f64 from {kind}
      %last = vector.extract %s[{last}] : f64 from {kind}
      %y = arith.subf %last, %first : f64
