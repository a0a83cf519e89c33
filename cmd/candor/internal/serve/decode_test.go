package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

func check(t *testing.T, text string) (embedded.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return (&settings{file: file}).load()
}

func TestExamplesAreSites(t *testing.T) {
	for _, name := range []string{"site.yaml", "university.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "deploy", "examples", name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := check(t, string(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each error about a configuration must have the line, the column, the path of the field, and advice.
func TestMistakesAreReportedWhereTheyAre(t *testing.T) {
	cases := map[string]struct {
		text string
		want []string // "line:column: text", in order
	}{
		"unknown keys": {
			"sitee: west\nmarkets:\n  - name: main\n    mechansim: proportional\n    zzz: 1\n",
			[]string{
				`1:1: sitee: there is no such key; did you mean "site"?`,
				`4:5: markets[0].mechansim: there is no such key; did you mean "mechanism"?`,
				`5:5: markets[0].zzz: there is no such key; it can have name, mechanism, classes, time_limit, units, alpha`,
			}},
		"unknown keys, and values that cannot be": {
			"colour: red\nreplicas: 2\nlimits: {submissions_per_second: -1, pending_jobs: -4}\nmarkets:\n" +
				"  - {name: main, mechanism: proportional, classes: [map], cycle: 1h, alpha: 2, reserve: 1}\n  - {name: main, mechanism: fifo, classes: [map], draws: -3}\n",
			[]string{
				"1:1: colour: there is no such key",
				"2:11: replicas: 2 is not possible",
				"3:34: limits.submissions_per_second: -1 is out of range",
				"3:52: limits.pending_jobs: -4 is negative",
				"5:66: markets[0].cycle: markets of mechanism proportional do not use this field",
				"5:77: markets[0].alpha: 2 must be between 0 and 1",
				"5:89: markets[0].reserve: markets of mechanism proportional do not use this field",
				`6:12: markets[1].name: "main" is listed twice`,
				"6:58: markets[1].draws: markets of mechanism fifo do not use this field",
			}},
		"values of the wrong type": {
			"replicas: two\nprofile: perhaps\nsite: [west]\nmarkets:\n  - {name: main, alpha: x}\nlisten: {a: 1}\n",
			[]string{
				"1:11: replicas: must be a whole number",
				"2:10: profile: must be true or false",
				"3:7: site: must be a piece of text",
				"5:25: markets[0].alpha: must be a number",
				"6:9: listen: must be a piece of text",
			}},
		"values that read themselves": {
			"lease: 10 parsecs\naccounts:\n  - {name: alice, grant: 1.2345678}\nnodes:\n  - name: node1\n    slots: [2]\n",
			[]string{
				`1:8: lease: duration "10 parsecs": write it like 1h30m, 90s, or as a number of seconds`,
				`3:26: accounts[0].grant: amount "1.2345678": must be a decimal number of credits with at most six places`,
				"6:12: nodes[0].slots: must map classes to numbers of slots, like {map: 2, reduce: 1}",
			}},
		"resources": {
			"markets:\n  - {name: main, mechanism: fifo, classes: [cpu], units: [{class: cpu, unit: {cpu: 1, memory: 11X}}]}\n" +
				"nodes:\n  - {name: node1, resources: {cpus: two, mem: 4G, disk: -1G}}\n  - {name: node2, resources: {cpus: 2, memory: 4}}\n  - {name: node3, resources: 4}\n",
			[]string{
				`2:79: markets[0].units[0].unit.cpu: there is no such key; did you mean "cpus"?`,
				`2:95: markets[0].units[0].unit.memory: "11X": must be a size such as 512M or 4G`,
				"4:37: nodes[0].resources.cpus: must be a whole number",
				`4:42: nodes[0].resources.mem: there is no such key`,
				`4:57: nodes[0].resources.disk: "-1G": must be a size such as 512M or 4G`,
				"5:48: nodes[1].resources.memory: 4: is 4 bytes, and less than 1M: write a unit, such as 4G",
				"6:30: nodes[2].resources: must be a mapping with the keys cpus, memory, gpus, gpu_type, disk",
			}},
		"fractions of what is counted": {
			"replicas: 2.5\nnodes:\n  - {name: node1, slots: {map: 1.5}}\n",
			[]string{
				"1:11: replicas: must be a whole number",
				"3:26: nodes[0].slots: must map classes to numbers of slots, like {map: 2, reduce: 1}",
			}},
		"the wrong shape": {
			"markets: main\noperators: {a: b}\naccounts:\n  - alice\n",
			[]string{
				"1:10: markets: must be a list",
				"2:12: operators: must be a list",
				"4:5: accounts[0]: must be a mapping with the keys name, grant, members",
			}},
		"not a mapping":  {"- a\n- b\n", []string{"1:1: the file: must be a mapping with the keys site, state"}},
		"not YAML":       {"site: [west\nlisten: x\n", []string{"2:1: ',' or ']' must be specified"}},
		"a key twice":    {"site: west\nsite: east\n", []string{`2:1: mapping key "site" already defined at [1:1]`}},
		"unknown anchor": {"site: *nowhere\n", []string{"1:7: alias *nowhere: no anchor of this name comes before the alias"}},
		"meaning": {
			`markets:
  - name: main
    mechanism: proportionel
    classes: [map, gpv]
    alpha: 2
  - name: main
    mechanism: proportional
    classes: []
nodes:
  - name: Node1
    slots: {map: 0, gpu: 1}
  - name: node2
accounts:
  - {name: alice, grant: -5}
  - {name: lab, members: [alcie]}
default_account: alise
listen: here
lease: 1ms
`,
			[]string{
				`3:16: markets[0].mechanism: "proportionel" is no mechanism of this version`,
				`4:20: markets[0].classes[1]: no node offers class "gpv"; did you mean "gpu"?`,
				"5:12: markets[0].alpha: 2 must be between 0 and 1",
				`6:11: markets[1].name: "main" is listed twice`,
				"8:14: markets[1].classes: is empty",
				`10:11: nodes[0].name: "Node1" is not a name`,
				"11:18: nodes[0].slots.map: 0 is out of range; use 1 to 100000",
				"12:5: nodes[1].slots: is empty",
				"14:26: accounts[0].grant: -5 is negative",
				"15:5: accounts[1].grant: is missing",
				`15:27: accounts[1].members[0]: "alcie" is neither among accounts nor among operators; did you mean "alice"?`,
				`16:18: default_account: "alise" is neither among accounts nor among operators; did you mean "alice"?`,
				`17:9: listen: "here" is not an address; write host:port like 127.0.0.1:4222`,
				"18:8: lease: 1ms is out of range; use 1s to 1h0m0s",
			}},
		"a parameter of another mechanism": {"markets:\n  - name: main\n    mechanism: fifo\n    classes: [map]\n    alpha: 0.5\n",
			[]string{"5:12: markets[0].alpha: markets of mechanism fifo do not use this field"}},
		"a cycle that ends before it starts": {"markets:\n  - {name: night, mechanism: reservation, classes: [map], cycle: 1m, granule: 15m}\n",
			[]string{"2:66: markets[0].cycle: 1m0s must be a multiple of the granule, 15m0s"}},
		"preemption that cannot be": {"markets:\n  - name: spot\n    mechanism: highest-bid\n    classes: [map]\n    algorithm: NPHB\n    preemption: requeue\n",
			[]string{"6:17: markets[0].preemption: algorithm NPHB takes no slot from a running job"}},
		"an unknown word": {"markets:\n  - name: spot\n    mechanism: highest-bid\n    classes: [map]\n    price: second\n",
			[]string{`5:12: markets[0].price: "second" is not one of [first kth pivot]`}},
		"one machine": {"markets:\n  - name: due\n    mechanism: deadline\n    classes: [map, reduce]\n",
			[]string{"4:14: markets[0].classes: must be exactly one, there are 2"}},
		"slots promised twice": {"markets:\n  - {name: a, mechanism: fifo, classes: [map]}\n  - {name: b, mechanism: batch-queue, pricing: pivot, classes: [map]}\nnodes: [{name: node1, slots: {map: 1}}]\n",
			[]string{`3:65: markets[1].classes[0]: market a allocates slots of class "map" too`}},
		"a node that is not there": {"markets:\n  - {name: a, mechanism: fifo, classes: [map], nodes: [node9]}\n",
			[]string{`2:56: markets[0].nodes[0]: "node9" is not among nodes; did you mean "node1"?`}},
		"hosts": {
			`nodes: [{name: node1}, {name: node2}]
hosts:
  - {name: a, listen: "127.0.0.1:1", cluster: "127.0.0.1:2", auctioneer: "127.0.0.1:3", bank: "127.0.0.1:3", nodes: [node1]}
  - {name: b, listen: "127.0.0.1:0", cluster: nowhere, auctioneer: "127.0.0.1:6", nodes: [node1, node9]}
`,
			[]string{
				`1:24: nodes[1]: "node2" is on no host`,
				"3:3: hosts: there are 2; a site has one replica on each host, so use an odd number up to 7",
				`3:95: hosts[0].bank: "127.0.0.1:3" is listed twice`,
				"4:5: hosts[1].bank: is missing; write an address",
				`4:23: hosts[1].listen: "127.0.0.1:0" is not an address`,
				`4:47: hosts[1].cluster: "nowhere" is not an address`,
				`4:91: hosts[1].nodes[0]: "node1" is listed twice`,
				`4:98: hosts[1].nodes[1]: "node9" is not among nodes; did you mean "node1"?`,
			}},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			_, err := check(t, c.text)
			if messages.KindOf(err) != messages.Invalid {
				t.Fatalf("error %v, want an Invalid one", err)
			}
			got := err.Error()
			for _, want := range c.want {
				i := strings.Index(got, "site.yaml:"+want)
				if i < 0 {
					t.Fatalf("no %q, or not in its order, in:\n%s", want, err)
				}
				got = got[i:]
			}
		})
	}
}

// The sample configuration is right. A file may leave out any field.
func TestRightFiles(t *testing.T) {
	if _, err := (&settings{file: "../../../../deploy/examples/site.yaml"}).load(); err != nil {
		t.Errorf("the sample: %v", err)
	}
	for _, text := range []string{"", "---\n", "# nothing\n", "site: east\n", "accounts: []\n", "state:\n"} {
		if _, err := check(t, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A file changes only the fields that it names. A list in the file replaces the default list.
func TestFileOverDefaults(t *testing.T) {
	c, err := check(t, `
site: east
lease: 30
accounts: [{name: zoe, grant: 12.5}]
markets:
  - &m {name: main, mechanism: proportional, classes: [cpu], time_limit: 1h}
  - {<<: *m, name: night, alpha: 0.25}
nodes: [{name: big, slots: {cpu: 64, gpu: 8}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	if c.Site != "east" || c.Replicas != 3 || c.Lease.Seconds() != 30 {
		t.Errorf("site %s, replicas %d, lease %v", c.Site, c.Replicas, c.Lease)
	}
	if len(c.Accounts) != 1 || c.Accounts[0].Grant != 12_500_000 {
		t.Errorf("accounts %+v", c.Accounts)
	}
	night := c.Markets[1]
	if night.Name != "night" || night.TimeLimit.Seconds() != 3600 || *night.Alpha != 0.25 || night.Classes[0] != "cpu" {
		t.Errorf("merged market %+v", night)
	}
	want := embedded.Slots{{Class: "cpu", Slots: 64}, {Class: "gpu", Slots: 8}}
	if len(c.Nodes) != 1 || len(c.Nodes[0].Slots) != 2 || c.Nodes[0].Slots[0] != want[0] || c.Nodes[0].Slots[1] != want[1] {
		t.Errorf("nodes %+v", c.Nodes)
	}
}

// Any text may be refused, but must not cause a panic.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{"", "site: west", "a: [1", "markets: [{<<: *x}]", "x: &a [*a]", "? ? ?", "- - -\n", "<<: 1\n", "nodes: [{slots: {map: !!int x}}]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := embedded.Default()
		d, err := parse("fuzz", text)
		if err != nil {
			return
		}
		d.Decode(&c)
		d.note(embedded.Problems{{Path: "markets[0].name"}, {Path: "nodes[7].slots.map"}})
		if d.Err() == nil {
			t.Fatal("the noted problems are not among what was found")
		}
	})
}
