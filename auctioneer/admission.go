package auctioneer

import (
	"context"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// joinTokens keeps the join tokens of nodes for the site's admission, which alone may
// ask: a token that is in the log is used once, whichever host it is shown to.
func (l *operations) joinTokens(ctx context.Context, caller messages.Name, r messages.AdmitRequest) (reply messages.TokensReply, err error) {
	if caller != messages.ServiceIdentity(messages.Admission) {
		return reply, messages.Errorf(messages.PermissionDenied, "only the site's admission may ask this; operators use candor node token")
	}
	if r.Issue == nil && r.Use == nil && r.Revoke == "" {
		err := l.look(ctx, func(b *book.Book) error {
			reply.Tokens = b.Tokens()
			return nil
		})
		return reply, err
	}
	if t := r.Issue; t != nil && (!strings.HasPrefix(t.ID, messages.JoinPrefix) || !messages.ValidName(t.Node)) {
		return reply, messages.Errorf(messages.Invalid, "issue: %q for node %q is no join token", t.ID, t.Node)
	}
	result, err := l.propose(ctx, &book.Command{Admit: &book.Admit{Issue: r.Issue, Use: r.Use, Revoke: r.Revoke}})
	if err != nil {
		return reply, err
	}
	reply.Tokens = []messages.TokenState{result.(messages.TokenState)}
	return reply, nil
}
