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
	all map[Key]entry
}

type entry struct {
	*Stream
	account messages.Name // account that owns the task; all users of another site are one account
}

// NewStreams returns an empty list. The function `runs` reports whether a task runs. While a task runs, its own stream
// stays in the list.
func NewStreams(runs func(messages.Attempt) bool) *Streams {
	return &Streams{runs: runs, keepEnded: keepEnded, all: map[Key]entry{}}
}

// Get returns a stream. If there is none, it returns nil.
func (t *Streams) Get(key Key) *Stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[key].Stream
}

// Add adds a stream. A task has at most one stream of its own; clients may start further streams to a running task. If
// there are too many streams, Add drops an ended stream. Further streams never take the place of a task's own stream.
// An account may not have more further streams than places are free. So one account can use half of the places, two
// accounts can use a third each, and other accounts can always start some.
func (t *Streams) Add(account messages.Name, key Key, s *Stream) error {
	account = messages.Participant(account)
	t.mu.Lock()
	defer t.mu.Unlock()
	more, own, open := 0, 0, 0
	for k, e := range t.all {
		if k.Attempt == key.Attempt && k.Name != "" {
			more++
		}
		if done, _ := e.silence(); !done {
			open++
			if e.account == account && k.Name != "" {
				own++
			}
		}
	}
	mayAdd := key.Name == "" || more < maxTaskStreams && (own == 0 || own < maxStreams-open)
	if full := mayAdd && len(t.all) >= maxStreams && !t.makeRoom(); !mayAdd || full && key.Name != "" {
		return messages.Errorf(messages.Exhausted, "the node has %d streams: %d were started by clients of %s, and %d belong to this task; close some streams", len(t.all), own, account, more)
	}
	t.all[key] = entry{s, account}
	return nil
}

// makeRoom drops an ended stream, and reports whether there was an ended stream. It takes the account with the most
// ended streams. Of these streams, it drops the stream whose client has been silent for longest. The caller holds t.mu.
func (t *Streams) makeRoom() bool {
	type ended struct {
		number int
		oldest Key
		since  time.Time
	}
	of := map[messages.Name]ended{}
	var most ended
	for key, e := range t.all {
		done, heard := e.silence()
		if !done || key.Name == "" && t.runs(key.Attempt) {
			continue
		}
		a := of[e.account]
		if a.number++; a.number == 1 || heard.Before(a.since) {
			a.oldest, a.since = key, heard
		}
		if of[e.account] = a; a.number > most.number || a.number == most.number && a.since.Before(most.since) {
			most = a
		}
	}
	if most.number == 0 {
		return false
	}
	go t.all[most.oldest].leave()
	delete(t.all, most.oldest)
	return true
}

// Drop removes a stream.
func (t *Streams) Drop(key Key) {
	t.mu.Lock()
	s := t.all[key].Stream
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
