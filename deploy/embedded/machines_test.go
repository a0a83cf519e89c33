package embedded

import (
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
)

// TestNodesDivideTheMachine divides a machine between nodes. Each node must get separate processors and GPUs. A node
// that asks for more than the machine has must be refused. A node that is marked as Declared is not checked against the
// machine.
func TestNodesDivideTheMachine(t *testing.T) {
	discover := func() (machine.Machine, error) {
		return machine.Machine{CPUs: []int{0, 2, 1, 3}, Memory: 8 << 30, GPUs: []machine.GPU{{Index: 0, Type: "v100"}, {Index: 1, Type: "a100"}}}, nil
	}
	slots, unit := Slots{{Class: "cpu", Slots: 1}}, jobmsg.Resources{CPUs: 2, Memory: 1 << 30}
	markets := []market.Market{{Classes: []messages.Name{"cpu"}, Units: []jobmsg.ClassUnit{{Class: "cpu", Unit: unit}}}}
	nodes := []Node{
		{Name: "a", Slots: slots, Resources: &jobmsg.Resources{CPUs: 2, Memory: 4 << 30, GPUs: 1, GPUType: "a100"}},
		{Name: "plain", Slots: slots},
		{Name: "large", Declared: true, Resources: &jobmsg.Resources{CPUs: 64, Memory: 512 << 30, GPUs: 8, GPUType: "a100"}},
		{Name: "b"},
		{Name: "c", Slots: slots, Resources: &jobmsg.Resources{CPUs: 1}},
	}
	full, machines, err := divide(nodes[:4], markets, discover)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name messages.Name) machine.Machine { return machines[name] }
	if m := of("a"); !slices.Equal(m.CPUs, []int{0, 2}) || m.Memory != 4<<30 || len(m.GPUs) != 1 || m.GPUs[0].Index != 1 {
		t.Errorf("a has %+v", m)
	}
	if m := of("plain"); m.CPUs != nil || m.GPUs != nil || m.Memory != 0 {
		t.Errorf("a node that says nothing has %+v", m)
	}
	if m := of("large"); m.CPUs != nil || len(m.GPUs) != 8 || m.GPUs[7].Index != 7 {
		t.Errorf("a declared node has %+v", m)
	}
	if m := of("b"); !slices.Equal(m.CPUs, []int{1, 3}) || m.Memory != 4<<30 || len(m.GPUs) != 1 || m.GPUs[0].Index != 0 {
		t.Errorf("b has %+v", m)
	}
	if want := (jobmsg.Resources{CPUs: 2, Memory: 4 << 30, GPUs: 1, GPUType: "v100"}); *full[3].Resources != want || nodes[3].Resources != nil {
		t.Errorf("what is left: %v, want %v", full[3].Resources, want)
	}
	for i, want := range []int{1, 1, 32, 1} {
		if s := full[i].Slots; len(s) != 1 || s[0].Class != "cpu" || s[0].Slots != want {
			t.Errorf("node %s has slots %v, want %d", full[i].Name, s, want)
		}
	}
	if _, _, err := divide(nodes, markets, discover); err == nil || !strings.Contains(err.Error(), "node c: resources.cpus: 1 is more than the 0 that this machine has left") {
		t.Errorf("more than there is: %v", err)
	}
	nodes[4] = Node{Name: "c"}
	if _, _, err := divide(nodes, markets, discover); err == nil || !strings.Contains(err.Error(), "node c: slots: are missing") {
		t.Errorf("a node of nothing: %v", err)
	}
}
