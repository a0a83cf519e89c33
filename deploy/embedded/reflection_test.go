package embedded

import (
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// reflection sends requests and names, as the subject for the reply, a subject on which the attacker may not publish.
// An example is another account's inbox. The service that answers might then publish there.
func (f fort) reflection() {
	alice, mallory := f.as("alice"), f.raw("bob")
	file, _ := alice.send("kept", []byte("what alice keeps"))
	targets := []string{"objects.FILES_WEST_5_alice." + file.Digest, messages.ObservationSubject("west"), messages.VectorSubject("west", "main"),
		messages.DirectiveSubject("west", f.config.Nodes[0].Name), messages.InboxPrefix("alice") + ".x.1", "$JS.API.STREAM.PURGE.FILES_WEST_5_alice",
		messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice"), messages.Subject("west", messages.Bank, messages.VerbTransfer, "$auctioneer")}
	reached := f.watch(targets)
	asked := 0
	ask := func(subject, reply string) {
		if err := mallory.PublishRequest(subject, reply, []byte("no request")); err != nil {
			f.Fatal(err)
		}
		asked++
	}
	services := []string{messages.LogsSubject("west", f.config.Nodes[0].Name, "bob"), agentmsg.StreamSubject("west", f.config.Nodes[0].Name, "bob")}
	for actor, verb := range map[string]string{messages.Auctioneer: messages.VerbJobs, messages.Bank: messages.VerbAccount, messages.Depot: jobmsg.VerbGet,
		messages.Estimator: messages.VerbUtility, messages.Admission: messages.VerbToken} {
		services = append(services, messages.Subject("west", actor, verb, "bob"))
	}
	services = append(services, messages.Subject("west", messages.Auctioneer, messages.VerbCancel, "bob"), messages.Subject("west", messages.Bank, messages.VerbMember, "bob"))
	before := f.counted("candor_bus_misdirected_total", "")
	for _, reply := range targets {
		for _, subject := range services {
			ask(subject, reply)
		}
	}
	for range 700 {
		ask(messages.Subject("west", messages.Auctioneer, messages.VerbJobs, "bob"), messages.ObservationSubject("west"))
	}
	f.grows("candor_nats_refused_total", "what=publish", func() {
		for _, question := range []string{"$SRV.PING", "$SRV.INFO", "$SRV.STATS"} {
			if err := mallory.PublishRequest(question, targets[0], nil); err != nil {
				f.Fatal(err)
			}
		}
	})
	for _, subject := range services {
		if _, err := f.as("bob").bus.Request(within(f.T), subject, nil); messages.KindOf(err) == messages.Unavailable {
			f.Errorf("%s after the attack: %v", subject, err)
		}
	}
	for subject, n := range reached() {
		f.Errorf("%d answers reached %s", n, subject)
	}
	if kept, err := alice.receive(file); err != nil || kept != "what alice keeps" {
		f.Errorf("alice's file is %q, %v", kept, err)
	}
	await.Until(f.T, "each of the requests is counted", func() bool {
		return f.counted("candor_bus_misdirected_total", "") == before+float64(asked)
	})
}

func (f fort) watch(subjects []string) (reached func() map[string]int) {
	f.Helper()
	conn := insider(f.T, f.Site)
	var mu sync.Mutex
	count := map[string]int{}
	for _, subject := range subjects {
		if _, err := conn.Subscribe(subject, func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			if m.Header.Get("Nats-Service-Error-Code") != "" {
				count[m.Subject]++
			}
		}); err != nil {
			f.Fatal(err)
		}
	}
	if err := conn.FlushTimeout(patience); err != nil {
		f.Fatal(err)
	}
	return func() map[string]int {
		if err := conn.FlushTimeout(patience); err != nil {
			f.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}
