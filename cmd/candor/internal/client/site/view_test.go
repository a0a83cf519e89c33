package site

import (
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestAbilitiesAreWords checks that the column CAN names the abilities of a node in common words, and leaves out
// names of builds.
func TestAbilitiesAreWords(t *testing.T) {
	for _, c := range []struct{ abilities, want []string }{
		{nil, nil},
		{[]string{messages.AbilityApart, "build-1a2b", "tasks-3c4d", messages.AbilityFreeze}, []string{"freeze", "isolate accounts"}},
		{[]string{messages.AbilityPrivate, messages.AbilityNamespaces}, []string{"isolate accounts and block the network", "run containers"}},
		{[]string{messages.AbilityFull, messages.AbilityStalled, messages.AbilityOutdated}, nil},
	} {
		if got := abilityWords(c.abilities); !slices.Equal(got, c.want) {
			t.Errorf("%q reads as %q, not %q", c.abilities, got, c.want)
		}
	}
}
