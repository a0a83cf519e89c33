package rules

import (
	"strings"
	"testing"
)

func TestOnlyTheMechanismIsNeeded(t *testing.T) {
	for _, name := range Mechanisms() {
		m, err := Decode("m.yaml", []byte("mechanism: "+name+"\n"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m.Mechanism != name || m.Worth == "" || m.Bids.Value.Share != 0.2 {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestEveryParameterIsRead(t *testing.T) {
	for _, text := range []string{
		"name: spot\nmechanism: highest-bid\nprice: first\nalgorithm: WSEPT\ncapped: true\nreserve: 0.5\nworth: deadline\n",
		"mechanism: deadline\nC: 7\nlambda: 0\nrule: paper\nscale: 8\ngroups: 3\nslot: 1m\n",
		"mechanism: batch-queue\nN: 4\nmode: full\ndraws: 10\n",
		"mechanism: reservation\nN: 4\nT: 10\ngranule: 60\nsearch: {orders: 3, seed: 4}\npricing: thesis\n",
		"mechanism: contract\nM: 8\nlate_only: true\nseed: 3\n", "mechanism: batch-queue\nexpectation: exact\nseed: 0\n", "mechanism: fifo\nnodes: 5\n",
		"mechanism: proportional\nalpha: 0.25\nbids: {users: {spread: 0.5, by: user}, shading: {aggressive: 0.1, beta: 0.6}}\n",
		"mechanism: fifo\nprice: 2\n", "mechanism: backfill\nprice: 0.5\nvariant: conservative\n", "mechanism: fairshare\nhalf_life: 0s\n",
		`{"mechanism": "highest-bid", "bids": {"value": {"distribution": "uniform", "min": 1, "max": 2}}}`,
	} {
		if _, err := Decode("m.yaml", []byte(text)); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
	if m, err := Decode("m.yaml", []byte("mechanism: reservation\norders: 7\n")); err != nil || m.Search.Orders != 7 || m.Search.Seed != 1 {
		t.Errorf("%v, %+v", err, m)
	}
	if m, err := Decode("m.yaml", []byte("mechanism: backfill\nreserve: 3\nmode: conservative\n")); err != nil || m.Price != 3.0 || m.Variant != "conservative" {
		t.Errorf("%v, %+v", err, m)
	}
	m, err := Decode("m.yaml", []byte("mechanism: deadline\nlambda: 0\nbids: {deadline: {mean: 3}}\n"))
	if err != nil || *m.Lambda != 0 || m.Bids.Deadline.Mean != 3 || m.Bids.Deadline.Slack != "exponential" {
		t.Errorf("%v, %+v", err, m)
	}
}

func TestMistakesAreLocated(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "m.yaml:1:1: write one document",
		"name: a\n":                             "m.yaml:1:1: mechanism: is missing",
		"mechanism: auction\n":                  "m.yaml:1:12: mechanism: must be one of",
		"mechanism: highest-bid\npricee: kth\n": "m.yaml:2:1: pricee: there is no such key; did you mean",
		"mechanism: highest-bid\nalpha: 0.5\n":  "m.yaml:2:1: alpha: mechanism highest-bid has no such parameter",
		"mechanism: highest-bid\nprice: second\n":                        "m.yaml:2:8: price: must be one of first, kth",
		"mechanism: fifo\nprice: dear\n":                                 "m.yaml:2:8: price: must be a number",
		"mechanism: fifo\nbids:\n  valu: {}\n":                           "m.yaml:3:3: bids.valu: there is no such key; did you mean",
		"mechanism: fifo\nbids:\n  value: {share: 2}":                    "m.yaml:3:18: bids.value.share: must be from 0 to 1",
		"mechanism: fifo\nbids: 7\n":                                     "m.yaml:2:7: ",
		"mechanism: [\n":                                                 "m.yaml:1:12: ",
		"mechanism: fifo\nname: a b\n":                                   "m.yaml:2:7: name: ",
		"mechanism: deadline\nslot: 5ms\n":                               "m.yaml:2:7: slot: must be at least 1s",
		"mechanism: reservation\nT: 0.5\n":                               "m.yaml:2:4: T: must be a whole number",
		"mechanism: reservation\nsearch: {orders: 2.5}\n":                "m.yaml:2:18: search.orders: must be a whole number",
		"mechanism: reservation\nsearch:\n  orders: 2.5\n":               "m.yaml:3:11: search.orders: must be a whole number",
		"mechanism: highest-bid\npreemption: stop\n":                     "m.yaml:2:13: preemption: must be one of suspend, requeue, cancel",
		"mechanism: highest-bid\nalgorithm: NPHB\npreemption: suspend\n": "m.yaml:3:13: preemption: algorithm NPHB takes no slot",
		"mechanism: fifo\nmechanism: fifo\n":                             "m.yaml:2:1: ",
		"mechanism: fifo\n---\nmechanism: fifo\n":                        "m.yaml:1:1: write one document",
		"\x00\x01":                                                 "m.yaml:1:1: ",
		"mechanism: deadline\nslot: tens\n":                        `m.yaml:2:7: slot: duration "tens": write it like`,
		"mechanism: fairshare\nhalf_life: 1e300\n":                 "m.yaml:2:12: half_life: ",
		"mechanism: reservation\ngranule: 0s\n":                    "m.yaml:2:10: granule: must be at least 1s, is 0",
		"mechanism: reservation\nT: 0\n":                           "m.yaml:2:4: T: must be from 1 to",
		"mechanism: reservation\nsearch: {orders: 0}\n":            "m.yaml:2:18: search.orders: must be from 1 to",
		"mechanism: reservation\nT: 1000000\ngranule: 1h\n":        "m.yaml:2:4: T: 1000000 granules of 1h0m0s are 3.6e+09 s",
		"mechanism: fifo\nnodes: 20000000\n":                       "m.yaml:2:8: nodes: must be from 0 to 16777216",
		"mechanism: deadline\ngroups: 0\n":                         "m.yaml:2:9: groups: must be from 1 to",
		"mechanism: reservation\norders: -7\n":                     "m.yaml:2:9: orders: must be from 1",
		"mechanism: fifo\nreserve: -2\n":                           "m.yaml:2:10: reserve: must be from 0",
		"mechanism: backfill\nmode: full\n":                        "m.yaml:2:7: mode: must be one of easy, conservative",
		"mechanism: highest-bid\nreserve: 1\nprice: 3\n":           "m.yaml:3:8: price: must be first, kth or pivot",
		"mechanism: reservation\nsearch: {orders: 3}\norders: 7\n": "m.yaml:3:1: orders: has the same meaning as search",
		"mechanism: fifo\nreserve: 2\nprice: 3\n":                  "m.yaml:2:1: reserve: has the same meaning as price",
		"mechanism: backfill\nmode: easy\nvariant: conservative\n": "m.yaml:2:1: mode: has the same meaning as variant",
		"mechanism: highest-bid\nnodes: many\n":                    `m.yaml:2:8: nodes: must be a whole number`,
		"mechanism: highest-bid\ncapped: 3\n":                      `m.yaml:2:9: capped: must be true or false`,
		"mechanism: fifo\nbids:\n  budget: dear\n":                 `m.yaml:3:11: bids.budget: must be a number`,
		"mechanism: highest-bid\nnodes: 2e300\n":                   "m.yaml:2:8: nodes: must be a whole number",
	} {
		if _, err := Decode("m.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("mechanism: highest-bid\nprice: kth\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := Decode("m", text); err == nil && parameters[m.Mechanism] == nil {
			t.Fatal("a market without a mechanism")
		}
	})
}
