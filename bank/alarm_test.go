package bank

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
)

// signing returns a group whose replicas keep checkpoints in a directory, signed with key.
func signing(t *testing.T, key proof.Signer) (*cluster, string) {
	base := t.TempDir()
	return startTuned(t, func(id string, c *Config, _ *mailbox.Config) {
		files, err := history.Directory(filepath.Join(base, id))
		if err != nil {
			t.Fatal(err)
		}
		c.History, c.Signer, c.ExpiryInterval = files, key, messages.Duration(20*time.Millisecond)
	}), base
}

// leave adds a checkpoint to the file of a stopped replica.
func leave(t *testing.T, dir string, key proof.Signer, c money.Checkpoint) {
	t.Helper()
	signed, err := history.Sign(key, c)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(signed)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, history.CheckpointsFile), append(line, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckpointThatTheBooksDoNotBearOut: a replica has a checkpoint that contradicts the majority's records. The bank
// must then stop all changes of credits, whichever replica leads. A checkpoint that is signed with a stranger's key
// must not have this effect.
func TestCheckpointThatTheBooksDoNotBearOut(t *testing.T) {
	key, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	none := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		by      proof.Signer
		records uint64
		leads   bool
		want    string // "" if nothing stops
	}{
		"ahead at a follower": {key, 1000, false, "records were lost"},
		"ahead at the leader": {key, 1000, true, "records were lost"},
		"of another history":  {key, 2, false, "another history"},
		"of a stranger's":     {stranger, 1000, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, base := signing(t, key)
			for _, account := range []string{"ada", "bob", "eve"} {
				g.grant(account, 100)
			}
			victim := g.leader()
			g.stop(victim)
			if !c.leads {
				leave(t, filepath.Join(base, victim), c.by, money.Checkpoint{Site: "here", Records: c.records, Head: none})
			} else {
				for id := range g.running {
					g.stop(id)
					leave(t, filepath.Join(base, id), c.by, money.Checkpoint{Site: "here", Records: c.records, Head: none})
				}
				for _, id := range []string{"a", "b", "c"} {
					if id != victim {
						g.start(id)
					}
				}
			}
			g.start(victim)
			pay := func(within time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				_, err := bus.Call[money.AccountReply](ctx, g.client, messages.Subject(g.site, messages.Bank, messages.VerbGrant, "ops"),
					money.GrantRequest{Key: "x", Account: "ada", Amount: 1})
				return err
			}
			if c.want == "" {
				g.agree()
				for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); { // wait for several ticks
					if err := pay(patience); err != nil {
						t.Fatal(err)
					}
				}
				return
			}
			deadline := time.After(patience)
			for {
				err := pay(5 * time.Second) // at first the bank may give another error, so ask again
				if err != nil && strings.Contains(err.Error(), c.want) && messages.KindOf(err) == messages.Unavailable {
					break
				}
				select {
				case <-deadline:
					t.Fatalf("credits move: %v", err)
				case <-time.After(5 * time.Millisecond):
				}
			}
			if !g.books().Balanced {
				t.Error("the books cannot be read")
			}
		})
	}
}

// silent is a bus that answers no request for the leader's checkpoints.
type silent struct {
	bus.Bus
	asked   chan struct{} // receives a value when a request comes
	expired atomic.Bool   // a request has ended without an answer
}

func (s *silent) Request(ctx context.Context, subject string, payload []byte) ([]byte, error) {
	if !strings.Contains(subject, "."+money.VerbCheckpoints+".") {
		return s.Bus.Request(ctx, subject, payload)
	}
	select {
	case s.asked <- struct{}{}:
	default:
	}
	<-ctx.Done()
	s.expired.CompareAndSwap(false, errors.Is(ctx.Err(), context.DeadlineExceeded))
	return nil, messages.Errorf(messages.Unavailable, "no answer")
}

// A replica asks the leader about its checkpoint. TestElectedWhileItAsks elects this replica while it waits for the
// answer. It must then serve at once, without waiting for the answer. In a bank of one replica, the replica asks itself
// when it starts.
func TestElectedWhileItAsks(t *testing.T) {
	key, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	s := &silent{asked: make(chan struct{}, 1)}
	b := startWith(t, func(c *Config) {
		s.Bus, c.Bus, c.Signer = c.Bus, s, key
	})
	b.grant("1", "ada", 10)
	must[money.CheckpointsReply](b, "ops", money.VerbCheckpoints, money.CheckpointsRequest{Sign: true})
	b.box.Depose()
	<-s.asked
	b.box.Elect()
	await.Until(t, "the bank serves", func() bool { return b.metric("candor_bank_serving_replicas", "") == 1 })
	if s.expired.Load() {
		t.Error("the bank served only when its question had been given up")
	}
}
