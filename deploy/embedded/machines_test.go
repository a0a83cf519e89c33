package embedded

import (
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// TestNodesDivideTheMachine: nodes of one machine have processors and GPUs of their own, more than it has only as
// declared, and nothing where they say nothing.
func TestNodesDivideTheMachine(t *testing.T) {
	discover := func() runner.Machine {
		return runner.Machine{CPUs: []int{0, 2, 1, 3}, Memory: 8 << 30, GPUs: []runner.GPU{{Index: 0, Type: "v100"}, {Index: 1, Type: "a100"}}}
	}
	nodes := []Node{
		{Name: "a", Resources: &messages.Resources{CPUs: 3, Memory: 4 << 30, GPUs: 1, GPUType: "a100"}},
		{Name: "plain"},
		{Name: "large", Declared: true, Resources: &messages.Resources{CPUs: 64, Memory: 512 << 30, GPUs: 8, GPUType: "a100"}},
		{Name: "b", Resources: &messages.Resources{CPUs: 1, GPUs: 1}},
		{Name: "c", Resources: &messages.Resources{CPUs: 1}},
	}
	of := func(name messages.Name) runner.Machine {
		m, err := machineOf(nodes, name, discover)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := of("a"); !slices.Equal(m.CPUs, []int{0, 2, 1}) || m.Memory != 4<<30 || len(m.GPUs) != 1 || m.GPUs[0].Index != 1 {
		t.Errorf("a has %+v", m)
	}
	if m := of("plain"); m.CPUs != nil || m.GPUs != nil || m.Memory != 0 {
		t.Errorf("a node that says nothing has %+v", m)
	}
	if m := of("large"); m.CPUs != nil || len(m.GPUs) != 8 || m.GPUs[7].Index != 7 {
		t.Errorf("a declared node has %+v", m)
	}
	if m := of("b"); !slices.Equal(m.CPUs, []int{3}) || len(m.GPUs) != 1 || m.GPUs[0].Index != 0 {
		t.Errorf("b has %+v", m)
	}
	if _, err := machineOf(nodes, "c", discover); err == nil || !strings.Contains(err.Error(), "node c: resources.cpus: 1, and this machine has 0 left") {
		t.Errorf("more than there is: %v", err)
	}
}
