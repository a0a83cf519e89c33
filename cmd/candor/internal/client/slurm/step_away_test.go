package slurm

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
)

// TestARefusedStepReadsTheReason sends a large request to an agent that refuses it without reading it.
func TestARefusedStepReadsTheReason(t *testing.T) {
	l, err := net.Listen("unix", "@"+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_ = json.NewEncoder(conn).Encode(agent.StepAnswer{Kind: messages.NotLeader, Error: "too many"})
			_ = conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	b := &stepsBus{name: t.Name(), user: os.Getuid()}
	if _, err := b.call(ctx, &agent.StreamRequest{Input: make([]byte, 4<<20)}); messages.KindOf(err) != messages.NotLeader || messages.Detail(err) != "too many" {
		t.Error(err)
	}
}
