package embedded

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/money"
)

// TestSiteWithBooksBehindACheckpoint starts a site whose books have fewer entries than a signed checkpoint. The site
// must start, so that the books can be read, and must move no credits.
func TestSiteWithBooksBehindACheckpoint(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	s := start(t, c)
	signer := s.signer()
	replica := c.replicaIDs()[0]
	closeSite(t, s)
	files, err := history.Directory(filepath.Join(c.State, messages.Bank, replica, historyDir))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := history.ReadCheckpoints(files)
	if err != nil {
		t.Fatal(err)
	}
	ahead, err := history.Sign(signer, money.Checkpoint{Site: c.Site, Records: 1000, Head: strings.Repeat("0", 64)})
	if err == nil {
		err = kept.Add(ahead)
	}
	if err != nil {
		t.Fatal(err)
	}
	s = start(t, c)
	defer closeSite(t, s)
	u := connect(t, s, "operator")
	ask := func(ctx context.Context, verb string, request any) error {
		_, err := bus.Call[money.AccountReply](ctx, u.bus, messages.Subject(c.Site, messages.Bank, verb, "operator"), request)
		return err
	}
	if err := ask(within(t), messages.VerbAccount, money.AccountRequest{Account: "alice"}); err != nil {
		t.Errorf("the books cannot be read: %v", err)
	}
	asked := 0
	// the bank refuses a moment after the start, when it has compared its books with the checkpoint
	await.Until(t, "a grant is refused", func() bool {
		asked++
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // until then, the client repeats the request
		defer cancel()
		err := ask(ctx, messages.VerbGrant, money.GrantRequest{Key: strconv.Itoa(asked), Account: "alice", Amount: 1})
		return bankStopped(err) && strings.Contains(err.Error(), "records were lost")
	})
}
