package bus

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nkeys"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/proof"
)

func plain(t *testing.T, s *natsserver.Server, name messages.Name) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(userURL(s, name), nats.CustomInboxPrefix(messages.InboxPrefix(name)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func connected(t *testing.T, c Config) Bus {
	t.Helper()
	b, err := Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeBus(t, b) })
	return b
}

// A simple NATS client sends a request in JSON. It must find errors in two places: in the payload, and in the headers
// in which clients of the micro framework look for errors.
func TestPlainClientAsksInJSON(t *testing.T) {
	s := startServer(t, nil)
	serve(t, natsGrid(s, false)(t, "$auctioneer"), one("submit.*", submitHandler(func(caller messages.Name, r jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
		return jobmsg.SubmitReply{Job: 7, Payer: caller}, r.Validate()
	})))
	nc := plain(t, s, "alice")
	good := `{"key":"k","spec":{"budget":1,"stages":[{"name":"a","command":["true"]}]}}`
	m, err := nc.Request("submit.alice", []byte(good), patience)
	if err != nil || string(m.Data) != `{"job":7,"market":"","payer":"alice","held":0,"tasks":0}` || m.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %+v, %v", m, err)
	}
	m, err = nc.Request("submit.alice", nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	var e messages.Error
	if err := json.Unmarshal(m.Data, &e); err != nil || e.Kind != messages.Invalid || e.Op != "submit" {
		t.Errorf("got %s, %v", m.Data, err)
	}
	if m.Header.Get("Nats-Service-Error-Code") != "Invalid" || !strings.Contains(m.Header.Get("Nats-Service-Error"), "key: is empty") {
		t.Errorf("got %v", m.Header)
	}
	m, err = nc.RequestMsg(&nats.Msg{Subject: "submit.alice", Data: []byte(good), Header: nats.Header{proof.Header: {"e30"}}}, patience)
	if err != nil || m.Header.Get("Nats-Service-Error-Code") != "Invalid" || !strings.Contains(m.Header.Get("Nats-Service-Error"), proof.Header) {
		t.Errorf("a proof that cannot be read is answered with %+v, %v", m, err)
	}
	m, err = nc.RequestMsg(&nats.Msg{Subject: "submit.alice", Data: []byte("\x92\xa1k"), Header: nats.Header{"Content-Type": {"application/json"}}}, patience)
	if err != nil || m.Header.Get("Nats-Service-Error-Code") != "Invalid" || m.Data[0] != '{' {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestDiscovery(t *testing.T) {
	s := startServer(t, nil)
	service := one("jobs.*", echo)
	service.Name, service.Version, service.Description, service.Discoverable = "candor-auctioneer", "1.2.3", "queries", true
	b := natsGrid(s, false)(t, "$auctioneer")
	sub, err := b.Serve(service)
	if err != nil {
		t.Fatal(err)
	}
	nc := plain(t, s, "alice")
	for range 3 {
		if _, err := nc.Request("jobs.alice", nil, patience); err != nil {
			t.Fatal(err)
		}
	}
	var info struct {
		Name, Version string
		Endpoints     []struct{ Name, Subject string }
	}
	ask(t, nc, "$SRV.INFO.candor-auctioneer", &info)
	if info.Name != service.Name || info.Version != "1.2.3" {
		t.Errorf("got %s %s", info.Name, info.Version)
	}
	if len(info.Endpoints) != 1 || info.Endpoints[0].Subject != "jobs.*" {
		t.Errorf("got endpoints %+v", info.Endpoints)
	}
	var stats micro.Stats
	ask(t, nc, "$SRV.STATS.candor-auctioneer", &stats)
	if d := stats.Endpoints[0]; d.NumRequests != 3 || d.NumErrors != 0 || d.ProcessingTime <= 0 {
		t.Errorf("got %+v", d)
	}
	var ping micro.Ping
	ask(t, nc, "$SRV.PING", &ping)
	if ping.Name != service.Name || ping.ID != stats.ID {
		t.Errorf("got %+v", ping)
	}
	ask(t, nc, "$SRV.PING.candor-auctioneer."+ping.ID, &ping)
	if err := sub.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := b.Serve(Service{Name: "no good", Version: "1.0.0", Discoverable: true, Endpoints: service.Endpoints}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("got %v", err)
	}
}

func ask(t *testing.T, nc *nats.Conn, subject string, into any) {
	t.Helper()
	m, err := nc.Request(subject, nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(m.Data, into); err != nil {
		t.Fatal(err)
	}
}

func TestRepliesGoToTheAccountsOwnInbox(t *testing.T) {
	s := startServer(t, nil)
	replies := make(chan string, 1)
	nc := plain(t, s, "bob")
	if _, err := nc.Subscribe("v.*", func(m *nats.Msg) { replies <- m.Reply; m.Respond(nil) }); err != nil {
		t.Fatal(err)
	}
	nc.Flush()
	if _, err := natsGrid(s, false)(t, "$auctioneer").Request(within(t), "v.$auctioneer", nil); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, replies, 1)[0]; !strings.HasPrefix(got, "_INBOX_$auctioneer.") {
		t.Errorf("replies go to %s", got)
	}
	_, err := natsGrid(s, false)(t, "eve").Subscribe("_INBOX_alice.>", func(string, []byte) {})
	wantKind(t, err, messages.PermissionDenied)
}

// TestRepliesGoToNobodyElse sends a request whose reply subject is not in its caller's inbox. The service must not
// carry it out, and must send nothing to that subject.
func TestRepliesGoToNobodyElse(t *testing.T) {
	s := startServer(t, nil)
	b := natsGrid(s, false)(t, "$auctioneer")
	var carriedOut atomic.Int64
	service := one("jobs.*", func(context.Context, Request) ([]byte, error) {
		carriedOut.Add(1)
		return nil, nil
	})
	service.Name, service.Version, service.Discoverable = "candor-auctioneer", "1.0.0", true
	if _, err := b.Serve(service); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 100)
	if _, err := b.Subscribe(">", func(subject string, _ []byte) {
		if !strings.HasPrefix(subject, "jobs.") && !strings.HasPrefix(subject, "$SRV.") {
			heard <- subject
		}
	}); err != nil {
		t.Fatal(err)
	}
	alice, refused := plain(t, s, "alice"), counted(b.(*natsBus).metrics.misdirected)
	elsewhere := []string{"objects.FILES.x", "candor.west.auctioneer.vectors.main", "$JS.API.STREAM.DELETE.X", "_INBOX_bob.x", "_INBOX_alicea.x", "_INBOX_alice", "_INBOX.x", "_inbox_alice.x", "_INBOX_alice.x.y.z"}
	for _, reply := range elsewhere {
		if err := alice.PublishRequest("jobs.alice", reply, nil); err != nil {
			t.Fatal(err)
		}
	}
	about := []string{"objects.FILES.x", "_INBOX_$bank.x", "_INBOX_.x", "_INBOX_bob"}
	for _, reply := range about {
		for _, question := range []string{"PING", "INFO", "STATS.candor-auctioneer"} {
			if err := alice.PublishRequest("$SRV."+question, reply, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	await.Until(t, "the requests are refused", func() bool {
		return counted(b.(*natsBus).metrics.misdirected) == refused+uint64(len(elsewhere)+3*len(about))
	})
	if _, err := alice.Request("jobs.alice", nil, patience); err != nil {
		t.Fatal(err)
	}
	if n, first := carriedOut.Load(), <-heard; n != 1 || !strings.HasPrefix(first, "_INBOX_alice.") {
		t.Errorf("%d requests were carried out, and the first answer came at %s", n, first)
	}
}

// A service may send requests in the name of a user, and a user may not.
func TestServicesAskInAnothersName(t *testing.T) {
	s := startServer(t, nil)
	asking := natsGrid(s, false)(t, "$auctioneer")
	_, err := asking.Request(within(t), "v.alice@west", nil)
	wantKind(t, err, messages.Unavailable)
	serve(t, natsGrid(s, false)(t, "bob"), one("v.*", echo))
	if reply, err := asking.Request(within(t), "v.alice@west", nil); err != nil || !strings.HasPrefix(string(reply), "v.alice@west|alice@west|") {
		t.Errorf("got %s, %v", reply, err)
	}
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	_, err = asking.Request(ctx, "nobody.alice", nil)
	wantKind(t, err, messages.Unavailable)
}

// A user's connection may have few subscriptions, so all requests to nodes must use the same one.
func TestRequestsToNodesShareASubscription(t *testing.T) {
	s := startServer(t, nil)
	asked, release := make(chan bool), make(chan bool)
	serve(t, natsGrid(s, false)(t, "bob"), one(messages.LogsSubject("west", "bob", "*"), func(_ context.Context, r Request) ([]byte, error) {
		asked <- true
		<-release
		return r.Payload, nil
	}))
	const requests = 10
	alice := natsGrid(s, false)(t, "alice")
	before, answers := alice.(*natsBus).conn.NumSubscriptions(), make(chan string, requests)
	for i := range requests {
		go func() {
			reply, err := alice.Request(within(t), messages.LogsSubject("west", "bob", "alice"), []byte(strconv.Itoa(i)))
			if string(reply) != strconv.Itoa(i) || err != nil {
				t.Errorf("request %d: %q, %v", i, reply, err)
			}
			answers <- ""
		}()
	}
	receive(t, asked, requests)
	if n := alice.(*natsBus).conn.NumSubscriptions() - before; n > 1 {
		t.Errorf("%d requests take %d subscriptions", requests, n)
	}
	close(release)
	receive(t, answers, requests)
	_, err := alice.Request(within(t), messages.LogsSubject("west", "node2", "alice"), nil)
	wantKind(t, err, messages.Unavailable)
}

func TestTooLargeForTheServer(t *testing.T) {
	s := startServer(t, func(o *natsserver.Options) { o.MaxPayload = 1 << 16 })
	connect := natsGrid(s, false)
	serve(t, connect(t, "$auctioneer"), one("v.*", func(context.Context, Request) ([]byte, error) { return make([]byte, 1<<17), nil }))
	b := connect(t, "alice")
	_, err := b.Request(within(t), "v.alice", nil)
	wantKind(t, err, messages.TooLarge)
	_, err = b.Request(within(t), "v.alice", make([]byte, 1<<17))
	wantKind(t, err, messages.TooLarge)
	wantKind(t, b.Publish("v.alice", make([]byte, 1<<17)), messages.TooLarge)
}

// restartable starts a server. The returned function starts it again after it was shut down.
func restartable(t *testing.T) (s *natsserver.Server, restart func() *natsserver.Server) {
	port, keep := 0, t.TempDir()
	restart = func() *natsserver.Server {
		return startServer(t, func(o *natsserver.Options) {
			o.StoreDir = keep
			if port != 0 {
				o.Port = port
			}
		})
	}
	s = restart()
	port = s.Addr().(*net.TCPAddr).Port
	return s, restart
}

func TestConnectionOutlivesTheServer(t *testing.T) {
	s, restart := restartable(t)
	connect := natsGrid(s, false)
	b, other := connect(t, "$auctioneer"), connect(t, "alice")
	serve(t, b, one("v.*", Handle("v", func(context.Context, messages.Name, messages.Empty) (r messages.Empty, err error) { return })))
	got, seen := make(chan string, 100), make(chan uint64, 100)
	if _, err := b.Subscribe("a.b", func(_ string, p []byte) { got <- string(p) }); err != nil {
		t.Fatal(err)
	}
	stream, err := b.Stream(within(t), "S", []string{"s.x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Consume(within(t), 0, func(seq uint64, _ string, _ []byte) { seen <- seq }); err != nil {
		t.Fatal(err)
	}
	if err := stream.Append(within(t), "s.x", "1", nil); err != nil {
		t.Fatal(err)
	}
	receive(t, seen, 1)

	s.Shutdown()
	s.WaitForShutdown()
	_, err = other.Request(within(t), "v.alice", nil)
	wantKind(t, err, messages.Unavailable)
	await.Until(t, "the connection is lost", func() bool { return !other.(*natsBus).Connected() })
	closed := closedBus(t)
	for what, from := range map[string]Bus{"a lost connection": other, "a closed connection": closed} {
		_, err := from.Request(within(t), "v.alice", nil)
		wantKind(t, err, messages.Unavailable)
		if !Unserved(err) || Nobody(err) {
			t.Errorf("a request over %s was perhaps sent: %v", what, err)
		}
	}
	restart()
	if _, err := Call[messages.Empty](within(t), other, "v.alice", messages.Empty{}); err != nil {
		t.Fatal(err)
	}
	if err := other.Publish("a.b", []byte("back")); err != nil || receive(t, got, 1)[0] != "back" {
		t.Errorf("the subscription is lost: %v", err)
	}
	await.Until(t, "the stream takes a message again", func() bool { return stream.Append(within(t), "s.x", "2", nil) == nil })
	if seq := receive(t, seen, 1)[0]; seq != 2 {
		t.Errorf("the stream goes on at %d", seq)
	}
}

// closedBus returns a bus that was closed.
func closedBus(t *testing.T) Bus {
	b := natsGrid(startServer(t, nil), false)(t, "alice")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

// A client must ask the server for a stream only once, and again only after the stream has failed.
func TestAStreamIsOpenedOnce(t *testing.T) {
	server := startServer(t, func(o *natsserver.Options) { o.StoreDir = t.TempDir() })
	b := natsGrid(server, false)(t, "$auctioneer")
	open := func() Stream {
		t.Helper()
		s, err := b.Stream(within(t), "S", []string{"s.x"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := open()
	if open() != first {
		t.Error("the stream was opened again")
	}
	if err := b.(*natsBus).js.DeleteStream(within(t), "S"); err != nil {
		t.Fatal(err)
	}
	wantKind(t, first.Append(within(t), "s.x", "1", nil), messages.Unavailable)
	if again := open(); again == first || again.Append(within(t), "s.x", "1", nil) != nil {
		t.Error("the stream that failed was not opened anew")
	}
}

// An earlier release created the stream. This release must be able to open it and write to it.
func TestAStreamOfAnEarlierReleaseIsOpened(t *testing.T) {
	server := startServer(t, func(o *natsserver.Options) { o.StoreDir = t.TempDir() })
	b := natsGrid(server, false)(t, "$auctioneer")
	if _, err := b.(*natsBus).js.CreateStream(within(t), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.x"}, Duplicates: dedupeWindow}); err != nil {
		t.Fatal(err)
	}
	s, err := b.Stream(within(t), "S", []string{"s.x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(within(t), "s.x", "1", nil); err != nil {
		t.Error(err)
	}
}

func TestConnectFailures(t *testing.T) {
	s := startServer(t, nil)
	wrong := strings.Replace(userURL(s, "alice"), "pw", "no", 1)
	_, err := Connect(Config{URL: wrong, Name: "alice"})
	wantKind(t, err, messages.PermissionDenied)
	gone := userURL(s, "alice")
	s.Shutdown()
	s.WaitForShutdown()
	_, err = Connect(Config{URL: gone, Name: "alice"})
	wantKind(t, err, messages.Unavailable)
	var log strings.Builder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg"}), zapcore.AddSync(&log), zapcore.DebugLevel)
	b, err := Connect(Config{URL: gone, Name: "alice", Retry: true, Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Count(text, "cannot connect; will try again") != 1 || !strings.Contains(text, "no servers available") {
		t.Errorf("the log does not say why there is no connection yet, but %q", text)
	}
	_, err = b.Request(within(t), "v.alice", nil)
	wantKind(t, err, messages.Unavailable)
	wantKind(t, b.Publish("v.alice", nil), messages.Unavailable)
	closeBus(t, b)
}

func TestConfigValidate(t *testing.T) {
	good := Config{URL: "nats://127.0.0.1:4222", Name: "$auctioneer"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for say, change := range map[string]func(*Config){
		"name":                 func(c *Config) { c.Name = "A.b" },
		"URL":                  func(c *Config) { c.URL = "" },
		"not both":             func(c *Config) { c.CredsFile, c.JWT, c.Seed = "x", "y", "z" },
		"the JWT and its seed": func(c *Config) { c.JWT = "y" },
		"replicas":             func(c *Config) { c.StreamReplicas = 6 },
		"credentials":          func(c *Config) { c.CredsFile = filepath.Join(t.TempDir(), "none") },
	} {
		c := good
		change(&c)
		if _, err := Connect(c); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", say, err)
		}
	}
}

func TestMetricsCountWhatGoesWrong(t *testing.T) {
	s := startServer(t, nil)
	counters := map[string]Counter{}
	make := func(name, _ string) (Counter, error) {
		if counters[name] == nil {
			counters[name] = new(tally)
		}
		return counters[name], nil
	}
	b := connected(t, Config{URL: userURL(s, "eve"), Name: "eve", Metrics: make})
	other := connected(t, Config{URL: userURL(s, "alice"), Name: "alice", Metrics: make})
	_, err := b.Request(within(t), "secret.x", nil)
	wantKind(t, err, messages.PermissionDenied)
	m := b.(*natsBus).metrics
	if n := counted(m.denied); n != 1 {
		t.Errorf("%v denied", n)
	}
	if counters["candor_bus_denied_total"] != m.denied {
		t.Error("the counter of denied messages has another name")
	}
	if other.(*natsBus).metrics.denied != m.denied {
		t.Error("connections with the same metrics count apart")
	}
}

// TestRefusedAnswersEndNoRequests gives a client two error reports of its server. The first says that the server
// refused an answer of the client. This must end no request. The second says that the connection may not listen to its
// inbox. This must end all requests.
func TestRefusedAnswersEndNoRequests(t *testing.T) {
	var w watch
	ctx, end := w.begin(t.Context(), "v.alice")
	defer end()
	w.denied(errors.New(`permissions violation: Permissions Violation for Publish to "_INBOX_bob.a.b.c"`))
	if ctx.Err() != nil {
		t.Error("a refused answer ended a request")
	}
	w.denied(errors.New(`permissions violation: Permissions Violation for Subscription to "_INBOX_alice.a.*"`))
	if ctx.Err() == nil {
		t.Error("without an inbox a request goes on")
	}
}

func counted(c Counter) uint64 { return c.(*tally).Load() }

// When messages come faster than a subscriber handles them, the lost messages must be counted, and later messages must
// arrive.
func TestSlowSubscriber(t *testing.T) {
	s := startServer(t, nil)
	b := natsGrid(s, false)(t, "alice")
	entered, leave, last := make(chan bool), make(chan bool), make(chan bool, 1)
	first := true
	if _, err := b.Subscribe("a.b", func(_ string, p []byte) {
		if first {
			first = false
			entered <- true
			<-leave
		}
		if string(p) == "last" {
			select {
			case last <- true:
			default:
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	sender := natsGrid(s, false)(t, "bob")
	sender.Publish("a.b", nil)
	receive(t, entered, 1)
	for range maxPending + 1000 {
		if err := sender.Publish("a.b", nil); err != nil {
			t.Fatal(err)
		}
	}
	await.Until(t, "the slow subscriber is counted", func() bool { return counted(b.(*natsBus).metrics.slow) > 0 })
	leave <- true
	await.Until(t, "the subscriber hears the last message", func() bool {
		sender.Publish("a.b", []byte("last"))
		select {
		case <-last:
			return true
		default:
			return false
		}
	})
}

// trusting starts a server that accepts the users of one account.
func trusting(t *testing.T) (s *natsserver.Server, operator, account nkeys.KeyPair, resolver *natsserver.MemAccResolver) {
	t.Helper()
	operator, _ = nkeys.CreateOperator()
	account, _ = nkeys.CreateAccount()
	operatorKey, _ := operator.PublicKey()
	accountKey, _ := account.PublicKey()
	operatorClaims := jwt.NewOperatorClaims(operatorKey)
	if _, err := operatorClaims.Encode(operator); err != nil {
		t.Fatal(err)
	}
	accountJWT, err := jwt.NewAccountClaims(accountKey).Encode(operator)
	if err != nil {
		t.Fatal(err)
	}
	resolver = &natsserver.MemAccResolver{}
	if err := resolver.Store(accountKey, accountJWT); err != nil {
		t.Fatal(err)
	}
	s = startServer(t, func(o *natsserver.Options) {
		o.Users, o.JetStream = nil, false
		o.TrustedOperators, o.AccountResolver = []*jwt.OperatorClaims{operatorClaims}, resolver
	})
	return s, operator, account, resolver
}

func TestCredentials(t *testing.T) {
	s, operator, account, resolver := trusting(t)
	accountKey, _ := account.PublicKey()
	user, _ := nkeys.CreateUser()
	userKey, _ := user.PublicKey()
	seed, _ := user.Seed()
	claims := jwt.NewUserClaims(userKey)
	claims.Name = "alice"
	claims.Sub.Allow.Add(messages.InboxPrefix("alice") + ".>")
	claims.Pub.Allow.Add("v.alice")
	token, err := claims.Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	file, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "alice.creds")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	renewals := 0
	renew := func() (string, string, error) { renewals++; return token, string(seed), nil }
	for _, c := range []Config{{JWT: token, Seed: string(seed)}, {CredsFile: path}, {Renew: renew}} {
		c.URL, c.Name = s.ClientURL(), "alice"
		b := connected(t, c)
		_, err := b.Request(within(t), "v.alice", nil)
		wantKind(t, err, messages.Unavailable) // this request is permitted, but no service answers it
		_, err = b.Request(within(t), "v.bob", nil)
		wantKind(t, err, messages.PermissionDenied)
		_, err = b.Stream(within(t), "S", []string{"s.x"})
		wantKind(t, err, messages.PermissionDenied)
	}
	if renewals == 0 {
		t.Error("credentials were not renewed for a connection")
	}
	_, err = Connect(Config{URL: s.ClientURL(), Name: "alice"})
	wantKind(t, err, messages.PermissionDenied)
	_, err = Connect(Config{URL: s.ClientURL(), Name: "alice", Renew: func() (string, string, error) { return "", "", os.ErrClosed }})
	wantKind(t, err, messages.Unavailable)
	_, err = Connect(Config{URL: s.ClientURL(), Name: "alice", Renew: renew, CredsFile: path})
	wantKind(t, err, messages.Invalid)

	// Credentials are revoked while a person and a service use them. The person must get an error that says what to do.
	// The service must get an error that says to ask again.
	person := connected(t, Config{URL: s.ClientURL(), Name: "alice", CredsFile: path, Personal: true})
	service := connected(t, Config{URL: s.ClientURL(), Name: "alice", CredsFile: path})
	revoked := jwt.NewAccountClaims(accountKey)
	revoked.Revoke(userKey)
	revokedJWT, err := revoked.Encode(operator)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolver.Store(accountKey, revokedJWT); err != nil {
		t.Fatal(err)
	}
	own, err := s.LookupAccount(accountKey)
	if err != nil {
		t.Fatal(err)
	}
	s.UpdateAccountClaims(own, revoked)
	await.Until(t, "a person reads that the credentials are refused", func() bool {
		_, err := person.Request(within(t), "v.alice", nil)
		return messages.KindOf(err) == messages.PermissionDenied && strings.Contains(err.Error(), "candor user add alice")
	})
	_, err = service.Request(within(t), "v.alice", nil)
	wantKind(t, err, messages.Unavailable)
}

// TestRequestsOutliveCredentials sends a request to a service that answers only after the caller's credentials have
// expired. The caller can then get new credentials, so the request must succeed.
func TestRequestsOutliveCredentials(t *testing.T) {
	s, _, account, _ := trusting(t)
	credentials := func(name messages.Name, expires time.Time) (string, string) {
		user, _ := nkeys.CreateUser()
		key, _ := user.PublicKey()
		seed, _ := user.Seed()
		claims := jwt.NewUserClaims(key)
		if claims.Name = name; !expires.IsZero() {
			claims.Expires = expires.Unix()
		}
		token, err := claims.Encode(account)
		if err != nil {
			t.Fatal(err)
		}
		return token, string(seed)
	}
	token, seed := credentials("$auctioneer", time.Time{})
	service := connected(t, Config{URL: s.ClientURL(), Name: "$auctioneer", JWT: token, Seed: seed})
	renewed := make(chan bool)
	serve(t, service, one("submit.*", submitHandler(func(messages.Name, jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
		select {
		case <-renewed:
		case <-t.Context().Done():
		}
		return jobmsg.SubmitReply{Job: 7}, nil
	})))
	expires := time.Now().Truncate(time.Second).Add(3 * time.Second) // times in a JWT are whole seconds
	once := sync.OnceFunc(func() { close(renewed) })
	person := connected(t, Config{URL: s.ClientURL(), Name: "alice", Personal: true, Renew: func() (string, string, error) {
		until := expires
		if time.Now().After(expires) {
			once()
			until = time.Time{}
		}
		token, seed := credentials("alice", until)
		return token, seed, nil
	}})
	if r, err := Call[jobmsg.SubmitReply](within(t), person, "submit.alice", jobmsg.SubmitRequest{}); err != nil || r.Job != 7 {
		t.Errorf("a request during which the credentials expired: %v, %v", r.Job, err)
	}
}
