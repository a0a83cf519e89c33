package embedded

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// plain is an ordinary NATS client that uses none of Candor's code.
type plain struct {
	*testing.T
	*nats.Conn
	denied chan error
}

func dial(t *testing.T, s *Site, account string) plain {
	t.Helper()
	p := plain{T: t, denied: make(chan error, 8)}
	conn, err := nats.Connect(s.URL(), nats.Timeout(patience), nats.UserCredentials(s.CredsFile(account)), nats.CustomInboxPrefix("_INBOX_"+account),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { p.denied <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	p.Conn = conn
	return p
}

func (p plain) ask(subject, document string) map[string]any {
	p.Helper()
	reply, err := p.Request(subject, []byte(document), patience)
	if err != nil {
		p.Fatalf("%s: %v", subject, err)
	}
	var out map[string]any
	if err := json.Unmarshal(reply.Data, &out); err != nil {
		p.Fatalf("%s answered %q: %v", subject, reply.Data, err)
	}
	return out
}

// TestAnyClientCanSubmit submits a job, repeats the request, follows the job and pays, with only nats.go and JSON.
func TestAnyClientCanSubmit(t *testing.T) {
	t.Parallel()
	s := start(t, small(t.TempDir()))
	defer closeSite(t, s)
	alice := dial(t, s, "alice")
	const submit = "candor.west.auctioneer.submit.alice"
	document := `{"key":"k1","spec":{"name":"hello","budget":2.5,"stages":[{"name":"map","command":["echo","hello"]}]}}`
	first := alice.ask(submit, document)
	if first["job"] != 1.0 || first["held"] != 2.5 || first["payer"] != "alice" {
		t.Fatalf("submitted: %v", first)
	}
	if again := alice.ask(submit, document); again["job"] != first["job"] {
		t.Fatalf("the same submission became job %v", again["job"])
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for state := ""; state != "Completed"; <-tick.C {
		state = alice.ask("candor.west.auctioneer.job.alice", `{"job":1}`)["state"].(string)
	}
	if account := alice.ask("candor.west.bank.account.alice", `{}`); account["balance"] != 997.5 || account["reserved"] != 0.0 {
		t.Fatalf("account: %v", account)
	}
	if nodes := alice.ask("candor.west.auctioneer.nodes.alice", ``); len(nodes["nodes"].([]any)) != 2 {
		t.Fatalf("nodes: %v", nodes)
	}
	bad := alice.ask(submit, `{"key":"k2","spec":{"budget":1,"stages":[{"name":"map","class":"gpu","command":["x"]}]}}`)
	if bad["kind"] != "NotFound" || !strings.Contains(bad["message"].(string), "stages[0].class") {
		t.Fatalf("an unknown class was answered %v", bad)
	}
}

// TestAnyClientCanSpeakMsgpack sends a request as a msgpack array. The answer must be a msgpack array.
func TestAnyClientCanSpeakMsgpack(t *testing.T) {
	t.Parallel()
	s := start(t, small(t.TempDir()))
	defer closeSite(t, s)
	alice := dial(t, s, "alice")
	payload, err := msgpack.Marshal([]any{false, "", false, 0, 5}) // the fields of a JobsRequest, in order
	if err != nil {
		t.Fatal(err)
	}
	reply, err := alice.Request("candor.west.auctioneer.jobs.alice", payload, patience)
	if err != nil {
		t.Fatal(err)
	}
	var jobs []any
	if err := msgpack.Unmarshal(reply.Data, &jobs); err != nil || len(jobs) < 2 { // the answer may have more fields, because later releases add fields at the end
		t.Fatalf("answered %x: %v, %v", reply.Data, jobs, err)
	}
}

// TestNobodySpeaksForAnother sends a request under another account's name. The NATS server must refuse it, and it
// must have no effect.
func TestNobodySpeaksForAnother(t *testing.T) {
	t.Parallel()
	s := start(t, small(t.TempDir()))
	defer closeSite(t, s)
	bob := dial(t, s, "bob")
	document := `{"key":"k1","spec":{"budget":1,"stages":[{"name":"map","command":["true"]}]}}`
	if err := bob.PublishRequest("candor.west.auctioneer.submit.alice", "_INBOX_bob.1", []byte(document)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-bob.denied:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Fatalf("refused with %v", err)
		}
	case <-within(t).Done():
		t.Fatal("bob may submit as alice")
	}
	if jobs := connect(t, s, "alice"); len(request[jobmsg.JobsReply](jobs, messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{}).Jobs) != 0 {
		t.Fatal("alice has a job that she did not submit")
	}
}
