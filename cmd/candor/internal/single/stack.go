package single

// A stack that grows late is copied with all frames on it, and reads the tables of their
// functions. The first goroutine, which initialises the packages and runs the command, has
// its whole stack before it has frames.
var _ = reserve(0)

const stack = 17 << 10 // bytes; the stack becomes 32 KiB, the next power of two

//go:noinline
func reserve(n int) byte {
	if n == 0 { // the frame is reserved, and not touched
		return 0
	}
	var frame [stack]byte
	fill(&frame)
	return frame[n]
}

//go:noinline
func fill(frame *[stack]byte) { frame[0] = 1 }
