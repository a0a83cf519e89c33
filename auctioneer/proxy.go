package auctioneer

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// proxies carries out the requests of tasks. A task sends its requests through its node (package nodeagent/proxy).
type proxies struct {
	*site
	verbs map[string]bus.Handler // verbs that a task may use
	pace  *bus.Pace              // limits the answers to the tasks of an account
}

func (p proxies) ask(ctx context.Context, node messages.Name, r agent.ProxyRequest) (reply agent.ProxyReply, err error) {
	handle := p.verbs[r.Verb]
	if handle == nil {
		return reply, messages.Errorf(messages.PermissionDenied, "a task cannot ask for %q, only for %s", job.Printable(r.Verb, 32), strings.Join(slices.Sorted(maps.Keys(p.verbs)), ", "))
	}
	runs := func() error {
		return p.look(ctx, func(b *book.Book) error {
			reply.Account, err = proxyAccount(b, node, r.Attempt)
			return err
		})
	}
	switch err = runs(); {
	case err != nil:
		return agent.ProxyReply{}, err
	case p.operates(reply.Account):
		return agent.ProxyReply{}, messages.Errorf(messages.PermissionDenied, "account %s operates the site: its tasks cannot send requests in the name of the account", reply.Account)
	}
	leave, err := p.proxied.enter(reply.Account, mostProxiedOf)
	if err != nil {
		return agent.ProxyReply{}, err
	}
	defer leave()
	pass, err := p.paced.wait(ctx, reply.Account, mostPacedOf)
	if err != nil {
		return agent.ProxyReply{}, err
	}
	// The attempt can have ended while its request waited.
	if err := runs(); err != nil {
		pass()
		return agent.ProxyReply{}, err
	}
	// The bus takes the node for the caller. So this counts the answer, and the account's place stays taken.
	defer func() { time.AfterFunc(p.pace.After(reply.Account, len(reply.Reply)), pass) }()
	reply.Reply, err = handle(ctx, bus.Request{Subject: messages.Subject(p.Site, messages.Auctioneer, r.Verb, reply.Account), Caller: reply.Account,
		Payload: r.Request, Format: wire.Detect(r.Request, "")})
	if err != nil {
		return agent.ProxyReply{}, err
	}
	return reply, nil
}

// proxyAccount returns the owner of an attempt that runs on the node. The node may make requests for this account.
func proxyAccount(b *book.Book, node messages.Name, a messages.Attempt) (messages.Name, error) {
	over := messages.Errorf(messages.Fenced, "attempt %d of a task of job %v does not run on node %s: a task can send requests only while it runs", a.Number, a.Task.Job, node)
	j := b.Job(a.Task.Job)
	if j == nil || int64(a.Task.Stage) >= int64(len(j.Stages)) || int64(a.Task.Index) >= int64(len(j.Stages[a.Task.Stage].Tasks)) {
		return "", over
	}
	t := &j.Stages[a.Task.Stage].Tasks[a.Task.Index]
	if t.Phase != book.Claimed || t.Attempt != a.Number || b.Nodes()[t.Node].Name != node {
		return "", over
	}
	if j.Visit != nil {
		return "", messages.Errorf(messages.PermissionDenied, "job %v is of another site: its tasks have no account here", j.ID)
	}
	return j.Account, nil
}
