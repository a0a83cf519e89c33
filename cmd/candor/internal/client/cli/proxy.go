package cli

import (
	"context"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/nodeagent/proxy"
)

// throughNode returns a session for a process in a task. Its requests go through the agent of the node. It returns nil
// if the agent does not carry requests, or if the user has named a server, credentials or an account.
func (a *App) throughNode() (*Session, error) {
	value := a.Getenv(proxy.Variable)
	said := a.Flags.server + a.Flags.creds + a.Flags.account + a.Flags.at + a.Flags.state
	for _, name := range []string{"CANDOR_SERVER", "CANDOR_CREDS", "CANDOR_ACCOUNT", "CANDOR_AT", "CANDOR_STATE"} {
		said += a.Getenv(name)
	}
	if value == "" || said != "" {
		return nil, nil
	}
	account, err := proxy.Account(value)
	if err != nil {
		return nil, err
	}
	return &Session{Bus: taskBus{value: value}, Site: a.Getenv("CANDOR_SITE"), Account: account, Timeout: a.Flags.timeout, Lent: true}, nil
}

// taskBus sends the requests of a task to the auctioneer. It supports no other request.
type taskBus struct{ value string }

// errTask is the answer to a request that a task may not send.
var errTask = messages.Errorf(messages.PermissionDenied, "inside a job, commands can only ask for jobs, nodes and markets: run this command outside of the job")

func (b taskBus) Request(ctx context.Context, subject string, payload []byte) ([]byte, error) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 || parts[2] != messages.Auctioneer {
		return nil, errTask
	}
	return proxy.Request(ctx, b.value, parts[3], payload)
}

func (taskBus) Publish(string, []byte) error { return errTask }

func (taskBus) Subscribe(string, func(string, []byte)) (bus.Subscription, error) { return nil, errTask }

func (taskBus) Serve(bus.Service) (bus.Subscription, error) { return nil, errTask }

func (taskBus) Stream(context.Context, string, []string) (bus.Stream, error) { return nil, errTask }

func (taskBus) Objects(context.Context, string, bus.BucketConfig) (bus.Objects, error) {
	return nil, errTask
}

func (taskBus) Kept(context.Context, string) (bus.Objects, []string, error) { return nil, nil, errTask }

func (taskBus) Close() error { return nil }
