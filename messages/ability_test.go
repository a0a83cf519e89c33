package messages_test

import (
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestUnboundedNodesSaySo checks that Unbounded names each bound that a node cannot enforce.
func TestUnboundedNodesSaySo(t *testing.T) {
	for want, abilities := range map[string][]messages.Name{
		"": {messages.AbilityCPU, messages.AbilityPids, messages.AbilityMemory},
		"nothing bounds how much a task uses of: processors":                    {messages.AbilityPids, messages.AbilityMemory},
		"nothing bounds how much a task uses of: memory, processes, processors": {messages.AbilityApart},
	} {
		if got := messages.Unbounded(abilities); got != want {
			t.Errorf("%v: %q, want %q", abilities, got, want)
		}
	}
}
