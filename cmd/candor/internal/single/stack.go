package single

// When a stack grows, Go copies it with all its frames. This is cheap while the stack has few frames. So this call
// makes the stack of the first goroutine, which later runs the command, grow to its full size at the start.
var _ = reserve(0)

const stack = 17 << 10 // bytes; the stack then has 32 KiB, the next power of two

//go:noinline
func reserve(n int) byte {
	if n == 0 { // the frame is reserved, but its memory is not touched
		return 0
	}
	var frame [stack]byte
	fill(&frame)
	return frame[n]
}

//go:noinline
func fill(frame *[stack]byte) { frame[0] = 1 }
