package embedded

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestServerLogIsBounded writes many lines within a second. Some must be logged, and the next second must say how many
// were left out.
func TestServerLogIsBounded(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	l := &natsLog{log: zap.New(core).Sugar()}
	now := time.Unix(1_800_000_000, 0)
	admitted := 0
	for range 1000 {
		if ok, _ := l.admit(now); ok {
			admitted++
		}
	}
	if admitted != maxLines {
		t.Errorf("%d lines of one second, want %d", admitted, maxLines)
	}
	ok, dropped := l.admit(now.Add(time.Second))
	if !ok || dropped != 1000-maxLines {
		t.Errorf("in the next second: %v, %d left out; want true, %d", ok, dropped, 1000-maxLines)
	}
	l.Errorf("refused %s", "alice")
	l.Noticef("a detail")
	if got := logs.All(); len(got) != 1 || got[0].Message != "refused alice" || got[0].Level != zap.WarnLevel {
		t.Errorf("logged %+v, want one warning", got)
	}
}

func TestPlainPagesOnLoopbackAreNoWarning(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true}
	o.Websocket = server.WebsocketOpts{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoTLS: true}
	s, err := startServer(o, zap.New(core), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	if s.WebsocketURL() == "" || logs.Len() > 0 {
		t.Errorf("at %q, with the warnings %+v", s.WebsocketURL(), logs.All())
	}
}

// While a site starts, hosts that do not answer must cause no warning. Later they must cause a warning.
func TestAStartWarnsOfNothing(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	l := &natsLog{log: zap.New(core).Sugar(), quiet: time.Now().Add(time.Hour)}
	say := func() {
		l.Errorf("Error trying to connect to route (attempt %v): %v", 1, "refused")
		l.Warnf("Waiting for routing to be established...")
		l.Warnf("%s", "JetStream has not established contact with a meta leader")
	}
	say()
	if got := logs.FilterLevelExact(zap.WarnLevel).Len(); got != 0 || logs.Len() != 3 {
		t.Errorf("%d lines, of which %d warn", logs.Len(), got)
	}
	l.Warnf("something else")
	l.quiet = time.Now()
	say()
	if got := logs.FilterLevelExact(zap.WarnLevel).Len(); got != 4 {
		t.Errorf("%d lines warn, want 4", got)
	}
}
