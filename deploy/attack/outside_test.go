package attack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/schema"
	"github.com/candor-grid/candor/messages/wire"
)

type attacker struct {
	*site
	name    messages.Name
	creds   string
	refused chan error // asynchronous errors of the server
	nc      *nats.Conn
	bus     bus.Bus
	victim  messages.JobID // job of alice
}

func fromOutside(t *testing.T, s *site, name messages.Name) (attempts []attempt) {
	t.Helper()
	a := &attacker{site: s, name: name, creds: s.creds(name), refused: make(chan error, 10_000)}
	a.nc = s.conn(name, a.creds, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		select {
		case a.refused <- err:
		default:
		}
	}))
	a.bus = s.client(name)
	a.victim = ask[job.SubmitReply](s, "alice", messages.Auctioneer, messages.VerbSubmit, job.SubmitRequest{Key: "victim",
		Spec: job.JobSpec{Name: "secret", Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Script: "echo secret"}}}}).Job
	s.job("alice", a.victim, func(j job.JobDetail) bool { return j.State == job.Completed })
	for _, try := range outsideAttempts {
		effect, err := try.do(a)
		done := attempt{What: "a user " + try.what, Effect: effect}
		if err != nil {
			done.Refusal = err.Error()
		}
		attempts = append(attempts, done)
	}
	return append(attempts, a.aftermath()...)
}

var outsideAttempts = []struct {
	what string
	do   func(*attacker) (effect string, refusal error)
}{
	{"speaks in others' names, every verb", (*attacker).speaksAsOthers},
	{"asks what operators, services, nodes and peers may", (*attacker).asksAboveRank},
	{"moves others' credits, or makes some", (*attacker).movesCredits},
	{"reads others' jobs, accounts and files", (*attacker).readsOthers},
	{"tells others' jobs from jobs that are not", (*attacker).tellsJobs},
	{"listens to others", (*attacker).listens},
	{"writes into inboxes, vectors, directives and JetStream", (*attacker).publishes},
	{"has answers sent to others, by reply subjects", (*attacker).reflects},
	{"connects without credentials, or with another site's", (*attacker).connects},
	{"sends malformed requests", (*attacker).malforms},
	{"sends messages above any request", (*attacker).oversends},
	{"subscribes without end", (*attacker).subscribes},
	{"has the site's state as its working directory", (*attacker).worksInState},
	{"has a directory of the node's processes as its working directory", (*attacker).worksInProcesses},
	{"has control characters printed on others' terminals", (*attacker).typesElsewhere},
	{"finds a port of the site that its configuration does not name", (*attacker).findsPorts},
	{"has the site fetch others' files, by links among a task's outputs", (*attacker).fetchesLinks},
	{"has the server trace a message to others, or to itself", (*attacker).traces},
	{"says by headers that it is the operator", (*attacker).claimsByHeaders},
	{"owns a project, and rises or rules others by that", (*attacker).ownsProject},
	{"names files outside a task's directory, and has too large an environment", (*attacker).namesFiles},
	{"puts pipes in place of its output", (*attacker).pipes},
	{"speaks without end before it shows credentials", (*attacker).beforeAuthentication},
	{"computes and then fails, or cancels, to owe nothing", (*attacker).fails},
	{"floods the site with requests", (*attacker).floods},
}

// call sends a request that the site must refuse. It returns an effect if the site answered, otherwise "".
func (a *attacker) call(actor, verb string, as messages.Name, request any) (effect string, refusal error) {
	ctx, cancel := context.WithTimeout(a.Context(), 5*time.Second)
	defer cancel()
	payload, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		return "", err
	}
	await.Until(a.T, "the attacker may ask again", func() bool { // a refusal for too many requests does not count
		_, err = a.bus.Request(ctx, messages.Subject(a.site.name, actor, verb, as), payload)
		return messages.KindOf(err) != messages.Exhausted || ctx.Err() != nil
	})
	if err == nil {
		return fmt.Sprintf("%s %s was answered", actor, verb), nil
	}
	return "", err
}

func all(attempts ...func() (string, error)) (effect string, refusal error) {
	for _, try := range attempts {
		if effect, refusal = try(); effect != "" {
			return effect, nil
		}
	}
	return "", refusal
}

// publishedWithout publishes a plain message on each subject, although the attacker has no permission for it. The
// result `effect` lists the subjects that the server did not refuse.
func (a *attacker) publishedWithout(subjects []string, reply string) (effect string, refusal error) {
	for _, subject := range subjects {
		before := a.nc.LastError()
		m := &nats.Msg{Subject: subject, Reply: reply, Data: []byte(`{}`)}
		if err := a.nc.PublishMsg(m); err != nil {
			return "", err
		}
		if err := a.nc.FlushTimeout(patience); err != nil {
			return "", err
		}
		if err := a.nc.LastError(); err != before { // the error arrives before the answer to the flush
			refusal = err
		} else {
			effect += subject + " "
		}
	}
	return effect, refusal
}

func (a *attacker) speaksAsOthers() (string, error) {
	var subjects []string
	for _, v := range schema.Verbs() {
		for _, name := range []messages.Name{"alice", "operator", "$bank", "$auctioneer", "node1", "$east"} {
			if name != a.name {
				subjects = append(subjects, messages.Subject(a.site.name, v.Actor, v.Verb, name))
			}
		}
	}
	return a.publishedWithout(subjects, a.nc.NewInbox())
}

// asksAboveRank sends, under its own name, requests that only others may send.
func (a *attacker) asksAboveRank() (string, error) {
	type request struct {
		actor, verb string
		request     any
	}
	me := a.name
	var tries []func() (string, error)
	for _, r := range []request{
		{messages.Auctioneer, messages.VerbRegister, agent.RegisterRequest{Session: 7, Slots: []job.ClassSlots{{Class: "map", Slots: 100}}}},
		{messages.Auctioneer, messages.VerbExchange, agent.Exchange{}},
		{messages.Auctioneer, messages.VerbArchive, job.ArchiveRequest{}},
		{messages.Auctioneer, market.VerbPast, market.PastRequest{}},
		{messages.Auctioneer, market.VerbDrain, market.DrainRequest{Node: "node1"}},
		{messages.Auctioneer, market.VerbWindow, market.WindowRequest{Remove: 1}},
		{messages.Auctioneer, messages.VerbAdmit, messages.AdmitRequest{Revoke: "x"}},
		{messages.Auctioneer, messages.VerbReplica, messages.ReplicaRequest{}},
		{messages.Auctioneer, messages.VerbReplicas, messages.Empty{}},
		{messages.Auctioneer, clearing.VerbPeerJobs, clearing.PeerJobsRequest{}},
		{messages.Auctioneer, clearing.VerbPeerLogs, clearing.OutputRequest{Node: "node1", Logs: agent.LogsRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: a.victim}, Number: 1}}}},
		{messages.Bank, messages.VerbReplica, messages.ReplicaRequest{}},
		{messages.Bank, money.VerbJournal, money.JournalRequest{}},
		{messages.Bank, money.VerbSegment, money.SegmentRequest{First: 1}},
		{messages.Bank, clearing.VerbPeer, clearing.PeerRequest{Peer: "east", Limit: messages.Credit}},
		{messages.Bank, money.VerbFreeze, money.FreezeRequest{Account: "carol", Frozen: true}},
		{messages.Bank, clearing.VerbLines, clearing.LinesRequest{Sender: "east"}},
		{messages.Bank, clearing.VerbTotals, messages.Empty{}},
		{messages.Admission, messages.VerbToken, messages.TokenRequest{Node: "node9", Expires: messages.Duration(time.Hour)}},
		{messages.Admission, messages.VerbTokens, messages.Empty{}},
		{messages.Admission, messages.VerbEnrol, messages.EnrolRequest{Key: "UA"}},
		{messages.Depot, job.VerbTake, job.GetRequest{Digest: strings.Repeat("0", 64)}},
		{messages.Depot, job.VerbDeliver, job.DeliverRequest{}},
		{messages.Links, messages.VerbStatus, messages.Empty{}},
	} {
		tries = append(tries, func() (string, error) { return a.call(r.actor, r.verb, me, r.request) })
	}
	return all(tries...)
}

func (a *attacker) movesCredits() (string, error) {
	me, alice := a.name, messages.Name("alice")
	var tries []func() (string, error)
	for verb, request := range map[string]any{
		messages.VerbGrant:    money.GrantRequest{Key: "g", Account: me, Amount: 12345 * messages.Credit},
		money.VerbPay:         money.PayRequest{Key: "p", From: alice, To: me, Amount: messages.Credit},
		money.VerbWithdraw:    money.WithdrawRequest{Key: "w", Account: alice, Amount: messages.Credit, Reason: "x"},
		money.VerbCredit:      money.CreditRequest{Account: me, Credit: 1000 * messages.Credit},
		messages.VerbMember:   money.MemberRequest{Account: alice, Member: me},
		money.VerbCorrect:     money.CorrectRequest{Transfer: "t", Reason: "x"},
		messages.VerbTransfer: money.TransferRequest{Transfers: []money.Transfer{{Amount: messages.Credit}}},
		clearing.VerbRemit:    clearing.RemitRequest{Key: "r", Account: alice, Peer: "east", Payee: me, Amount: messages.Credit},
		clearing.VerbCharge:   clearing.ChargeRequest{Issuer: "east", ID: "x", Amount: messages.Credit, Payee: me},
		clearing.VerbReserve:  clearing.ReserveRequest{Limit: messages.Credit},
		clearing.VerbPart:     clearing.PartRequest{Peer: "east"},
		clearing.VerbConfirm:  clearing.ConfirmRequest{Totals: clearing.Totals{Site: "here", Peer: "east"}},
		clearing.VerbAdopt:    clearing.AdoptRequest{Totals: clearing.SignedTotals{Totals: clearing.Totals{Site: "east", Peer: "here"}}},
	} {
		tries = append(tries, func() (string, error) { return a.call(messages.Bank, verb, me, request) })
	}
	tries = append(tries, func() (string, error) {
		return a.call(messages.Bank, money.VerbPay, me, money.PayRequest{Key: "n", To: alice, Amount: -messages.Credit})
	}, func() (string, error) {
		return a.call(messages.Auctioneer, messages.VerbSubmit, me, job.SubmitRequest{Key: "s", Spec: job.JobSpec{Project: alice, Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Script: "true"}}}})
	})
	return all(tries...)
}

func (a *attacker) readsOthers() (string, error) {
	me, alice, digest := a.name, messages.Name("alice"), strings.Repeat("a", 64)
	try := func(actor, verb string, request any) func() (string, error) {
		return func() (string, error) { return a.call(actor, verb, me, request) }
	}
	return all(
		try(messages.Bank, messages.VerbAccount, money.AccountRequest{Account: alice}),
		try(messages.Bank, messages.VerbStatement, money.StatementRequest{Account: alice}),
		try(messages.Auctioneer, messages.VerbJobs, job.JobsRequest{Account: alice}),
		try(messages.Auctioneer, messages.VerbJob, job.JobRequest{Job: a.victim}),
		try(messages.Auctioneer, messages.VerbCancel, job.CancelRequest{Job: a.victim}),
		try(messages.Auctioneer, job.VerbHold, job.JobRequest{Job: a.victim}),
		try(messages.Auctioneer, job.VerbRelease, job.JobRequest{Job: a.victim}),
		try(messages.Auctioneer, job.VerbRequeue, job.RequeueRequest{Job: a.victim}),
		try(messages.Auctioneer, job.VerbChange, job.ChangeRequest{Key: "k", Job: a.victim, Name: "mine", Budget: 9 * messages.Credit}),
		try(messages.Auctioneer, messages.VerbTasks, job.TasksRequest{Job: a.victim}),
		try(messages.Auctioneer, messages.VerbWhy, job.JobRequest{Job: a.victim}),
		try(messages.Auctioneer, market.VerbWhatIf, market.WhatIfRequest{Job: a.victim, Bid: 9 * messages.Credit}),
		try(messages.Auctioneer, clearing.VerbOutput, clearing.OutputRequest{Node: "node1", Logs: agent.LogsRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: a.victim}, Number: 1}}}),
		try(messages.Depot, job.VerbOutputs, job.OutputsRequest{Job: a.victim, Account: alice}),
		try(messages.Depot, job.VerbGet, job.GetRequest{Digest: digest, Account: alice}),
		func() (string, error) {
			text, err := a.candor(me, "logs", a.victim.String())
			if strings.Contains(text, "secret\n") {
				return "read the output of alice's job", nil
			}
			return "", err
		},
	)
}

// tellsJobs asks about a job of alice and about a job that does not exist. If the answers differ, the attacker learns
// that alice's job exists.
func (a *attacker) tellsJobs() (string, error) {
	for verb, request := range map[string]func(messages.JobID) any{
		messages.VerbJob:    func(id messages.JobID) any { return job.JobRequest{Job: id} },
		messages.VerbCancel: func(id messages.JobID) any { return job.CancelRequest{Job: id} },
		messages.VerbTasks:  func(id messages.JobID) any { return job.TasksRequest{Job: id} },
		job.VerbHold:        func(id messages.JobID) any { return job.JobRequest{Job: id} },
		job.VerbRequeue:     func(id messages.JobID) any { return job.RequeueRequest{Job: id} },
		messages.VerbWhy:    func(id messages.JobID) any { return job.JobRequest{Job: id} },
		market.VerbWhatIf:   func(id messages.JobID) any { return market.WhatIfRequest{Job: id} },
	} {
		_, hers := a.call(messages.Auctioneer, verb, a.name, request(a.victim))
		_, none := a.call(messages.Auctioneer, verb, a.name, request(9999))
		if messages.KindOf(hers) != messages.KindOf(none) {
			return fmt.Sprintf("%s: %v, and of none %v", verb, hers, none), nil
		}
	}
	return "", fmt.Errorf("the answers are of one kind")
}

func (a *attacker) listens() (string, error) {
	var heard atomic.Pointer[string]
	for _, subject := range []string{"_INBOX.>", messages.InboxPrefix("alice") + ".>", messages.InboxPrefix("*") + ".>", "candor.>", ">", "*.*.*.*.alice",
		messages.VectorSubject(a.site.name, "main"), messages.DirectiveSubject(a.site.name, "*"), messages.ObservationSubject(a.site.name), "$JS.>", "$SYS.>", "$SRV.>"} {
		sub, err := a.nc.Subscribe(subject, func(m *nats.Msg) { heard.Store(&m.Subject) })
		if err != nil {
			return "", err
		}
		defer func() { _ = sub.Unsubscribe() }()
		many, err := a.nc.QueueSubscribe(subject, "queue", func(m *nats.Msg) { heard.Store(&m.Subject) })
		if err != nil {
			return "", err
		}
		defer func() { _ = many.Unsubscribe() }()
	}
	if err := a.nc.FlushTimeout(patience); err != nil {
		return "", err
	}
	ask[job.JobsReply](a.site, "alice", messages.Auctioneer, messages.VerbJobs, job.JobsRequest{})
	id := ask[job.SubmitReply](a.site, "alice", messages.Auctioneer, messages.VerbSubmit, job.SubmitRequest{Key: "overheard",
		Spec: job.JobSpec{Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Script: "true"}}}}).Job
	a.job("alice", id, func(j job.JobDetail) bool { return j.State == job.Completed })
	if err := a.nc.FlushTimeout(patience); err != nil {
		return "", err
	}
	if subject := heard.Load(); subject != nil {
		return "heard " + *subject, nil
	}
	return "", a.nc.LastError()
}

// forgeable returns subjects on which only parts of the site may publish.
func (a *attacker) forgeable() []string {
	site := a.site.name
	return []string{messages.InboxPrefix("alice") + ".x", messages.InboxPrefix("$bank") + ".x", "_INBOX.x", messages.VectorSubject(site, "main"),
		messages.DirectiveSubject(site, "node1"), messages.ObservationSubject(site), "$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.DELETE.OBSERVATIONS_WEST",
		"$JS.API.ACCOUNT.PURGE.x", "$JS.API.SERVER.REMOVE", "$JS.API.STREAM.RESTORE.x", "$JS.API.CONSUMER.CREATE.OBSERVATIONS_WEST", "$JS.ACK.x.y.1.1.1.1.1",
		"$SRV.PING", "$SRV.INFO", "$SRV.STATS.candor-bank", "$NRG.P.x", "$JSC.x", "$GR.x", "_R_.x", "_GR_.x.y.z", "$LDS.x", "$GNR.x", "$MQTT.msgs.x",
		"$O.FILES.M.x", "$KV.x.y", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "candor." + site + ".x"}
}

func (a *attacker) publishes() (string, error) {
	return a.publishedWithout(a.forgeable(), "")
}

// reflects sends requests whose reply subjects belong to others. A witness, which reads everything in the site's
// account, reports where the answers went.
func (a *attacker) reflects() (string, error) {
	witness := a.conn("$bank", a.issued(identity.Service, "$bank"))
	defer witness.Close()
	marked := make(chan string, 1000)
	forged := a.forgeable()
	if _, err := witness.Subscribe(">", func(m *nats.Msg) {
		if slices.Contains(forged, m.Subject) && strings.Contains(string(m.Data), "mark-of-"+a.name) {
			marked <- m.Subject
		}
	}); err != nil {
		return "", err
	}
	if err := witness.FlushTimeout(patience); err != nil {
		return "", err
	}
	// The request has an unknown field. The answer is an error that repeats the name of this field. Another connection
	// reads all messages of the site, and recognises the answers by this name.
	payload := fmt.Sprintf(`{"mark-of-%s":1}`, a.name)
	for _, target := range forged {
		for _, v := range []clearing.PeerVerb{{Actor: messages.Bank, Verb: messages.VerbAccount}, {Actor: messages.Auctioneer, Verb: messages.VerbJobs},
			{Actor: messages.Auctioneer, Verb: messages.VerbSubmit}, {Actor: messages.Depot, Verb: job.VerbOutputs}, {Actor: messages.Estimator, Verb: messages.VerbUtility}} {
			m := &nats.Msg{Subject: messages.Subject(a.site.name, v.Actor, v.Verb, a.name), Reply: target, Data: []byte(payload), Header: nats.Header{"Content-Type": {"application/json"}}}
			if err := a.nc.PublishMsg(m); err != nil {
				return "", err
			}
		}
	}
	for range 3 { // a service answers requests of a caller in order, so the answers to these come later
		for _, actor := range []string{messages.Bank, messages.Auctioneer} {
			_, _ = a.call(actor, messages.VerbStatus, a.name, messages.Empty{})
		}
	}
	select {
	case subject := <-marked:
		return "an answer went to " + subject, nil
	case <-time.After(time.Second):
		return "", fmt.Errorf("no answer went elsewhere")
	}
}

func (a *attacker) connects() (string, error) {
	dir := a.TempDir()
	other, err := identity.Create(filepath.Join(dir, "keys"), a.site.name)
	if err != nil {
		return "", err
	}
	foreign, err := other.Issue(identity.Operator, "operator")
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile(a.creds)
	if err != nil {
		return "", err
	}
	for len(a.refused) > 0 {
		<-a.refused
	}
	for _, option := range []nats.Option{nats.Name("anybody"), nats.UserInfo("operator", "operator"), nats.Token("x"), nats.UserCredentialBytes(foreign),
		nats.UserCredentialBytes([]byte(strings.Replace(string(own), "eyJ", "eyK", 1)))} {
		nc, err := nats.Connect(a.url, option)
		if err == nil {
			nc.Close()
			return "connected", nil
		}
		a.refused <- err
	}
	return "", <-a.refused
}

func (a *attacker) malforms() (effect string, refusal error) {
	inputs := [][]byte{nil, {0xc1}, {0xdf, 0xff, 0xff, 0xff, 0xff}, {0xdd, 0xff, 0xff, 0xff, 0xff}, []byte(strings.Repeat("\x91", 100_000)), []byte(strings.Repeat("[", 100_000)),
		[]byte(`{"job":18446744073709551616}`), []byte(`{"limit":-1,"after":18446744073709551615}`), []byte("null"), []byte(strings.Repeat(`{"spec":`, 5000)), make([]byte, 1<<20)}
	for _, v := range schema.Verbs() {
		if v.Actor == messages.NodeAgent {
			continue
		}
		subject := messages.Subject(a.site.name, v.Actor, v.Verb, a.name)
		if a.denied(subject) {
			continue
		}
		for _, input := range inputs {
			reply, err := a.nc.Request(subject, input, patience)
			if err == nats.ErrNoResponders {
				break
			}
			if err != nil {
				return fmt.Sprintf("%s does not answer %.20q: %v", subject, input, err), nil
			}
			if kind := reply.Header.Get("Nats-Service-Error-Code"); kind == messages.Internal.String() || kind == "" && reply.Header.Get("Nats-Service-Error") != "" {
				return fmt.Sprintf("%s answers %.20q by %q: %.200q", subject, input, kind, reply.Data), nil
			} else if kind != "" {
				refusal = fmt.Errorf("an error of kind %s", kind)
			}
		}
	}
	return "", refusal
}

// denied reports whether the server refuses every request on a subject.
func (a *attacker) denied(subject string) bool {
	ctx, cancel := context.WithTimeout(a.Context(), patience)
	defer cancel()
	_, err := a.bus.Request(ctx, subject, []byte{0xc1})
	return messages.KindOf(err) == messages.PermissionDenied && strings.Contains(err.Error(), "credentials")
}

func (a *attacker) oversends() (string, error) {
	nc := a.conn(a.name, a.creds, nats.NoReconnect())
	for _, size := range []int{2<<20 + 1, 16 << 20} {
		if _, err := nc.Request(messages.Subject(a.site.name, messages.Bank, messages.VerbAccount, a.name), make([]byte, size), 5*time.Second); err == nil {
			return fmt.Sprintf("%d bytes were answered", size), nil
		} else if a.gone() {
			return "the site ended", nil
		} else if size == 16<<20 {
			return "", err
		}
	}
	return "", nil
}

func (a *attacker) subscribes() (string, error) {
	refused := make(chan error, 1)
	nc := a.conn(a.name, a.creds, nats.NoReconnect(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		select {
		case refused <- err:
		default:
		}
	}))
	for i := range 2000 {
		if _, err := nc.Subscribe(fmt.Sprint(messages.InboxPrefix(a.name), ".", i), func(*nats.Msg) {}); err != nil {
			return "", err
		}
	}
	_ = nc.FlushTimeout(patience)
	select {
	case err := <-refused:
		return "", err
	case <-time.After(patience):
		return "2000 subscriptions of one connection", nil
	}
}

func (a *attacker) run(key string, spec job.JobSpec) (job.JobDetail, error) {
	reply, err := bus.Call[job.SubmitReply](a.within(), a.bus, messages.Subject(a.site.name, messages.Auctioneer, messages.VerbSubmit, a.name), job.SubmitRequest{Key: key, Spec: spec})
	if err != nil {
		return job.JobDetail{}, err
	}
	return a.job(a.name, reply.Job, func(j job.JobDetail) bool { return j.State.Final() }), nil
}

func (a *attacker) worksInState() (effect string, refusal error) {
	for i, dir := range []string{a.state, filepath.Join(a.state, "creds"), filepath.Join(a.state, "nodes", "node1", "jobs", "alice", "1")} {
		j, err := a.run(fmt.Sprint("dir", i), job.JobSpec{Dir: dir, Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Script: "ls; test -n \"$(ls)\"", Attempts: 1}}})
		if err == nil && j.State == job.Completed && a.containment() > 0 {
			return "a task ran in " + dir, nil
		}
		if refusal = err; err == nil {
			refusal = fmt.Errorf("the job ended %v", j.State)
		}
	}
	return "", refusal
}

// worksInProcesses runs jobs in directories that it names through a process, such as /proc/1/cwd. The script looks for
// files of the site's state, except below "nodes", where every task has its own files.
func (a *attacker) worksInProcesses() (effect string, refusal error) {
	paths := []string{"/proc/self/cwd", "/proc/self/root" + a.state, "/proc/1/cwd", "/proc/1/root" + a.state, fmt.Sprintf("/proc/%d/cwd", a.process.Pid), "/proc/thread-self/cwd"}
	for fd := 3; fd < 12; fd++ {
		paths = append(paths, fmt.Sprint("/proc/self/fd/", fd))
	}
	for _, dir := range paths {
		j, err := a.run("process"+dir, job.JobSpec{Dir: dir, Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Attempts: 1,
			Script: "ls | grep -qxE 'creds|keys|bank|users|executor.sock'"}}})
		if err == nil && j.State == job.Completed && a.containment() > 0 {
			effect += "a task ran in " + dir + "; "
		}
		if refusal = err; err == nil {
			refusal = fmt.Errorf("the job ended %v", j.State)
		}
	}
	return effect, refusal
}

// typesElsewhere puts control characters into all texts of jobs, and looks for them in the operator's commands and the
// site's log.
func (a *attacker) typesElsewhere() (effect string, refusal error) {
	for _, odd := range []string{"x\x1b[2J\x1b]0;title\x07\r\u009b1m\u202ey", "x\x00y", "x\ny"} {
		shown, err := a.submitsOdd(odd)
		effect, refusal = effect+shown, errors.Join(refusal, err)
	}
	for _, of := range [][]string{{"jobs", "--all"}, {"jobs"}, {"markets"}, {"nodes"}, {"statement", a.name}} {
		text, _ := a.candor("operator", of...)
		effect += shown("candor "+of[0], text)
	}
	effect += shown("the site's log", a.log.String())
	return effect, refusal
}

// submitsOdd submits jobs with an odd text, one for each field that can have a text.
func (a *attacker) submitsOdd(odd string) (effect string, refusal error) {
	plain := func(i int) job.JobSpec {
		return job.JobSpec{Name: fmt.Sprint("odd", i), Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Script: "true", Attempts: 1}}}
	}
	for i, spoil := range []func(*job.JobSpec){
		func(j *job.JobSpec) { j.Name = odd }, func(j *job.JobSpec) { j.Dir = "/tmp/" + odd }, func(j *job.JobSpec) { j.Market = odd },
		func(j *job.JobSpec) { j.Stages[0].Name = odd }, func(j *job.JobSpec) { j.Stages[0].Class = odd },
		func(j *job.JobSpec) { j.Stages[0].Script, j.Stages[0].Command = "", []string{odd, odd} },
		func(j *job.JobSpec) { j.Stages[0].Script = "#!/bin/" + odd }, func(j *job.JobSpec) { j.Stages[0].Outputs = []string{odd} },
		func(j *job.JobSpec) { j.Stages[0].Env = job.Env{{Name: odd, Value: odd}} }, func(j *job.JobSpec) { j.Stages[0].Env = job.Env{{Name: "A=B\nC", Value: "x\nPATH=/tmp"}} },
		func(j *job.JobSpec) {
			j.Stages[0].Env = job.Env{{Name: "A", Value: odd}, {Name: "LD_PRELOAD", Value: "/tmp/x.so"}}
		},
	} {
		spec := plain(i)
		spoil(&spec)
		j, err := a.run(fmt.Sprintf("odd%d %x", i, odd), spec)
		if err != nil {
			refusal = err
			effect += shown("the refusal", err.Error())
			continue
		}
		for _, of := range [][]string{{"job"}, {"why"}} {
			text, _ := a.candor("operator", append(of, j.Job.String())...)
			effect += shown("candor "+of[0], text)
		}
	}
	return effect, refusal
}

// shown looks for control characters that a text would send to a terminal. It returns a phrase that names the first
// one, as an effect of the attack, or "" if there is none.
func shown(what, text string) string {
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\u202e' {
			return fmt.Sprintf("%s has %q; ", what, r)
		}
	}
	return ""
}

// findsPorts compares the ports on which the site's processes listen with the configured ports.
func (a *attacker) findsPorts() (effect string, refusal error) {
	for _, port := range a.ports() {
		if !strings.HasSuffix(a.url, port) && port != a.leaf && !slices.Contains(a.addresses, port) {
			effect += port + " "
		}
	}
	return effect, fmt.Errorf("the site listens at %s alone", strings.Join(append(a.addresses, a.url), " "))
}

// fetchesLinks runs a task that replaces its outputs and its log by links to files that it cannot read. The node reads
// outputs and logs with its own rights.
func (a *attacker) fetchesLinks() (string, error) {
	const secret = "BEGIN USER NKEY SEED"
	script := fmt.Sprintf(`echo here; ln -s %[1]s/creds/operator.creds out; ln -s %[1]s/creds dir; ln %[1]s/creds/operator.creds hard
for log in ../0.out ../*.out; do rm -f $log; ln -s %[1]s/creds/operator.creds $log; done; mv ../lane* ../aside; ln -s %[1]s/creds ../lane1.dir; exit 0`, a.state)
	j, err := a.run("links", job.JobSpec{Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Script: script, Attempts: 1, Outputs: []string{"out", "dir/*", "hard"}}}})
	if err != nil {
		return "", err
	}
	into := a.TempDir()
	text, refusal := a.candor(a.name, "fetch", j.Job.String(), "--output-dir", into)
	effect, _ := finds(secret, into)
	logs, _ := a.candor(a.name, "logs", j.Job.String())
	if strings.Contains(text+logs, secret) {
		effect = "read it in the logs"
	}
	return effect, fmt.Errorf("the job ended %v; %s %s %v", j.State, line(text), line(logs), refusal)
}

// fails runs a job that computes for a second and exits with 1, while tasks of alice wait. The attack succeeds if the
// attacker pays nothing.
func (a *attacker) fails() (string, error) {
	competes := job.SubmitRequest{Key: "competes",
		Spec: job.JobSpec{Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Tasks: 30, Script: "sleep 1"}}}}
	if _, err := bus.Call[job.SubmitReply](a.within(), a.client("alice"), messages.Subject(a.site.name, messages.Auctioneer, messages.VerbSubmit, "alice"), competes); err != nil {
		return "", fmt.Errorf("alice cannot compete: %w", err) // in the control, alice's account was frozen
	}
	spec := job.JobSpec{Budget: 10 * messages.Credit, Stages: []job.Stage{{Name: "main", Script: "sleep 1; exit 1", Attempts: 1}}}
	j, err := a.run("fails", spec)
	if err != nil {
		return "", err
	}
	await.Until(a.T, "what the attacker owes is settled", func() bool {
		return ask[money.AccountReply](a.site, a.name, messages.Bank, messages.VerbAccount, money.AccountRequest{}).Holds == 0
	})
	if j = a.job(a.name, j.Job, func(job.JobDetail) bool { return true }); j.Charged == 0 {
		return "a second on a slot cost nothing, after exit code 1", nil
	}
	return "", fmt.Errorf("%v credits were charged", j.Charged)
}

// floods sends many requests at once, while alice sends a few.
func (a *attacker) floods() (string, error) {
	var flood sync.WaitGroup
	stop := make(chan struct{})
	subject := messages.Subject(a.site.name, messages.Auctioneer, messages.VerbJobs, a.name)
	for range 64 {
		flood.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = a.nc.Request(subject, nil, time.Second)
				}
			}
		})
	}
	slowest := time.Duration(0)
	alice := a.client("alice")
	defer alice.Close()
	for range 20 {
		asked := time.Now()
		if _, err := bus.Call[money.AccountReply](a.within(), alice, messages.Subject(a.site.name, messages.Bank, messages.VerbAccount, "alice"), money.AccountRequest{}); err != nil {
			slowest = math.MaxInt64
		}
		slowest = max(slowest, time.Since(asked))
	}
	close(stop)
	flood.Wait()
	if slowest > patience {
		return fmt.Sprintf("alice waited %v", slowest), nil
	}
	return "", fmt.Errorf("alice waited %v at most", slowest.Round(time.Millisecond))
}

// aftermath checks, after all attempts, that they have changed nothing: for example balances, jobs and nodes.
func (a *attacker) aftermath() (attempts []attempt) {
	add := func(what, effect, refusal string) {
		attempts = append(attempts, attempt{What: "after all that, " + what, Effect: effect, Refusal: refusal})
	}
	wrong := func(is bool, effect string) string {
		if is {
			return effect
		}
		return ""
	}
	alice := ask[money.AccountReply](a.site, "alice", messages.Bank, messages.VerbAccount, money.AccountRequest{})
	spent := ask[job.JobsReply](a.site, "alice", messages.Auctioneer, messages.VerbJobs, job.JobsRequest{})
	add("alice has her credits", wrong(alice.Balance < 980*messages.Credit || alice.Balance > 1000*messages.Credit || alice.Frozen != "", fmt.Sprintf("alice has %v", alice.Balance)), alice.Balance.String())
	add("alice has her jobs alone", wrong(len(spent.Jobs) > 4, fmt.Sprintf("%d jobs", len(spent.Jobs))), "")
	me := ask[money.AccountReply](a.site, a.name, messages.Bank, messages.VerbAccount, money.AccountRequest{})
	add("the attacker has no more", wrong(me.Balance > 1000*messages.Credit || me.Credit != 0, fmt.Sprintf("%v, credit %v", me.Balance, me.Credit)), me.Balance.String())
	books := ask[money.BooksReply](a.site, "operator", messages.Bank, messages.VerbBooks, money.BooksRequest{Full: true})
	add("the books balance", wrong(!books.Balanced, books.Message), "")
	nodes := ask[market.NodesReply](a.site, "alice", messages.Auctioneer, messages.VerbNodes, messages.Empty{})
	add("the nodes are the site's", wrong(len(nodes.Nodes) != a.nodes, fmt.Sprint(len(nodes.Nodes))), "")
	text, err := a.candor("operator", "bank", "verify")
	add("every record is proven", wrong(err != nil, text), line(text))
	return attempts
}
