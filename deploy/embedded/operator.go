package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/money"
)

// attempt bounds one request of the site to its own actors. The caller limits the whole start.
const attempt = 5 * time.Second

// roomEvery is the pause between two requests while the disks of an actor are full.
const roomEvery = time.Second

// operator sends requests as the site's first operator, to open accounts and peers.
type operator struct {
	*share
	mu  sync.Mutex
	bus bus.Bus // made at the first use
}

func (o *operator) connect() (bus.Bus, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bus == nil {
		b, err := o.connectAs(identity.Operator, o.config.Operators[0])
		if err != nil {
			return nil, err
		}
		o.bus = b
	}
	return o.bus, nil
}

func (o *operator) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bus == nil {
		return nil
	}
	return o.bus.Close()
}

// openAccounts opens the configured accounts. The key of each grant follows from the account's name, so the bank
// carries out each grant once, however often the site starts.
func (o *operator) openAccounts(ctx context.Context) error {
	for _, a := range o.config.Accounts {
		if a.Grant > 0 {
			if err := o.openAccount(ctx, a); err != nil {
				return err
			}
		}
		for _, member := range a.Members {
			request := money.MemberRequest{Account: a.Name, Member: member}
			if _, err := ask[money.AccountReply](ctx, o, messages.Bank, messages.VerbMember, request); err != nil {
				return fmt.Errorf("letting %s spend from account %s: %w", member, a.Name, err)
			}
		}
	}
	// If there were accounts to open, the bank has already answered. If not, this request waits until the bank answers.
	_, err := ask[money.AccountsReply](ctx, o, messages.Bank, messages.VerbAccounts, messages.Empty{})
	return err
}

func (c *Config) opening() (names []messages.Name) {
	for _, a := range c.Accounts {
		if a.Grant > 0 {
			names = append(names, a.Name)
		}
	}
	return names
}

func (o *operator) openAccount(ctx context.Context, a Account) error {
	_, err := ask[money.AccountReply](ctx, o, messages.Bank, messages.VerbGrant, money.GrantRequest{
		Key: "opening-" + a.Name, Account: a.Name, Amount: a.Grant, Reason: "opening grant",
	})
	if messages.KindOf(err) == messages.Conflict {
		o.log.Warn("the account was opened with another amount, which does not change; use `candor grant` to give more",
			zap.String("account", a.Name), zap.Stringer("grant", a.Grant))
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening account %s: %w", a.Name, err)
	}
	return nil
}

// bankStopped reports whether the bank has stopped until an operator acts. In this case the start of a site does not
// wait for the bank.
func bankStopped(err error) bool {
	return err != nil && strings.Contains(err.Error(), money.BankStopped)
}

// open opens accounts and peers. If the bank has stopped, the site starts without them, because the books can still be
// read.
func (o *operator) open(ctx context.Context) error {
	err := errors.Join(o.openAccounts(ctx), o.openPeers(ctx))
	if bankStopped(err) {
		o.log.Error("the site starts, but its bank has stopped: no account was opened", zap.Error(err))
		return nil
	}
	return err
}

// ask sends a request as the first operator. It repeats the request while nobody answers or the disks are full, until
// ctx ends.
func ask[Reply any](ctx context.Context, o *operator, actor, verb string, request any) (Reply, error) {
	var none Reply
	b, err := o.connect()
	if err != nil {
		return none, err
	}
	subject := messages.Subject(o.config.Site, actor, verb, o.config.Operators[0])
	for {
		limited, cancel := context.WithTimeout(ctx, attempt)
		reply, err := bus.Call[Reply](limited, b, subject, request)
		cancel()
		full := messages.KindOf(err) == messages.Exhausted
		if err == nil || ctx.Err() != nil || !full && !messages.KindOf(err).Retriable() || bankStopped(err) {
			return reply, err
		}
		o.log.Info("waiting for the "+actor, zap.String("verb", verb), zap.Error(err))
		if full {
			select {
			case <-ctx.Done():
			case <-time.After(roomEvery):
			}
		}
	}
}
