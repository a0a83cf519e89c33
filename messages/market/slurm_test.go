package market

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/job"
)

func TestTablesOfSlurmNames(t *testing.T) {
	markets := []Market{{Name: "cpu"}}
	one := func(name, value string) job.Labels { return job.Labels{{Name: name, Value: value}} }
	for want, n := range map[string]SlurmNames{
		"":                                     {Partitions: job.Labels{{Name: "*"}, {Name: "CPUQ", Value: "cpu"}}, Accounts: one("x@y", "Physics"), QOS: one("debug", "1h"), Reservations: one("r", "cpu"), Clusters: one("c1", "west"), GRES: job.Labels{{Name: "*"}, {Name: "shard", Value: "gpu"}, {Name: "tmp", Value: "disk"}}},
		`partitions: "a": "gpu": must be`:      {Partitions: one("a", "gpu")},
		`accounts: "a": "no name": must be`:    {Accounts: one("a", "no name")},
		`qos: "a": "-5m": must be`:             {QOS: one("a", "-5m")},
		`qos: "a": "gpu": must be`:             {QOS: one("a", "gpu")},
		`reservations: "": "": must be`:        {Reservations: one("", "")},
		`gres: "a": "tape": must be`:           {GRES: one("a", "tape")},
		`clusters: "a": "Not A Site": must be`: {Clusters: one("a", "Not A Site")},
	} {
		err := n.Validate(markets)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", n, err, want)
		}
	}
	table := job.Labels{{Name: "*", Value: "any"}, {Name: "a"}}
	if value, listed, ok := table.Lookup("a"); value != "" || !listed || !ok {
		t.Errorf("a: %q %v %v", value, listed, ok)
	}
	if value, listed, ok := table.Lookup("b"); value != "any" || listed || !ok {
		t.Errorf("b: %q %v %v", value, listed, ok)
	}
	if _, _, ok := table[1:].Lookup("b"); ok {
		t.Error("b is known without *")
	}
}
