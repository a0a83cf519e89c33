package stream

import (
	"os"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Key identifies a stream. If the name is "", it is the stream of the task itself. Otherwise it is a stream that a
// client began for a command of its own, in addition to the task.
type Key struct {
	Attempt messages.Attempt
	Name    string // "" means the task's own
}

// These constants limit the streams of a node.
const (
	maxStreams     = 512             // streams of a node, including ended ones that are still read
	maxTaskStreams = 32              // streams that clients began next to one task
	keepEnded      = 2 * time.Minute // how long an ended stream waits for its client
	keepRead       = time.Hour       // how long a slow client may read an ended stream
)

// Streams are the streams of a node.
type Streams struct {
	runs      func(messages.Attempt) bool // whether a task runs
	keepEnded time.Duration               // how long an ended stream waits for a client

	mu  sync.Mutex
	all map[Key]*Stream
}

// NewStreams returns an empty list. The function `runs` reports whether a task runs. While a task runs, its own stream
// stays in the list.
func NewStreams(runs func(messages.Attempt) bool) *Streams {
	return &Streams{runs: runs, keepEnded: keepEnded, all: map[Key]*Stream{}}
}

// Get returns a stream; nil if there is none.
func (t *Streams) Get(key Key) *Stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[key]
}

// Add adds a stream. If there are too many streams, it drops an ended stream: the one whose client has been silent for
// longest. While a task runs, clients may start further processes with streams. The number of such streams is limited,
// so that there is always room for the stream of a task itself.
func (t *Streams) Add(key Key, s *Stream) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	more := 0
	for k := range t.all {
		if k.Attempt == key.Attempt && k.Name != "" {
			more++
		}
	}
	full := len(t.all) >= maxStreams && !t.makeRoom()
	if key.Name != "" && (full || more >= maxTaskStreams) {
		return messages.Errorf(messages.Exhausted, "the node has %d streams, and %d of them belong to this task; close some", len(t.all), more)
	}
	t.all[key] = s
	return nil
}

// makeRoom drops an ended stream, and reports whether there was one. The caller holds t.mu.
func (t *Streams) makeRoom() bool {
	var oldest Key
	var since time.Time
	for key, s := range t.all {
		if done, heard := s.silence(); done && (key.Name != "" || !t.runs(key.Attempt)) && (since.IsZero() || heard.Before(since)) {
			oldest, since = key, heard
		}
	}
	s := t.all[oldest]
	if s == nil {
		return false
	}
	delete(t.all, oldest)
	go s.leave()
	return true
}

// Drop removes a stream.
func (t *Streams) Drop(key Key) {
	t.mu.Lock()
	s := t.all[key]
	if s != nil && key.Name == "" && t.runs(key.Attempt) { // a task's own stream stays until the task ends
		s = nil
	} else {
		delete(t.all, key)
	}
	t.mu.Unlock()
	if s != nil {
		s.leave()
	}
}

// Finish records the end of a stream's process, and keeps the output that is left. If no client asks for this output
// for keepEnded (2 minutes), the output is dropped. While a client asks, the output is kept for at most keepRead (an
// hour), because the client's own reader may be slow.
func (t *Streams) Finish(key Key, s *Stream, code int, files ...*os.File) {
	s.Finish(code, files...)
	ended := time.Now()
	var look func()
	look = func() {
		if _, heard := s.silence(); time.Since(heard) >= t.keepEnded || time.Since(ended) >= keepRead {
			t.Drop(key)
			return
		}
		time.AfterFunc(t.keepEnded, look)
	}
	time.AfterFunc(t.keepEnded, look)
}

// A client can begin a command or a connection next to a task. If the client then abandons it, Sweep ends it.
func (t *Streams) Sweep() {
	t.mu.Lock()
	var left []Key
	for key, s := range t.all {
		if key.Name != "" && s.Overdue(false) != "" {
			left = append(left, key)
		}
	}
	t.mu.Unlock()
	for _, key := range left {
		t.Drop(key)
	}
}
