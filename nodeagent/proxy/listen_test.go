package proxy

import (
	"context"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// Another process listens on the socket over which tasks reach the agent. When this process ends, the agent must take
// the socket, and tasks must reach the agent. If root runs the agent, and the process belongs to another user, the
// agent must end the process.
func TestTheSocketIsTakenBack(t *testing.T) {
	key, _ := Open(t.TempDir())
	l, err := net.Listen("unix", key.socket())
	if err != nil {
		t.Fatal(err)
	}
	file, err := l.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.Command("sleep", "300")
	holder.ExtraFiles = []*os.File{file}
	if os.Geteuid() == 0 {
		holder.Dir, holder.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4242, Gid: 4242}}
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	file.Close()
	l.Close()
	s, err := Serve(key, zap.NewNop(), func(context.Context, messages.Attempt, string, []byte) ([]byte, error) { return []byte("yes"), nil })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if os.Geteuid() != 0 {
		_ = holder.Process.Kill()
	}
	_ = holder.Wait()
	await.Until(t, "a task reaches the agent", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		reply, err := Request(ctx, key.Value("alice", attempt(7, 3)), "jobs", nil)
		return err == nil && string(reply) == "yes"
	})
}
