package executor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/beat"
)

// waits are how long a client waits for an executor that sends nothing.
type waits struct {
	found time.Duration // for the first message of an executor that was already there
	begun time.Duration // for the first message of a new executor: it first ends processes of an earlier one
	ends  time.Duration // for an executor that has the lock but does not listen yet
	tell  time.Duration // until a log line says that the client waits
	beat  time.Duration // interval of checks of a connected executor
	beats time.Duration // for the answer to a check
}

// usualWaits are the times that a client waits for an executor. They are long enough on a loaded machine. An executor
// that ends gives its tasks the time closeWithin to end, so the client waits longer than this.
var usualWaits = waits{found: 10 * time.Second, begun: time.Minute, ends: 5*time.Second + closeWithin, tell: 3 * time.Second, beat: 5 * time.Second, beats: 10 * time.Second}

// watch sends the connected executor a question from time to time. While there is no answer, the node claims no tasks.
func (k *Client) watch() {
	for {
		select {
		case <-k.life.Done():
			return
		case <-time.After(beat.Until(k.config.waits.beat)):
		}
		answered := make(chan struct{})
		go func() {
			_, _ = k.ask(k.life, &frame{Kind: logs}) // the question is about no task, because any answer is enough
			close(answered)
		}()
		select {
		case <-answered:
			continue
		case <-time.After(k.config.waits.beats):
		}
		k.config.Log.Error("the node takes no tasks until its executor answers", zap.Error(k.config.silent(k.config.waits.beats)))
		k.stand(true)
		<-answered
		k.stand(false)
		k.config.Log.Info("the executor answers again, or is gone")
	}
}

// stand records whether the executor is silent: it runs, but does not answer. It then tells the function given to
// Notify.
func (k *Client) stand(still bool) {
	k.mu.Lock()
	k.still = still
	k.mu.Unlock()
	k.tell()
}

// noteHolder writes the executor's process number into the lock file. The error of [Config.silent] names it.
func noteHolder(lock *os.File, pid int) error {
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0)
	return err
}

// silentError is the error of an executor that runs and does not answer.
type silentError struct{ cause *messages.Error }

func (e silentError) Error() string { return e.cause.Error() }
func (e silentError) Unwrap() error { return e.cause }

// silent returns the error for an executor that does not answer. Its tasks may still run, so a second executor must not
// start them.
func (c *Config) silent(waited time.Duration) error {
	return silentError{messages.Errorf(messages.Unavailable,
		"the executor of node %s has not answered for %v: %s. The executor's tasks may still run, so no other executor is started; see %s",
		c.Runner.Node, waited, c.holder(), c.log())}
}

// holder returns a text with the process of the executor, its state and how to end it.
func (c *Config) holder() string {
	b, _ := os.ReadFile(c.lock())
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Sprintf("`fuser %s` shows the executor's process; end that process with `kill -KILL`, and start again", c.lock())
	}
	kill := fmt.Sprintf("`kill -KILL %d` ends the executor; the next start then ends the executor's tasks, which run again", pid)
	switch state, command := stateOf(pid); state {
	case "", "Z":
		return fmt.Sprintf("process %d has ended, but a process that it started still holds the lock; `fuser %s` shows that process; end it with `kill -KILL`", pid, c.lock())
	case "T":
		return fmt.Sprintf("process %d (%s) is stopped; `kill -CONT %d` lets it and its tasks go on; %s", pid, command, pid, kill)
	default:
		return fmt.Sprintf("process %d (%s) is in state %s; %s", pid, command, state, kill)
	}
}

// stateOf returns the kernel's letter for the state of a process, and the process' command. Both are empty if the
// process is gone.
func stateOf(pid int) (state, command string) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) == 0 {
		return "", ""
	}
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return fields[0], strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
}
