// Package single has a program run on one processor for its first moments. A command that is
// over by then does not pay for threads that hand its few steps to one another, which are a tenth
// of its processor time. The package imports nothing else, so that it begins before most others.
package single

import "runtime"

var usual = runtime.GOMAXPROCS(1)

// For is how long a program runs on one processor, in nanoseconds.
const For = 20_000_000

// End gives the program all its processors.
func End() {
	runtime.SetDefaultGOMAXPROCS() // it follows the limits of a control group
	if runtime.GOMAXPROCS(0) != usual {
		runtime.GOMAXPROCS(usual) // as the environment says
	}
}
