// Package delay is a link between places that are far apart: a TCP proxy that
// delivers every byte a fixed time after it was sent, and that can be cut and
// healed. It stands in for a kernel's network emulation where that is missing.
//
// # What is like a real link, and what is not
//
// Each direction has its own delay, and bytes keep their distance: what is sent
// over half a second arrives over half a second. A connection reaches the other
// side one delay after it was opened, but is open for its maker at once: the
// first exchange takes a round trip, where a real one takes two.
//
// A link that is cut carries nothing, and says so to nobody: what is under way
// waits, as retransmissions do, and new connections open without an answer.
// Healed, it goes on where it was. There is no loss, no reordering and no limit
// of bandwidth: a stream hides the first two, and the last is not what is studied.
package delay
