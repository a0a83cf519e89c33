package slurm

import (
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/hostlist"
)

// The output must be the same as from `scontrol show hostnames` and `scontrol show hostlist` of Slurm 22.05.
func TestHostlists(t *testing.T) {
	for list, want := range map[string]string{
		"n1":                        "n1",
		"n[1-3]":                    "n1 n2 n3",
		"n[1-2,5],login,gpu[08-10]": "n1 n2 n5 login gpu08 gpu09 gpu10",
		"r[1-2]n[1-2]":              "r1n1 r1n2 r2n1 r2n2",
		"n1,n1":                     "n1 n1",
		"a[1]-ib":                   "a1-ib",
	} {
		got, err := expandHosts(list)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v", list, got, err)
		}
	}
	for hosts, want := range map[string]string{
		"n1 n2 n5":        "n[1-2,5]",
		"n1":              "n1",
		"n2 n1":           "n[2,1]",
		"login n1 n2 x":   "login,n[1-2],x",
		"n08 n09 n10 n11": "n[08-11]",
		"n9 n10":          "n[9-10]",
		"n1 n1":           "n[1,1]",
		"gpu-a gpu-b":     "gpu-a,gpu-b",
	} {
		got := hostlist.Join(strings.Fields(hosts))
		if got != want {
			t.Errorf("%s: %s, want %s", hosts, got, want)
		}
		if back, err := expandHosts(got); err != nil || !slices.Equal(back, strings.Fields(hosts)) {
			t.Errorf("%s: back %q, %v", got, back, err)
		}
	}
	for _, list := range []string{"", ",", "n[", "n]", "n[]", "n[1-]", "n[2-1]", "n[x]", "n[0-99999]", "n[0-4294967295]", "n[1-300]m[1-300]", "n[18446744073709551615]", "a[1-2"} {
		if got, err := expandHosts(list); err == nil {
			t.Errorf("%q: %d hosts", list, len(got))
		}
	}
	if got := hostlist.Sort([]string{"n10", "n2", "a1", "n2"}); !slices.Equal(got, []string{"a1", "n2", "n10"}) {
		t.Error(got)
	}
}
