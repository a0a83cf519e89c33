package await

import (
	"bytes"
	"os/exec"
	"regexp"
	"runtime"
	"sync"
	"testing"
)

// Output keeps what several goroutines write. Its zero value is empty.
type Output struct {
	mu     sync.Mutex
	text   bytes.Buffer
	sought string
	found  chan struct{} // closed when the output contains the sought text; nil means that it already contains it, or that no text is sought
}

// Write appends b; it never fails.
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

// String returns the text that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Match waits until a pattern matches, and returns the first match.
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
	Found  <-chan struct{} // closed when the output contains the sought text
	Ended  <-chan struct{} // closed when the process has ended
}

// Start starts a command. If the argument `sought` is not "", the channel Found is closed when the output contains this
// text.
func Start(t testing.TB, command *exec.Cmd, sought string) *Process {
	t.Helper()
	found, ended := make(chan struct{}), make(chan struct{})
	out := &Output{sought: sought}
	if sought != "" {
		out.found = found
	}
	command.Stdout, command.Stderr = out, out
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig kills the process when the thread that started it ends
		defer runtime.UnlockOSThread()
		err := command.Start()
		if started <- err; err == nil {
			_ = command.Wait()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return &Process{Cmd: command, Output: out, Found: found, Ended: ended}
}
