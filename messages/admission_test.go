package messages

import (
	"fmt"
	"strings"
	"testing"
)

func TestOperatorsRequests(t *testing.T) {
	hour := Duration(3600_000_000_000)
	for want, r := range map[string]interface{ Validate() error }{
		"<nil>":                          &TokenRequest{Node: "node7", Expires: hour},
		"node: \"Node\" is no name":      &TokenRequest{Node: "Node", Expires: hour},
		"expires: 0s is out of range":    &TokenRequest{Node: "node7"},
		"expires: 8760h0m0s is out of":   &TokenRequest{Node: "node7", Expires: 8760 * hour},
		"add, remove: name one":          &ReplicaRequest{},
		"add, remove: name one ":         &ReplicaRequest{Add: "rack4", Remove: "rack2"},
		"add, remove: the identifier":    &ReplicaRequest{Remove: strings.Repeat("r", 129)},
		"add: \"a@b\": must not contain": &ReplicaRequest{Add: "a@b"},
		"address: needs the field add":   &ReplicaRequest{Remove: "rack2", Address: "x:1"},
		"address: \"x\" is not an":       &ReplicaRequest{Add: "rack4", Address: "x"},
	} {
		if got := fmt.Sprint(r.Validate()); !strings.HasPrefix(got, want) {
			t.Errorf("want %s…; got %s", want, got)
		}
	}
	if err := (&ReplicaRequest{Add: "rack4", Address: "10.0.0.4:7001"}).Validate(); err != nil {
		t.Error(err)
	}
}
