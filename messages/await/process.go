package await

import (
	"bytes"
	"os/exec"
	"regexp"
	"sync"
	"testing"
)

// Output keeps what is written, by several at a time. Its zero value is empty.
type Output struct {
	mu     sync.Mutex
	text   bytes.Buffer
	sought string
	found  chan struct{} // closed once the text contains what is sought; nil: it does, or nothing is
}

// Write never fails.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	if o.found != nil && bytes.Contains(o.text.Bytes(), []byte(o.sought)) {
		close(o.found)
		o.found = nil
	}
	return len(b), nil
}

// String is what was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Match returns what a pattern matches first, once it does.
func (o *Output) Match(t testing.TB, pattern string) (found []string) {
	t.Helper()
	defer func() {
		if found == nil {
			t.Log(o)
		}
	}()
	expression := regexp.MustCompile(pattern)
	Until(t, "a match of "+pattern, func() bool {
		found = expression.FindStringSubmatch(o.String())
		return found != nil
	})
	return found
}

// Process is a process that a test started.
type Process struct {
	*exec.Cmd
	Output *Output
	Found  <-chan struct{} // closed once the output contains what is sought
	Ended  <-chan struct{} // closed once the process has ended
}

// Start starts a command, in whose output a text is sought; "": none.
func Start(t testing.TB, command *exec.Cmd, sought string) *Process {
	t.Helper()
	found, ended := make(chan struct{}), make(chan struct{})
	out := &Output{sought: sought}
	if sought != "" {
		out.found = found
	}
	command.Stdout, command.Stderr = out, out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = command.Wait(); close(ended) }()
	return &Process{Cmd: command, Output: out, Found: found, Ended: ended}
}
