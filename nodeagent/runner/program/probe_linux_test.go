package program

import (
	"testing"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/money"
)

// TestProbeIsNoAccounts checks that a probe, which belongs to no account, runs as nobody.
func TestProbeIsNoAccounts(t *testing.T) {
	c := Config{User: userOfAccount}
	who, err := c.Identity(&agent.Program{Account: money.SiteAccount})
	if err != nil || who.As == nil {
		t.Fatalf("%+v, %v", who, err)
	}
	if who.As.Uid != nobody || who.As.Gid != nobody {
		t.Errorf("a probe runs as %+v", who.As)
	}
	if _, err := c.Identity(&agent.Program{Job: 7, Account: money.SiteAccount}); err == nil {
		t.Error("a job of an account without a user runs")
	}
}
