package netlab

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Host is a machine of a site. It is not safe for concurrent use.
type Host struct {
	Name    string        // rack1, rack2 and so on, or the name of the node whose agent runs here
	Node    messages.Name // node whose agent it runs; "" means none
	Address string

	site      *Site
	number    int // number in the site, from 1
	binary    string
	arguments []string
	leave     bool
	process   *process // nil if no process runs
	disk      bool     // the host has its own disk
}

// Dir returns the directory of the host's state.
func (h *Host) Dir() string { return filepath.Join(h.site.dir, h.Name) }

// Run makes the host run another build of the program from its next start on.
func (h *Host) Run(binary string) { h.binary = binary }

// Leave decides what the host's next process does with the tasks of its node when it is stopped: if `running` is true,
// the tasks continue, and otherwise they end.
func (h *Host) Leave(running bool) { h.leave = running }

// Program returns the path of the binary that the host's process runs.
func (h *Host) Program() (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/%d/exe", h.process.command.Process.Pid))
}

// Runs reports whether the host's process was started, and was not ended by Kill or Stop.
func (h *Host) Runs() bool { return h.process != nil }

// Start starts the host's process and does not wait for it to serve.
func (h *Host) Start() (err error) {
	if h.process != nil {
		return messages.Errorf(messages.Conflict, "host %s of %s: runs already", h.Name, h.site.Name)
	}
	arguments := h.arguments
	if h.leave {
		arguments = append(arguments[:len(arguments):len(arguments)], "--leave-running")
	}
	command := h.site.lab.network.Command(h.site.number, h.number, h.binary, arguments...)
	h.process, err = begin(command, h.Dir()+".log")
	return err
}

// Await waits until the host serves.
func (h *Host) Await(ctx context.Context) error { return h.process.await(ctx) }

// Kill ends the host's process with SIGKILL. The tasks of its node continue, as after a failure of the process.
func (h *Host) Kill() {
	h.process.kill()
	h.process = nil
}

// Stop asks the host's process to end, as a service manager does, and waits until the process has ended.
func (h *Host) Stop() error {
	p := h.process
	h.process = nil
	return p.stop()
}

// Ended reports whether the host's process has ended by itself.
func (h *Host) Ended() bool {
	if h.process == nil {
		return false
	}
	select {
	case <-h.process.ended:
		return true
	default:
		return false
	}
}

// Pause suspends the host's process, as if its machine hung. Resume resumes the process.
func (h *Host) Pause() error { return h.process.command.Process.Signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (h *Host) Resume() error { return h.process.command.Process.Signal(syscall.SIGCONT) }

// Log returns the log of the host's processes, from the byte with number `since` to the end.
func (h *Host) Log(since int64) string {
	f, err := os.Open(h.Dir() + ".log")
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, since, math.MaxInt64-since))
	if err != nil {
		return ""
	}
	return string(text)
}

// LogEnd returns the length of the host's log in bytes; see Log.
func (h *Host) LogEnd() int64 {
	info, err := os.Stat(h.Dir() + ".log")
	if err != nil {
		return 0
	}
	return info.Size()
}

// clockFile returns the file that says by how many nanoseconds the host's clock is wrong.
func (h *Host) clockFile() string { return h.Dir() + ".clock" }

// SetClock makes the clock of the host wrong. A negative time means that the clock is behind.
func (h *Host) SetClock(ahead time.Duration) error {
	return os.WriteFile(h.clockFile(), []byte(strconv.FormatInt(int64(ahead), 10)), 0o600)
}

// Memory returns the memory of the host's process, in bytes.
func (h *Host) Memory() int64 {
	if h.process == nil {
		return 0
	}
	return h.process.memory()
}

// Cut disconnects the host from its site's network; Heal connects it again.
func (h *Host) Cut() error { return h.site.lab.network.Cut(h.site.number, h.number) }

// Heal undoes Cut.
func (h *Host) Heal() error { return h.site.lab.network.Heal(h.site.number, h.number) }

// Mute drops everything that the host sends to another host of the site, but not what it receives. Hear undoes it.
func (h *Host) Mute(to *Host) error {
	return h.site.lab.network.Mute(h.site.number, h.number, to.number)
}

// Hear ends the effect of Mute: what the host sends to the other host arrives again.
func (h *Host) Hear(to *Host) error {
	return h.site.lab.network.Hear(h.site.number, h.number, to.number)
}

// Depose stops the messages between the host's replica of the bank and the bank's other replicas, until the function
// `restore` is called. If the host's replica leads, another replica becomes the leader.
func (h *Host) Depose() (restore func() error, err error) {
	network := h.site.lab.network
	return func() error { return network.Unblock(h.site.number, h.number, bankPort) }, network.Block(h.site.number, h.number, bankPort)
}
