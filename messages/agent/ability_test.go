package agent_test

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

func TestUnboundedNodesSaySo(t *testing.T) {
	for want, abilities := range map[string][]messages.Name{
		"": {agent.AbilityCPU, agent.AbilityPids, agent.AbilityMemory},
		"nothing limits how much of these a task uses: processors":                    {agent.AbilityPids, agent.AbilityMemory},
		"nothing limits how much of these a task uses: memory, processes, processors": {agent.AbilityApart},
	} {
		if got := agent.Unbounded(abilities); got != want {
			t.Errorf("%v: %q, want %q", abilities, got, want)
		}
	}
}
