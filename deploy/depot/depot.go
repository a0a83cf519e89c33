package depot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// Config configures a [Depot]. Site, Bus and Operator are needed.
type Config struct {
	Site messages.Name
	// Bus is a service's connection, which stores the buckets.
	Bus bus.Bus
	// Operator is the name with which the depot asks the auctioneer about jobs.
	Operator messages.Name
	// Operators may read the files of all accounts. Each access is logged.
	Operators []messages.Name
	// Retention is how long files and lists of outputs are kept. The default is 14 days.
	Retention time.Duration
	// Quota is the maximum size of an account's bucket in bytes. The default is 4 GiB.
	Quota int64
	Log   *zap.Logger // nil means no log
	// Metrics registers the metrics. If it is nil, they are not registered.
	Metrics prometheus.Registerer
}

// These are the defaults of [Config].
const (
	DefaultRetention = 14 * 24 * time.Hour
	DefaultQuota     = 4 << 30
)

// Validate checks the configuration and sets the defaults.
func (c *Config) Validate() error {
	switch {
	case !messages.ValidName(c.Site):
		return messages.Errorf(messages.Invalid, "depot: Site %q: must be a name of lower-case letters, digits, '-' and '_'", c.Site)
	case c.Bus == nil || c.Operator == "":
		return messages.Errorf(messages.Invalid, "depot: Bus and Operator must be set")
	case c.Retention < 0 || c.Quota < 0:
		return messages.Errorf(messages.Invalid, "depot: Retention %v and Quota %d must not be negative", c.Retention, c.Quota)
	}
	if c.Retention == 0 {
		c.Retention = DefaultRetention
	}
	if c.Quota == 0 {
		c.Quota = DefaultQuota
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return nil
}

// Depot serves the files of jobs.
type Depot struct {
	c       Config
	service bus.Subscription
	metrics *metrics

	buckets known[messages.Name, bus.Objects]
	owners  known[holding, messages.Name]
	jobs    known[messages.JobID, job]
	asking  places // limits the requests to each peer
	asked   places // limits the requests of each peer

	readable known[messages.JobID, bool] // jobs whose outputs may be read, because no market withholds them any more
}

// Start begins to serve.
func Start(c Config) (*Depot, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	d := &Depot{c: c}
	at := func(verb string, handle bus.Handler) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: messages.Subject(c.Site, messages.Depot, verb, "*"), Handle: handle}
	}
	var err error
	if d.metrics, err = newMetrics(c.Metrics); err != nil {
		return nil, fmt.Errorf("depot: %w", err)
	}
	d.service, err = c.Bus.Serve(bus.Service{
		Name: "candor-depot", Version: "1.0.0", Description: "Files of jobs of site " + c.Site, Discoverable: true, Concurrency: concurrency,
		Endpoints: []bus.Endpoint{
			at(jobmsg.VerbPut, bus.Handle(jobmsg.VerbPut, d.put)),
			at(jobmsg.VerbGet, bus.Handle(jobmsg.VerbGet, d.get)),
			at(jobmsg.VerbOutputs, bus.Handle(jobmsg.VerbOutputs, d.outputs)),
			at(jobmsg.VerbTake, bus.Handle(jobmsg.VerbTake, d.take)),
			at(jobmsg.VerbGive, bus.Handle(jobmsg.VerbGive, d.give)),
			at(jobmsg.VerbDeliver, bus.Handle(jobmsg.VerbDeliver, d.deliver)),
			at(jobmsg.VerbPeerTake, forPeers(d, jobmsg.VerbPeerTake, d.peerTake)),
			at(jobmsg.VerbPeerOutputs, forPeers(d, jobmsg.VerbPeerOutputs, d.peerOutputs)),
			at(jobmsg.VerbPeerGet, forPeers(d, jobmsg.VerbPeerGet, d.peerGet)),
		},
	})
	if err != nil {
		d.metrics.close()
		return nil, fmt.Errorf("depot: %w", err)
	}
	return d, nil
}

// concurrency is the largest number of requests that are served at the same time. Each has a piece of a file in memory.
const concurrency = 64

// Close ends the service.
func (d *Depot) Close() error {
	defer d.metrics.close()
	return d.service.Stop()
}

// whose returns the account whose files a request is about: the caller's own, unless an operator names another account.
// Such an access is logged.
func (d *Depot) whose(caller, account messages.Name, what zap.Field) (messages.Name, error) {
	if account == "" || account == caller {
		return caller, nil
	}
	if !slices.Contains(d.c.Operators, caller) {
		return "", messages.Errorf(messages.PermissionDenied, "account: only operators may read files of another account, such as %s", account)
	}
	d.metrics.audited.Inc()
	d.c.Log.Warn("audit: an operator reads files of an account", zap.String("operator", caller), zap.String("account", account), what)
	return account, nil
}

func (d *Depot) bucket(ctx context.Context, account messages.Name) (bus.Objects, error) {
	name, home, visits := strings.Cut(account, "@")
	if visits {
		account = VisitorsOf(home)
	}
	return d.buckets.get(account, func() (bus.Objects, error) {
		if valid := !visits && messages.ValidName(name) || visits && messages.ValidName(home); !valid {
			return nil, messages.Errorf(messages.PermissionDenied, "account %q: has no files", account)
		}
		return d.c.Bus.Objects(ctx, bucketName(d.c.Site, account), bus.BucketConfig{MaxAge: d.c.Retention, MaxBytes: d.c.Quota})
	})
}

// VisitorsOf returns the account that stands for all visitors from a site, such as "@west". All these visitors share
// one limit. So a site cannot get more by inventing names of users.
func VisitorsOf(home messages.Name) messages.Name { return "@" + home }

// bucketName returns the name of an account's bucket, such as "FILES_WEST_5_alice". The number is the length of the
// account's name, or 0 for visitors. Names may contain "_"; with the number, no two accounts have the same bucket name.
func bucketName(site, account messages.Name) string {
	if home, visits := strings.CutPrefix(account, "@"); visits {
		return fmt.Sprintf("FILES_%s_0_%s", strings.ToUpper(site), home)
	}
	return fmt.Sprintf("FILES_%s_%d_%s", strings.ToUpper(site), len(account), account)
}

// known caches answers that never change.
type known[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]V
}

// maxKnown is the largest number of cached answers. When the cache is full, all answers are removed from it.
const maxKnown = 4096

func (k *known[K, V]) get(key K, find func() (V, error)) (V, error) {
	k.mu.Lock()
	value, ok := k.of[key]
	k.mu.Unlock()
	if ok {
		return value, nil
	}
	value, err := find()
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.of == nil || len(k.of) >= maxKnown {
			k.of = map[K]V{}
		}
		k.of[key] = value
	}
	return value, err
}
