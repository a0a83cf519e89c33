package delay

import (
	"context"
	"io"
	"sync"
	"time"
)

const (
	chunkBytes = 32 << 10
	// inFlight is the largest number of data chunks that are on their way in one direction of a link. With more, the
	// sender waits.
	inFlight = 256
)

// gate decides when the data of one direction of a link arrives. Data arrives a fixed delay after it was sent. While
// the link is cut, no data arrives.
type gate struct {
	oneWay time.Duration

	mu   sync.Mutex
	open chan struct{} // closed while the link is not cut
}

func newGate(oneWay time.Duration) *gate {
	g := &gate{oneWay: oneWay, open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) whole() bool {
	select {
	case <-g.open:
		return true
	default:
		return false
	}
}

func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.whole() {
		g.open = make(chan struct{})
	}
}

func (g *gate) heal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.whole() {
		close(g.open)
	}
}

// The method wait waits until data that was sent at the given time has reached the other end. If ctx ends before that,
// it returns ctx's error.
func (g *gate) wait(ctx context.Context, sent time.Time) error {
	timer := time.NewTimer(time.Until(sent.Add(g.oneWay)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// chunk is a piece of data on its way. An empty chunk means that the sender has closed its side.
type chunk struct {
	data []byte
	sent time.Time
}

// forward delivers data from src to dst with the gate's delay, until src ends. Then it closes both, also with the
// delay.
func forward(ctx context.Context, dst io.WriteCloser, src io.ReadCloser, g *gate) {
	under := make(chan chunk, inFlight)
	var reading sync.WaitGroup
	reading.Go(func() { read(ctx, src, under) })
	for c := range under {
		if g.wait(ctx, c.sent) != nil {
			break
		}
		if len(c.data) == 0 {
			break
		}
		if _, err := dst.Write(c.data); err != nil {
			break
		}
	}
	_ = dst.Close()
	_ = src.Close() // closing the source ends the reader
	for range under {
	}
	reading.Wait()
}

// read reads data from `src`, and sends each piece with the time of its arrival to a channel. The end of `src` is sent
// as an empty chunk.
func read(ctx context.Context, src io.Reader, under chan<- chunk) {
	defer close(under)
	for {
		buffer := make([]byte, chunkBytes)
		n, err := src.Read(buffer)
		now := time.Now()
		if n > 0 {
			under <- chunk{buffer[:n], now}
		}
		if err != nil {
			under <- chunk{nil, now}
			return
		}
		if ctx.Err() != nil {
			return
		}
	}
}
