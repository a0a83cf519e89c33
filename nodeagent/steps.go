package nodeagent

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/nodeagent/proxy"
)

// steps connects a task of an allocation with the other tasks of the allocation. It listens on a socket. The name of
// the socket depends only on the state directory, so a task that outlives its agent finds the socket of the next agent.
// A task uses a token to prove which attempt it is. The token is a keyed hash of the attempt; only the node has the
// key.
type steps struct {
	agent *Agent
	key   []byte
	name  string
	stop  func()
}

const (
	stepsAtOnce  = 512
	stepsRequest = 2 << 20 // size of a request, in bytes
	stepsWithin  = 8 * time.Second
	stepsKey     = 52 // length of the key in bytes: two random texts
)

// openSteps reads the node's key, or makes it, and listens on the socket.
func (a *Agent) openSteps() error {
	if a.c.Dir == "" || a.real == nil || a.c.Tasks.Private { // private tasks have no network, and cannot reach the socket
		return nil
	}
	file := filepath.Join(a.c.Dir, "steps.key")
	key, err := os.ReadFile(file)
	if os.IsNotExist(err) || err == nil && len(key) < stepsKey {
		key = []byte(rand.Text() + rand.Text())
		err = durable.WriteFile(file, key, 0o600)
	}
	if err != nil {
		return err
	}
	sum := sha256.Sum256(key)
	s := &steps{agent: a, key: key, name: "candor-steps-" + hex.EncodeToString(sum[:8])}
	if s.stop, err = proxy.Listen("@"+s.name, stepsAtOnce, a.c.Log, s.serve, refuseStep); err != nil {
		a.c.Log.Warn("tasks of allocations cannot start processes on other nodes", zap.Error(err))
		return nil
	}
	a.steps = s
	return nil
}

// variable returns the value of an environment variable of the task. The value consists of the name of the socket, the
// number of the user whose process answers there, and the task's token.
func (s *steps) variable(a messages.Attempt) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d:%s", s.name, os.Getuid(), s.token(a))
}

func (s *steps) token(a messages.Attempt) string {
	code := hmac.New(sha256.New, s.key)
	fmt.Fprintf(code, "%d.%d.%d.%d", a.Task.Job, a.Task.Stage, a.Task.Index, a.Number)
	return hex.EncodeToString(code.Sum(nil)[:16])
}

func (s *steps) close() {
	if s != nil {
		s.stop()
	}
}

func (s *steps) serve(ctx context.Context, conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(stepsWithin))
	line, err := bufio.NewReaderSize(io.LimitReader(conn, stepsRequest), 64<<10).ReadBytes('\n')
	var r agent.StepCall
	answer := agent.StepAnswer{}
	switch {
	case messages.KindOf(err) == messages.NotLeader: // too many bytes
	case err != nil:
		return
	default:
		if err = json.Unmarshal(line, &r); err != nil {
			err = messages.Errorf(messages.Invalid, "a step's request cannot be read: %v", err)
		} else {
			answer.StepReply, err = s.ask(ctx, &r)
		}
	}
	if err != nil {
		refuseStep(conn, err)
		return
	}
	_ = json.NewEncoder(conn).Encode(&answer)
}

func refuseStep(conn net.Conn, why error) {
	_ = json.NewEncoder(conn).Encode(&agent.StepAnswer{Kind: messages.KindOf(why), Error: messages.Detail(why)})
}

func (s *steps) ask(ctx context.Context, r *agent.StepCall) (reply agent.StepReply, err error) {
	if !hmac.Equal([]byte(r.Token), []byte(s.token(r.Attempt))) {
		return reply, messages.Errorf(messages.PermissionDenied, "the token does not belong to attempt %d of task %v", r.Attempt.Number, r.Attempt.Task)
	}
	ctx, cancel := context.WithTimeout(ctx, stepsWithin)
	defer cancel()
	answer, err := ask[agent.StepReply](ctx, s.agent, messages.VerbStep, r.StepRequest)
	if err != nil {
		s.agent.c.Log.Debug("a step's request failed", zap.Error(err))
		return reply, err
	}
	return *answer, nil
}
