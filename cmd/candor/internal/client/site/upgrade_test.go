package site

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// threeHosts returns the groups of the hosts rack1, rack2 and rack3. rack1 leads the auctioneer, and rack2 the bank.
// The map `level` has the level of each host's release; a host without a level does not answer.
func threeHosts(agreed int, level map[string]int) (groups []messages.ReplicasReply) {
	for actor, leader := range map[string]string{messages.Auctioneer: "rack1", messages.Bank: "rack2"} {
		g := messages.ReplicasReply{Actor: actor, Spare: 1, Level: agreed}
		for _, id := range []string{"rack1", "rack2", "rack3"} {
			g.Replicas = append(g.Replicas, messages.ReplicaState{ID: id, Leads: id == leader, Votes: true, Answers: level[id] > 0,
				Level: level[id], Release: map[int]string{1: "v1", 2: "v2", 3: "v3"}[level[id]]})
		}
		groups = append(groups, g)
	}
	return groups
}

// In the plan of an upgrade, hosts that lead must come last. While a replica is silent, no host may be upgraded.
func TestUpgradePlan(t *testing.T) {
	old := []market.NodeStatus{{Node: "node4", State: "Up", Level: 1}, {Node: "gone", State: "Lost"}}
	for name, c := range map[string]struct {
		agreed int
		level  map[string]int
		nodes  []market.NodeStatus
		want   []string // how each step begins
		back   string
	}{
		"at the beginning": {1, map[string]int{"rack1": 1, "rack2": 1, "rack3": 1}, old,
			[]string{"On rack3: install candor v2", "On rack1: ", "On rack2: ", "Nodes on other machines (with a lower level now: node4; nodes on the hosts above are upgraded together with these hosts)", "candor upgrade finish"}, "Install the earlier release"},
		"after one host":   {1, map[string]int{"rack1": 1, "rack2": 1, "rack3": 2}, nil, []string{"On rack1: ", "On rack2: ", "candor upgrade finish"}, "Install the earlier release"},
		"a host is silent": {1, map[string]int{"rack1": 1, "rack2": 1}, nil, []string{"On rack3: start candor"}, "Install the earlier release"},
		"an agent is left": {1, map[string]int{"rack1": 2, "rack2": 2, "rack3": 2}, old,
			[]string{"Nodes on other machines (with a lower level now: node4): install", "candor upgrade finish"}, "Install the earlier release"},
		"all hosts are upgraded": {1, map[string]int{"rack1": 2, "rack2": 2, "rack3": 2}, nil, []string{"candor upgrade finish"}, "Install the earlier release"},
		"at the end":             {2, map[string]int{"rack1": 2, "rack2": 2, "rack3": 2}, nil, nil, "The replicas agree on level 2: a release of level 1 can no longer"},
	} {
		u := planUpgrade("v2", 2, threeHosts(c.agreed, c.level), c.nodes)
		if len(u.Steps) != len(c.want) || !strings.HasPrefix(u.Back, c.back) {
			t.Errorf("%s: %+v", name, u)
			continue
		}
		for i, s := range u.Steps {
			if !strings.HasPrefix(s.Do, c.want[i]) || s.Check == "" {
				t.Errorf("%s: step %d is %+v, want %q", name, i+1, s, c.want[i])
			}
		}
	}
	u := planUpgrade("v3", 3, threeHosts(1, map[string]int{"rack1": 1, "rack2": 1, "rack3": 1}), nil)
	if len(u.Steps) != 1 || !strings.Contains(u.Steps[0].Do, "first upgrade all hosts to a release of level 2") {
		t.Errorf("two releases ahead: %+v", u.Steps)
	}
	if u := planUpgrade("v2", 2, threeHosts(3, map[string]int{"rack1": 3, "rack2": 3, "rack3": 3}), nil); len(u.Steps) != 1 || !strings.Contains(u.Steps[0].Do, "agreed on level 3") {
		t.Errorf("with an older program: %+v", u.Steps)
	}
}
