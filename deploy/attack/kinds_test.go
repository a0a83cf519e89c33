package attack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// The attempts in this file are of kinds that have succeeded against other systems.

// This method sends requests that ask the server for message traces. The server publishes such a trace on a subject
// that the sender names, and the trace names the subscribers of the site. The method names subjects of other users and
// the attacker's own inbox. The server must publish no trace.
func (a *attacker) traces() (string, error) {
	mark := "trace-of-" + string(a.name)
	witness := a.conn("$bank", a.issued(identity.Service, "$bank"))
	defer witness.Close()
	traced := make(chan string, 1000)
	if _, err := witness.Subscribe(">", func(m *nats.Msg) {
		if m.Header.Get("X-Mark") == mark || strings.Contains(string(m.Data), mark) {
			traced <- m.Subject
		}
	}); err != nil {
		return "", err
	}
	if err := witness.FlushTimeout(patience); err != nil {
		return "", err
	}
	for len(a.refused) > 0 {
		<-a.refused
	}
	for _, to := range append(a.forgeable(), messages.InboxPrefix("operator")+".x", messages.InboxPrefix(a.name)+".traced") {
		m := &nats.Msg{Subject: messages.Subject(a.site.name, messages.Bank, messages.VerbAccount, a.name), Data: []byte("{}"),
			Header: nats.Header{"X-Mark": {mark}, "Nats-Trace-Dest": {to}, "Nats-Trace-Only": {"true"}, "traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}
		if err := a.nc.PublishMsg(m); err != nil {
			return "", err
		}
	}
	if err := a.nc.FlushTimeout(patience); err != nil {
		return "", err
	}
	select {
	case subject := <-traced:
		return "the server wrote to " + subject, nil
	case refusal := <-a.refused:
		return "", refusal
	}
}

// claimsByHeaders sends a request of the attacker with several headers. Each header is one that some server or service
// uses to name a sender. All of them say falsely that the operator is the sender.
func (a *attacker) claimsByHeaders() (effect string, refusal error) {
	payload, err := json.Marshal(money.GrantRequest{Key: "header", Account: a.name, Amount: 777 * messages.Credit})
	if err != nil {
		return "", err
	}
	m := &nats.Msg{Subject: messages.Subject(a.site.name, messages.Bank, messages.VerbGrant, a.name), Data: payload, Header: nats.Header{"Content-Type": {"application/json"},
		"Nats-Request-Info": {`{"acc":"CANDOR","user":"operator","name":"operator"}`}, "Candor-Caller": {"operator"}, "Authorization": {"operator"}, "Nats-Msg-Id": {"1"}, "Nats-Rollup": {"all"}}}
	reply, err := a.nc.RequestMsg(m, patience)
	if err != nil {
		return "", err
	}
	if kind := reply.Header.Get("Nats-Service-Error-Code"); kind != messages.PermissionDenied.String() {
		return fmt.Sprintf("granted: %q %.80s", kind, reply.Data), nil
	}
	return "", fmt.Errorf("%s", reply.Header.Get("Nats-Service-Error"))
}

// ownsProject acts as an owner of a project, who has more rights than a user, and tries to get an operator's rights and
// to control other accounts.
func (a *attacker) ownsProject() (string, error) {
	project := messages.Name("team-" + string(a.name))
	ask[money.AccountReply](a.site, "operator", messages.Bank, money.VerbProject, money.ProjectRequest{Account: project, Owners: []messages.Name{a.name}})
	owner, self := money.RoleOwner, money.RoleSelf
	var tries []func() (string, error)
	for verb, requests := range map[string][]any{
		messages.VerbMember: {money.MemberRequest{Account: "alice", Member: a.name, Role: &owner}, money.MemberRequest{Account: "operator", Member: a.name, Role: &owner},
			money.MemberRequest{Account: project, Member: "carol", Role: &self}},
		money.VerbCredit:   {money.CreditRequest{Account: project, Credit: 1000 * messages.Credit}},
		messages.VerbGrant: {money.GrantRequest{Key: "rise", Account: project, Amount: messages.Credit}},
		money.VerbFreeze:   {money.FreezeRequest{Account: "alice", Frozen: true}, money.FreezeRequest{Account: "operator", Frozen: true}},
		money.VerbPay:      {money.PayRequest{Key: "rise", From: "alice", To: project, Amount: messages.Credit}, money.PayRequest{Key: "debt", From: project, To: a.name, Amount: messages.Credit}},
		money.VerbProject:  {money.ProjectRequest{Account: "more-" + project, Owners: []messages.Name{a.name}}},
	} {
		for _, r := range requests {
			tries = append(tries, func() (string, error) { return a.call(messages.Bank, verb, a.name, r) })
		}
	}
	return all(tries...)
}

// namesFiles submits jobs whose inputs or outputs are outside of a task's directory, or whose environment is larger
// than a process can have.
func (a *attacker) namesFiles() (effect string, refusal error) {
	for i, spoil := range []func(*job.Stage){
		func(s *job.Stage) { s.Outputs = []string{"../../../../creds/operator.creds"} },
		func(s *job.Stage) { s.Outputs = []string{a.state + "/creds/operator.creds"} },
		func(s *job.Stage) {
			s.Inputs = []job.File{{Name: "../../../planted", Digest: strings.Repeat("a", 64), Size: 1}}
		},
		func(s *job.Stage) {
			s.Inputs = []job.File{{Name: a.state + "/planted", Digest: strings.Repeat("a", 64), Size: 1}}
		},
		func(s *job.Stage) {
			s.Inputs = []job.File{{Name: "x", Digest: "../../creds/operator.creds", Size: 1}}
		},
		func(s *job.Stage) {
			s.Env = []job.Variable{{Name: "LD_PRELOAD", Value: strings.Repeat("x", 300<<10)}}
		},
		func(s *job.Stage) {
			s.Env = []job.Variable{{Name: "A=B", Value: "x"}, {Name: "CANDOR_LEASE", Value: a.state}}
		},
	} {
		spec := job.JobSpec{Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Script: "true", Attempts: 1}}}
		spoil(&spec.Stages[0])
		j, err := a.run(fmt.Sprint("names", i), spec)
		if refusal = err; err == nil {
			if j.State == job.Completed {
				effect += fmt.Sprintf("job %d of odd names was Completed; ", i)
			}
			refusal = fmt.Errorf("the job ended %v", j.State)
		}
	}
	return effect, refusal
}

// pipes runs a task that replaces its output, its output files and its directory by pipes. A reader or writer of a pipe
// may wait for ever.
func (a *attacker) pipes() (string, error) {
	script := `mkfifo out; mkdir dir; mkfifo dir/in; for log in ../*.out ../*.err ../lane*; do mv $log $log.old && mkfifo $log; done 2>/dev/null; mkfifo ../lane2.out ../lane2.alive ../lane3.out 2>/dev/null; exit 0`
	j, err := a.run("pipes", job.JobSpec{Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Tasks: 3, Script: script, Attempts: 1, Outputs: []string{"out", "dir/*"}}}})
	if err != nil {
		return "", err
	}
	done := make(chan string, 1)
	go func() {
		text, _ := a.candor(a.name, "logs", j.Job.String())
		more, _ := a.candor(a.name, "fetch", j.Job.String(), "--output-dir", a.TempDir())
		done <- line(text + more)
	}()
	select {
	case said := <-done:
		return "", fmt.Errorf("the job ended %v; %s", j.State, said)
	case <-time.After(patience):
		return "who reads the output waits for ever", nil
	}
}

// beforeAuthentication sends much data in several protocols before it shows credentials.
func (a *attacker) beforeAuthentication() (string, error) {
	at, err := url.Parse(a.url)
	if err != nil {
		return "", err
	}
	before := a.resident()
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	var refusal error
	long := bytes.Repeat([]byte("a"), 1<<20)
	for _, begin := range []string{"CONNECT {\"user\":\"", "GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Extensions: permessage-deflate\r\nX: ",
		"\x10\xff\xff\xff\x7f\x00\x04MQTT", "INFO {\"server_id\":\"", "HPUB x 10 ", "LS+ ", "RS+ ", "PUB x 99999999\r\n", "CONNECT {\"account\":\"SYS\",\"new_account\":true}\r\nPUB $SYS.REQ.SERVER.PING 0\r\n\r\n"} {
		for range 8 {
			c, err := net.DialTimeout("tcp", at.Host, patience)
			if err != nil {
				return "", err
			}
			open = append(open, c)
			_ = c.SetDeadline(time.Now().Add(patience))
			_, _ = c.Write([]byte(begin))
			for range 4 {
				if _, err = c.Write(long); err != nil {
					refusal = err
					break
				}
			}
		}
	}
	if a.gone() {
		return "the site ended", nil
	}
	if grown := a.resident() - before; grown > 128<<10 {
		return fmt.Sprintf("the site grew by %d MiB", grown>>10), nil
	}
	return "", refusal
}

func (a *attacker) resident() int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.process.Pid))
	if err != nil {
		return 0
	}
	for _, row := range strings.Split(string(text), "\n") {
		if f := strings.Fields(row); len(f) == 3 && f[0] == "VmRSS:" {
			kib, _ := strconv.Atoi(f[1])
			return kib
		}
	}
	return 0
}
