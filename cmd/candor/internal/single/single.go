// Package single makes a program run on one processor for its first moments. A command that ends
// within them does not pay for threads that pass its few steps to one another, which is a tenth of
// its processor time. The package imports nothing else, so that it starts before most others.
package single

import "runtime"

var usual = runtime.GOMAXPROCS(1)

// For is how long a program runs on one processor, in nanoseconds.
const For = 20_000_000

// End gives the program all its processors.
func End() {
	runtime.SetDefaultGOMAXPROCS() // sets it from the limits of the control group
	if runtime.GOMAXPROCS(0) != usual {
		runtime.GOMAXPROCS(usual) // the environment sets it
	}
}
