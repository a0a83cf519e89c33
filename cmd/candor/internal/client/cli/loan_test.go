package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// A command runs for hours, on a machine whose clock is two hours behind the site's clock. For each later connection it
// must ask the door for credentials. It must not use the first credentials again, although their expiry seems far away.
func TestALongCommandAsksTheDoorForEachConnection(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "door.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for n := 2; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = json.NewEncoder(c).Encode(Loan{Account: "alice", Claim: fmt.Sprint(n), Seed: "s", Expires: messages.TimeOf(time.Now().Add(3 * time.Hour))})
			_ = c.Close()
		}
	}()
	expect := func(give func() (string, string, error), want string) {
		t.Helper()
		if token, _, err := give(); err != nil || token != want {
			t.Errorf("credentials %s, not %s (%v)", token, want, err)
		}
	}
	first := &proof.Principal{Token: "1", Seed: "s"}
	young := (&Target{held: first, got: time.Now(), door: socket}).principal()
	expect(young, "1")
	expect(young, "2")
	expect(young, "3")
	expect((&Target{held: first, got: time.Now().Add(-loanLasts), door: socket}).principal(), "4") // it has not connected before
	_ = l.Close()
	expect(young, "3") // the door is being started again

	a := &App{loan: Loan{Account: "alice", Claim: "old", got: time.Now().Add(-loanLasts)}}
	if _, _, err := a.loanOf(socket); err == nil {
		t.Error("credentials of half an hour ago are used for a new connection")
	}
}
