package attack

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/agent"
)

const allowed = `site: west
accounts: [{name: alice, grant: 1000}, {name: bob, grant: 1000}]
operators: [operator]
markets: [{name: main, mechanism: proportional, classes: [map]}]
nodes: [{name: node1, slots: {map: 3}}]
tasks: {namespaces: allow}
`

// This site lets tasks make namespaces, so attempts to make some succeed. No other attempt of a task may have an
// effect.
func TestAttackWhereNamespacesAreAllowed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "allowed.yaml")
	if err := os.WriteFile(file, []byte(allowed), 0o644); err != nil {
		t.Fatal(err)
	}
	s := upAs(t, nil, "--config", file)
	s.nodes = 1
	if !slices.Contains(s.abilities(), agent.AbilityNamespaces) {
		t.Fatalf("the nodes have %v", s.abilities())
	}
	attempts := fromInside(t, s)
	i := slices.IndexFunc(attempts, func(a attempt) bool { return strings.HasSuffix(a.What, "makes namespaces of its own") })
	if i < 0 || !strings.Contains(attempts[i].Effect, "user") {
		t.Errorf("a task makes no namespaces: %+v", attempts[max(i, 0)])
	}
	for i, a := range attempts { // the kernel checks the arguments before the capabilities
		if strings.HasSuffix(a.What, "makes system calls that change the kernel") && a.Effect == "mount: bad address; " {
			attempts[i].Effect, attempts[i].Refusal = "", a.Effect
		}
	}
	s.judge(slices.Delete(attempts, i, i+1))
}
