package proxy

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// A task sends a request as a call, and gets the reply as an answer. Each is one JSON object. A connection carries one
// call and one answer.
type call struct {
	Attempt string `json:"attempt"`
	Token   string `json:"token"`
	Verb    string `json:"verb"`
	Request []byte `json:"request"`
}

type answer struct {
	Reply []byte          `json:"reply,omitempty"`
	Error *messages.Error `json:"error,omitempty"`
}

// These are the limits of a server.
const (
	mostCalls   = 512 // calls at the same time, more than may wait for an account's jobs at the auctioneer
	mostBytes   = 8 << 20
	callWithin  = 30 * time.Second // time in which a task must have sent its request
	askWithin   = time.Minute
	mostReplies = 64 << 20
)

// Ask carries out a request of an attempt, and returns the reply.
type Ask func(ctx context.Context, of messages.Attempt, verb string, request []byte) ([]byte, error)

// Server answers the requests of a node's tasks.
type Server struct {
	key  Key
	ask  Ask
	stop func()
}

// Serve answers at the node's socket until the server is stopped.
func Serve(key Key, log *zap.Logger, ask Ask) (*Server, error) {
	s := &Server{key: key, ask: ask}
	var err error
	s.stop, err = Listen(key.socket(), mostCalls, log, s.serve, refuse)
	return s, err
}

// Stop ends the server and the calls under way.
func (s *Server) Stop() error {
	s.stop()
	return nil
}

func (s *Server) serve(ctx context.Context, conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(callWithin))
	var c call
	var a answer
	err := json.NewDecoder(io.LimitReader(conn, mostBytes)).Decode(&c)
	switch {
	case messages.KindOf(err) == messages.NotLeader: // too many bytes
	case err != nil:
		return
	default:
		_ = conn.SetDeadline(time.Time{})
		a.Reply, err = s.answer(ctx, &c)
	}
	_ = conn.SetDeadline(time.Now().Add(callWithin))
	if err != nil {
		refuse(conn, messages.AsError(c.Verb, err))
		return
	}
	_ = json.NewEncoder(conn).Encode(&a)
}

func refuse(conn net.Conn, why error) {
	_ = json.NewEncoder(conn).Encode(&answer{Error: messages.AsError("", why)})
}

func (s *Server) answer(ctx context.Context, c *call) ([]byte, error) {
	of := s.key.attempt(c.Attempt, c.Token)
	if of == nil {
		return nil, messages.Errorf(messages.PermissionDenied, "the token of %s was not issued by this node", Variable)
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return s.ask(ctx, *of, c.Verb, c.Request)
}
