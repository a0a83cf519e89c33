package embedded

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// attempt bounds one request of the site to its own actors; the whole start is
// bounded by its caller.
const attempt = 5 * time.Second

// openAccounts opens the configured accounts. Each grant carries a key that
// follows from the account's name: the bank carries it out once, however often
// the site is started and by however many hosts at once.
func (s *Site) openAccounts(ctx context.Context) error {
	for _, a := range s.config.Accounts {
		if a.Grant > 0 {
			if err := s.openAccount(ctx, a); err != nil {
				return err
			}
		}
		for _, member := range a.Members {
			request := messages.MemberRequest{Account: a.Name, Member: member}
			if _, err := ask[messages.AccountReply](ctx, s, messages.Bank, messages.VerbMember, request); err != nil {
				return fmt.Errorf("letting %s spend from account %s: %w", member, a.Name, err)
			}
		}
	}
	// Without accounts to open, this is what waits for the bank.
	_, err := ask[messages.AccountsReply](ctx, s, messages.Bank, messages.VerbAccounts, messages.Empty{})
	return err
}

func (s *Site) openAccount(ctx context.Context, a Account) error {
	_, err := ask[messages.AccountReply](ctx, s, messages.Bank, messages.VerbGrant, messages.GrantRequest{
		Key: "opening-" + a.Name, Account: a.Name, Amount: a.Grant, Reason: "opening grant",
	})
	if messages.KindOf(err) == messages.Conflict {
		s.log.Warn("the account was opened with another amount, which stays; use candor grant to give more",
			zap.String("account", a.Name), zap.Stringer("grant", a.Grant))
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening account %s: %w", a.Name, err)
	}
	return nil
}

// awaitAuctioneer waits until some replica leads and serves.
func (s *Site) awaitAuctioneer(ctx context.Context) error {
	_, err := ask[messages.StatusReply](ctx, s, messages.Auctioneer, messages.VerbStatus, messages.Empty{})
	return err
}

// ask sends a request as the first operator, again and again while nobody
// answers, until ctx ends.
func ask[Reply any](ctx context.Context, s *Site, actor, verb string, request any) (Reply, error) {
	var none Reply
	b, err := s.asOperator()
	if err != nil {
		return none, err
	}
	subject := messages.Subject(s.config.Site, actor, verb, s.config.Operators[0])
	for {
		limited, cancel := context.WithTimeout(ctx, attempt)
		reply, err := bus.Call[Reply](limited, b, subject, request)
		cancel()
		if err == nil || ctx.Err() != nil || !messages.KindOf(err).Retriable() {
			return reply, err
		}
		s.log.Info("waiting for the "+actor, zap.String("verb", verb), zap.Error(err))
	}
}
