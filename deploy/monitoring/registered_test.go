package monitoring

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"github.com/candor-grid/candor/auctioneer"
	"github.com/candor-grid/candor/bank"
	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/clearing/courier"
	"github.com/candor-grid/candor/deploy/depot"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/admission"
	"github.com/candor-grid/candor/estimator"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/nodeagent"
)

// recorder is a registry that remembers the description of everything that is
// registered: a vector that counted nothing yet is not gathered, but is there.
type recorder struct {
	*prometheus.Registry
	mu     sync.Mutex
	labels map[string][]string // by name of the metric
}

// A description gives its parts away as a string alone.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: .*, constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}\}$`)

func (r *recorder) Register(c prometheus.Collector) error {
	described := make(chan *prometheus.Desc)
	go func() {
		c.Describe(described)
		close(described)
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	for d := range described {
		m := description.FindStringSubmatch(strings.ReplaceAll(d.String(), "\n", " "))
		if m == nil {
			return errors.New("cannot read the description " + d.String())
		}
		labels := []string{}
		for _, l := range strings.Split(m[2]+","+m[3], ",") {
			name, _, _ := strings.Cut(l, "=")
			labels = append(labels, name)
		}
		r.labels[m[1]] = labels
		switch c.(type) {
		case prometheus.Histogram, *prometheus.HistogramVec:
			r.addBuckets(m[1])
		}
	}
	if group, ok := c.(prometheus.Gatherer); ok { // a registry is registered as one
		families, err := group.Gather()
		if err != nil {
			return err
		}
		for _, f := range families {
			if f.GetType() == dto.MetricType_HISTOGRAM {
				r.addBuckets(f.GetName())
			}
		}
	}
	return r.Registry.Register(c)
}

// addBuckets adds the series of a histogram.
func (r *recorder) addBuckets(name string) {
	labels := r.labels[name]
	r.labels[name+"_bucket"] = append(slices.Clone(labels), "le")
	r.labels[name+"_sum"], r.labels[name+"_count"] = labels, labels
}

func (r *recorder) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// registered starts every part of a site that counts, each on what it can do
// without another, and returns the labels of each metric.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	r := &recorder{Registry: prometheus.NewRegistry(), labels: map[string][]string{}}
	network := bus.NewMemory()
	open := func(m mailbox.Machine) (mailbox.Mailbox, error) { return mailbox.NewMemory(m), nil }
	started := func(part io.Closer, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := part.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	services := []messages.Name{messages.ServiceIdentity(messages.Auctioneer)}
	started(bank.Start(t.Context(), bank.Config{Site: "west", Replica: "1", Bus: network.Connect("$bank"), Open: open,
		Operators: []messages.Name{"operator"}, Services: services, Metrics: r}))
	started(auctioneer.Start(t.Context(), auctioneer.Config{Site: "west", Replica: "1", Bus: network.Connect("$auctioneer"), Open: open,
		Markets: []messages.Market{{Name: "main", Mechanism: messages.Proportional, Classes: []messages.Name{"map"}}}, Metrics: r}))
	started(estimator.Start(t.Context(), estimator.Config{Site: "west", Bus: network.Connect("$estimator"), Metrics: r}))
	started(nodeagent.Start(t.Context(), nodeagent.Config{Site: "west", Node: "node1", Bus: network.Connect("node1"), Dir: t.TempDir(),
		Slots: []messages.ClassSlots{{Class: "map", Slots: 1}}, Metrics: r}))
	started(bus.Connect(bus.Config{URL: "nats://127.0.0.1:1", Name: "node1", Retry: true, Metrics: r}))
	started(startCourier(t, network, r))
	started(depot.Start(depot.Config{Site: "west", Bus: network.Connect("$depot"), Operator: "operator", Metrics: r}))
	keys, err := identity.Create(t.TempDir()+"/keys", "west")
	if err != nil {
		t.Fatal(err)
	}
	started(admission.Start(admission.Config{Site: "west", Bus: network.Connect("$admission"), Issuer: keys,
		Operators: []messages.Name{"operator"}, Metrics: r}))
	for _, group := range []string{messages.Auctioneer, messages.Bank} {
		started(mailbox.OpenRaft(mailbox.Config{ID: "1", Name: group, Dir: t.TempDir(), Local: mailbox.NewLocal(),
			Bootstrap: []string{"1"}, Metrics: r}, empty{}))
	}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.labels["up"] = []string{"job"} // Prometheus's own
	gathered(t, r.labels)
	return r.labels
}

// gathered adds what a site in a process counts that no part of it registers alone:
// what its NATS server refuses.
func gathered(t *testing.T, labels map[string][]string) {
	t.Helper()
	c := embedded.Default()
	c.State, c.Listen, c.Replicas = t.TempDir(), "127.0.0.1:0", 1
	c.Nodes = c.Nodes[:1]
	site, err := embedded.Start(t.Context(), c, embedded.Options{Metrics: true})
	if err != nil {
		t.Fatal(err)
	}
	families, err := site.Gatherer().Gather()
	if err := errors.Join(err, site.Close()); err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if name := f.GetName(); labels[name] == nil {
			labels[name] = []string{}
			for _, l := range f.GetMetric()[0].GetLabel() {
				labels[name] = append(labels[name], l.GetName())
			}
		}
	}
}

func startCourier(t *testing.T, network *bus.Network, r prometheus.Registerer) (*courier.Courier, error) {
	keys, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	nobody := func(messages.Name) bool { return false }
	return courier.New(courier.Config{Site: "west", Bus: network.Connect("$west"), Host: nothing{}, Signer: keys,
		Operator: nobody, Service: nobody, Metrics: r})
}

// nothing is a bank that does nothing: its courier only registers its metrics.
type nothing struct{}

func (nothing) Propose(context.Context, clearing.Command) (clearing.Result, error) {
	return clearing.Result{}, messages.Errorf(messages.Unavailable, "there is no bank")
}
func (nothing) Read(func(*clearing.State))   {}
func (nothing) Verify(context.Context) error { return nil }

// empty is a machine without a state.
type empty struct{}

func (empty) Apply(_ uint64, commands [][]byte) []any    { return make([]any, len(commands)) }
func (empty) Capture() mailbox.Image                     { return empty{} }
func (empty) Restore(io.Reader) error                    { return nil }
func (empty) WriteTo(io.Writer) (written int64, e error) { return 0, nil }
