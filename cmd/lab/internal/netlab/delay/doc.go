// Package delay simulates a link between distant places: a TCP proxy that delivers every byte a fixed time after it was
// sent, and that can be cut and healed. It is used where the kernel's network emulation is missing.
//
// # Differences from a real link
//
// Each direction has its own delay. If two bytes are sent half a second apart, they arrive half a second apart. A
// connection reaches the other side one delay after it was opened, but the side that opened it can use it at once. So
// the first exchange takes one round trip; on a real link it takes two.
//
// A cut link carries nothing and reports no error. Bytes on the way wait, as with retransmissions. New connections
// open, but get no answer. A healed link continues where it stopped. There is no loss, no reordering and no limit of
// bandwidth: a TCP stream hides loss and reordering, and bandwidth is not studied.
package delay
