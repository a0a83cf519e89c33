package depot

import (
	"bytes"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

func counted(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// Only operators may name another account, and each such access must be logged.
func TestOperatorsReadAndTheLogSaysSo(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	registry := prometheus.NewRegistry()
	s := newSite(t, Config{Operators: []messages.Name{"operator"}, Log: zap.New(core), Metrics: registry, Quota: 1 << 10})
	f, _, err := s.send(jobmsg.VerbPut, "alice", messages.Attempt{}, "secret")
	if err != nil {
		t.Fatal(err)
	}
	read := func(as, of messages.Name) (string, error) {
		var b bytes.Buffer
		err := bus.ReceiveFileOf(s.within(), s.net.Connect(as), messages.Subject("west", messages.Depot, jobmsg.VerbGet, as), of, messages.Attempt{}, f, &b)
		return b.String(), err
	}
	if got, err := read("alice", "alice"); got != "secret" || err != nil {
		t.Errorf("the owner, by name: %q, %v", got, err)
	}
	_, err = read("bob", "alice")
	wantKind(t, "another user", err, messages.PermissionDenied)
	if lines.Len() != 0 {
		t.Errorf("the log has %v", lines.All())
	}
	if got, err := read("operator", "alice"); got != "secret" || err != nil {
		t.Errorf("an operator: %q, %v", got, err)
	}
	_, err = read("operator", "bob")
	wantKind(t, "an operator, of who has no such file", err, messages.NotFound)
	_, err = ask[jobmsg.OutputsReply](s, jobmsg.VerbOutputs, "bob", jobmsg.OutputsRequest{Job: 7, Account: "alice"})
	wantKind(t, "outputs of another", err, messages.PermissionDenied)
	if _, err := ask[jobmsg.OutputsReply](s, jobmsg.VerbOutputs, "operator", jobmsg.OutputsRequest{Job: 7, Account: "alice"}); err != nil {
		t.Errorf("outputs, to an operator: %v", err)
	}
	if said := lines.FilterMessageSnippet("audit").All(); len(said) != 3 || said[0].ContextMap()["operator"] != "operator" || said[0].ContextMap()["account"] != "alice" || said[0].ContextMap()["file"] != f.Digest {
		t.Errorf("the log has %v", said)
	}
	for name, want := range map[string]float64{"operator_reads_total": 3, "received_bytes_total": 6, "sent_bytes_total": 12, "files_total": 1, "quota_refusals_total": 0} {
		if got := counted(t, registry, "candor_depot_"+name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	_, _, err = s.send(jobmsg.VerbPut, "alice", messages.Attempt{}, string(make([]byte, 1<<10+1)))
	wantKind(t, "beyond the quota", err, messages.Exhausted)
	if got := counted(t, registry, "candor_depot_quota_refusals_total"); got == 0 {
		t.Error("a refusal is not counted")
	}
}
