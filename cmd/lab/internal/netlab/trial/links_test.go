package trial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab/load"
	"github.com/candor-grid/candor/messages"
)

// After a cut, the silence of a client is the longest time without an answer, beginning with the cut. It is measured
// separately for each client.
func TestLongestSilence(t *testing.T) {
	cut := time.Now()
	at := func(user messages.Name, seconds int) load.Ack {
		return load.Ack{User: user, Acked: cut.Add(time.Duration(seconds) * time.Second)}
	}
	for want, acks := range map[time.Duration][]load.Ack{
		0:               nil,
		7 * time.Second: {at("alice", -9), at("alice", 7), at("alice", 9)},
		5 * time.Second: {at("alice", 6), at("alice", 1), at("alice", 7)},
		8 * time.Second: {at("alice", 1), at("bob", 2), at("alice", 3), at("alice", 5), at("alice", 7), at("alice", 9), at("bob", 10)},
	} {
		if got := longestSilence(cut, acks); got != want {
			t.Errorf("a silence of %v, want %v", got, want)
		}
	}
}

// TestCheckOnce inserts each fault that the check must find.
func TestCheckOnce(t *testing.T) {
	for name, c := range map[string]struct{ ran, want string }{
		"nothing":                            {"1\n2\n", ""},
		"a task that ran twice":              {"1\n2\n1\n", "1 tasks ran twice"},
		"a job that is done and did not run": {"2\n", "ran 0 times"},
	} {
		m := play(t, sound())
		ran := filepath.Join(t.TempDir(), "ran")
		if err := os.WriteFile(ran, []byte(c.ran), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := m.checkOnce(t.Context(), map[messages.JobID]string{1: "k-alice-0", 2: "k-alice-1"}, ran); err != nil {
			t.Fatal(err)
		}
		if broken := strings.Join(m.trial.Broken, "; "); (broken != "") != (c.want != "") || !strings.Contains(broken, c.want) {
			t.Errorf("with %s planted, the check says %q, want %q", name, broken, c.want)
		}
	}
}
