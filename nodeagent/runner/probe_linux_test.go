package runner

import (
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestProbeIsNoAccounts: where tasks run as the users of their accounts, a probe,
// which is no account's, runs as nobody: it must not fail for lack of a user.
func TestProbeIsNoAccounts(t *testing.T) {
	c := Config{User: userOfAccount}
	as, err := c.credential(&messages.Program{Account: messages.SiteAccount})
	if err != nil || as.Uid != nobody || as.Gid != nobody {
		t.Errorf("%+v, %v", as, err)
	}
	if _, err := c.credential(&messages.Program{Job: 7, Account: messages.SiteAccount}); err == nil {
		t.Error("a job of an account without a user runs")
	}
}
