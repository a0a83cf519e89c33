package proxy

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// Another process listens on the socket over which tasks reach the agent. The agent must log which process that is.
// When the process ends, the agent must take the socket, and tasks must reach the agent.
func TestTheSocketIsTakenBack(t *testing.T) {
	key, _ := Open(t.TempDir())
	l, err := net.Listen("unix", key.socket())
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.WarnLevel)
	s, err := Serve(key, zap.New(core), func(context.Context, messages.Attempt, string, []byte) ([]byte, error) { return []byte("yes"), nil })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	await.Until(t, "the log names the process", func() bool {
		all := logs.All()
		return len(all) == 1 && all[0].ContextMap()["process"] == int64(os.Getpid()) && all[0].ContextMap()["user"] == int64(os.Getuid())
	})
	l.Close()
	await.Until(t, "a task reaches the agent", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		reply, err := Request(ctx, key.Value("alice", attempt(7, 3)), "jobs", nil)
		return err == nil && string(reply) == "yes"
	})
}
