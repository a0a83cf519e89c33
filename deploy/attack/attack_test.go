package attack

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/money"
)

// TestAttack attacks a site with its default settings, from within a task and with a user's credentials.
func TestAttack(t *testing.T) {
	t.Parallel()
	attack(t, up(t))
}

// TestAttackOfOrdinaryUser attacks a site that was started by a user without powers.
func TestAttackOfOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("every test here is that")
	}
	t.Parallel()
	attack(t, upAs(t, ordinary))
}

// everything reports whether to make all attacks. By default, the tests make only some of them, so that they can run
// for every change of the code.
func everything() bool { return os.Getenv("CANDOR_ATTACKS") == "all" }

// ordinary is a user without powers.
var ordinary = &syscall.Credential{Uid: 65534, Gid: 65534}

func attack(t *testing.T, s *site) {
	t.Helper()
	s.judge(slices.Concat(fromInside(t, s), fromOutside(t, s, "bob"), fromThieves(t, s)))
}

// judge prints the table of attempts. It fails the test if an attempt had an effect, or if the site has a fault.
func (s *site) judge(attempts []attempt) {
	s.Helper()
	var table strings.Builder
	effects := report(&table, attempts, s.containment())
	fmt.Printf("\n%s: tasks can reach %s.\n%s", s.T.Name(), agent.Reach(s.abilities()), &table)
	for _, e := range effects {
		s.Errorf("%s: %s", e.What, e.Effect)
	}
	s.sound()
}

// The attacks must not start outside of a task, because there they would harm the machine.
func TestAttackersStartInTasksAlone(t *testing.T) {
	spaces := map[string]string{"pid": "pid:[1]", "mnt": "mnt:[1]"}
	whole := instructions{State: "/state", Pid: 1, Namespaces: spaces}
	if whole.check() == nil {
		t.Error("the attacker begins outside a task")
	}
	t.Setenv("CANDOR_TASK", "0")
	if err := whole.check(); err != nil {
		t.Error(err)
	}
	for _, in := range []instructions{{}, {State: "/state", Pid: 1}, {Pid: 1, Namespaces: spaces}} {
		if in.check() == nil {
			t.Errorf("the attacker begins with %+v", in)
		}
	}
}

// TestAttackFindsOpenDoors is the control for the other tests. Tasks run as the user of the site, and the attacker from
// outside has an operator's credentials. The attempts must then have effects; otherwise the other tests would prove
// nothing.
func TestAttackFindsOpenDoors(t *testing.T) {
	t.Parallel()
	s := up(t, "--tasks-as-me")
	all := 4
	if inside := report(io.Discard, fromInside(t, s), all); s.containment() != 0 || len(inside) < 5 {
		t.Errorf("tasks of the site's own user effected no more than %v", inside)
	}
	ask[money.AccountReply](s, "operator", messages.Bank, messages.VerbGrant, money.GrantRequest{Key: "own", Account: "operator", Amount: 100 * messages.Credit})
	effects := map[string]bool{}
	for _, e := range report(io.Discard, fromOutside(t, s, "operator"), all) {
		effects[e.What] = true
	}
	for _, what := range []string{"a user asks what operators, services, nodes and peers may", "a user moves others' credits, or makes some", "a user reads others' jobs, accounts and files"} {
		if !effects[what] {
			t.Errorf("an operator's credentials are refused too: %s; effects: %v", what, effects)
		}
	}
}
