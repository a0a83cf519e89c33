package embedded

import (
	"slices"
	"testing"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// A host that joins a site must join the groups of the other hosts. It must not found a group, whether its disk is
// empty or has old files of a replica.
func TestHostThatJoinsFoundsNothing(t *testing.T) {
	c := valid()
	c.Hosts = three()
	c.Hosts[1].Joins = true
	g := newGroup(&share{config: c, log: zap.NewNop()}, bankKind)
	for id, want := range map[string][]string{"a": {"a", "c"}, "c": {"a", "c"}, "b": nil} {
		if got := g.founders(id); !slices.Equal(got, want) {
			t.Errorf("founders of %s: %v, want %v", id, got, want)
		}
	}
	if len(g.all) != 3 {
		t.Errorf("the configuration has lost one: %v", g.all)
	}
	for i := range c.Hosts {
		c.Hosts[i].Joins = true
	}
	if err := c.Validate(); err == nil {
		t.Error("a site that nobody begins is valid")
	}
}

// A state directory must work after some hosts of its site were replaced. It must not work with another site's
// configuration.
func TestHostsAreExchangedOneByOne(t *testing.T) {
	c := valid()
	c.State, c.Hosts = t.TempDir(), three()
	if err := keepShape(&c); err != nil {
		t.Fatal(err)
	}
	c.Hosts[1].Name = "d"
	if err := keepShape(&c); err != nil {
		t.Errorf("with one host exchanged: %v", err)
	}
	c.Hosts[0].Name, c.Hosts[2].Name = "e", "f"
	if err := keepShape(&c); messages.KindOf(err) != messages.Conflict {
		t.Errorf("with all hosts others: %v, want Conflict", err)
	}
}

func TestLimitsAreChecked(t *testing.T) {
	c := valid()
	c.Limits.Burst = 7
	if err := c.Validate(); err == nil {
		t.Error("a burst without a rate is valid")
	}
}
