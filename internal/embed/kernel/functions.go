package kernel

// Functions of few numbers have one code for all machines.

// Tanh replaces each x by its hyperbolic tangent, to 2·10⁻⁷.
func Tanh(x []float32) {
	for i, v := range x {
		e := exp(float32(abs(v) * -2))
		t := (1 - e) / (1 + e)
		if v < 0 {
			t = -t
		}
		x[i] = t
	}
}

// Softmax replaces numbers by positive ones whose sum is 1, each the exponential of
// what was there but for a common factor.
func Softmax(x []float32) {
	if len(x) == 0 {
		return
	}
	sum := expSum(x, 1)
	for i, v := range x {
		x[i] = v / sum
	}
}
