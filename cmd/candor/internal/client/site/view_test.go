package site

import (
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages/agent"
)

// The column CAN must describe the abilities of a node in common words. It must leave out abilities such as
// "build-1a2b", which only say which build the node's programs are.
func TestAbilitiesAreWords(t *testing.T) {
	for _, c := range []struct{ abilities, want []string }{
		{nil, nil},
		{[]string{agent.AbilityApart, "build-1a2b", "tasks-3c4d", agent.AbilityFreeze}, []string{"freeze", "isolate accounts"}},
		{[]string{agent.AbilityPrivate, agent.AbilityNamespaces}, []string{"isolate accounts and block the network", "run containers"}},
		{[]string{agent.AbilityFull, agent.AbilityStalled, agent.AbilityOutdated}, nil},
	} {
		if got := abilityWords(c.abilities); !slices.Equal(got, c.want) {
			t.Errorf("%q reads as %q, not %q", c.abilities, got, c.want)
		}
	}
}
