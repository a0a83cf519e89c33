package jobs

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
)

// A user asks for logs of a node that was removed. The error must be about the node. It must not name a NATS subject.
func TestLogsOfARemovedNode(t *testing.T) { synctest.Test(t, logsOfARemovedNode) }

func logsOfARemovedNode(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := bus.Call[agent.LogsReply](ctx, bus.NewMemory().Connect("alice"), messages.LogsSubject("west", "node9", "alice"), agent.LogsRequest{})
	said := silentNode(err)
	if !bus.Unserved(err) || messages.KindOf(said) != messages.Unavailable || !strings.Contains(said.Error(), "was removed from the site") || strings.Contains(said.Error(), "candor.west") {
		t.Errorf("%v is told as %v", err, said)
	}
	if other := messages.Errorf(messages.NotFound, "gone"); silentNode(other) != error(other) {
		t.Error("another error was changed")
	}
}
