// Package single makes a program run on one processor for its first 20 milliseconds, in which short commands end.
// Otherwise the Go runtime would use a tenth of their processor time to pass work between threads. The package imports
// only the runtime, so it is initialised first.
package single

import "runtime"

var usual = runtime.GOMAXPROCS(1)

// A program begins with one processor. For is the time after which it may use all processors, in nanoseconds.
const For = 20_000_000

// End ends the limit to one processor. From then on, the program may use all its processors.
func End() {
	runtime.SetDefaultGOMAXPROCS() // reads the number from the limits of the control group
	if runtime.GOMAXPROCS(0) != usual {
		runtime.GOMAXPROCS(usual) // the environment sets the number of processors
	}
}
