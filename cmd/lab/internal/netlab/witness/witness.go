package witness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// Config describes the clients of a witness.
type Config struct {
	Site     messages.Name
	Connect  func(account messages.Name) (bus.Bus, error)
	Operator messages.Name
	Groups   [][]messages.Name // groups of groupSize accounts that pay each other
	Workers  []messages.Name   // accounts that submit jobs
	// Markets are the site's markets. The clients change and read the time limit of the last market in this list. If
	// Markets is empty, the clients send no requests about markets.
	Markets []market.Market
	// Dir is the directory of the files in which tasks record that they ran. All users may enter it.
	Dir   string
	Every time.Duration // time between two requests of a client
	// Patience is the longest time for a request with all its repetitions.
	Patience time.Duration
	Seed     uint64
	// Plant names a fault that the witness inserts once into its own record, to test its check: the check must find the
	// fault. "" means no fault.
	Plant string
}

// Each of these faults can be inserted into a witness, to test that it finds the fault.
const (
	PlantLost    = "lost"    // the record has a payment that was never sent
	PlantDoubled = "doubled" // a payment is sent again with another key, which the record does not have
	PlantStale   = "stale"   // a balance is read as it was before the reader's last payment
)

// Plants lists the faults that can be inserted.
var Plants = []string{PlantLost, PlantDoubled, PlantStale}

// Witness has the clients of a site. It also records what the site has told them, so that it can check the site.
type Witness struct {
	Config
	buses   map[messages.Name]bus.Bus
	round   int
	opening map[string]purses                  // balances of each group at the beginning of the round
	due     map[messages.Name]messages.Credits // balances of accounts according to the record
	read    map[messages.Name]uint64           // number of checked entries of each statement
	listed  map[messages.Name]messages.JobID   // last checked job of each worker
	markets markets                            // markets at the beginning of the round

	record
	payments []payment
	jobs     map[string]messages.JobID // acknowledged jobs, by key
	stop     chan struct{}
	clients  sync.WaitGroup
}

// payment is an acknowledged payment. If `from` is "", the credits were granted by the operator.
type payment struct {
	key      string
	from, to messages.Name
	amount   messages.Credits
}

// appliers is the number of clients that change the markets.
const appliers = 2

// New connects all clients to their sites, and reads the balances of their accounts.
func New(ctx context.Context, c Config) (*Witness, error) {
	w := &Witness{Config: c, buses: map[messages.Name]bus.Bus{}, opening: map[string]purses{}, due: map[messages.Name]messages.Credits{},
		read: map[messages.Name]uint64{}, listed: map[messages.Name]messages.JobID{}, record: record{began: time.Now(), counts: Counts{Verbs: map[string]Verb{}}}}
	for _, name := range w.everybody() {
		b, err := c.Connect(name)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.buses[name] = b
	}
	for _, name := range w.accounts() {
		account, err := w.account(ctx, name)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.due[name] = account.Balance
		if err := w.statement(ctx, name, func(*money.Entry) {}); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	if len(c.Markets) > 0 {
		var err error
		if w.markets, err = w.look(ctx); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// Close ends the connections.
func (w *Witness) Close() (err error) {
	for _, b := range w.buses {
		err = errors.Join(err, b.Close())
	}
	return err
}

// accounts returns the accounts with a recorded balance.
func (w *Witness) accounts() (all []messages.Name) {
	for _, group := range w.Groups {
		all = append(all, group...)
	}
	return append(all, w.Workers...)
}

func (w *Witness) everybody() []messages.Name { return append(w.accounts(), w.Operator) }

// Begin starts a round: the clients begin to send requests.
func (w *Witness) Begin(ctx context.Context) error {
	w.round++
	w.histories, w.jobs, w.payments, w.stop = map[string][]porcupine.Operation{}, map[string]messages.JobID{}, nil, make(chan struct{})
	w.last = time.Now()
	if err := w.prepareTraces(); err != nil {
		return err
	}
	if err := w.fund(ctx); err != nil {
		return err
	}
	client := 0
	begin := func(act func(context.Context, int, *rand.Rand)) {
		number := client
		client++
		w.clients.Go(func() { w.run(ctx, number, act) })
	}
	for g := range w.Groups {
		w.opening[groupName(g)] = w.purses(g)
		for i := range w.Groups[g] {
			var old stale
			begin(func(ctx context.Context, client int, rng *rand.Rand) { w.moveMoney(ctx, client, g, i, &old, rng) })
		}
	}
	for _, worker := range w.Workers {
		var mine []string
		begin(func(ctx context.Context, client int, rng *rand.Rand) { mine = w.work(ctx, client, worker, mine, rng) })
	}
	if len(w.Markets) > 0 {
		for range appliers {
			begin(w.applyMarkets)
		}
		begin(func(ctx context.Context, client int, _ *rand.Rand) {
			_, _ = w.readMarket(ctx, client) // the answer is in the record
		})
	}
	return nil
}

func groupName(g int) string { return fmt.Sprintf("the accounts of group %d", g+1) }

// The witness records each payment. purses returns the balances that the accounts of a group should have by these
// records.
func (w *Witness) purses(g int) (p purses) {
	for i, name := range w.Groups[g] {
		p[i] = w.due[name]
	}
	return p
}

func (w *Witness) run(ctx context.Context, client int, act func(context.Context, int, *rand.Rand)) {
	rng := rand.New(rand.NewPCG(w.Seed, uint64(w.round)<<32|uint64(client)))
	for {
		select {
		case <-w.stop:
			return
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(rng.Int64N(int64(2*w.Every) + 1))):
		}
		act(ctx, client, rng)
	}
}

// End stops the clients, and returns when every request is answered or given up.
func (w *Witness) End() {
	close(w.stop)
	w.clients.Wait()
}

// Counts returns the counts of requests so far, and a sentence for each promise that the site has broken.
func (w *Witness) Counts() (Counts, []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.counts
	c.Verbs = maps.Clone(c.Verbs)
	return c, append([]string(nil), w.broken...)
}

// AwaitServed returns when n more requests have been acknowledged.
func (w *Witness) AwaitServed(ctx context.Context, n int) error {
	first, _ := w.Counts()
	for {
		now, _ := w.Counts()
		if now.Acknowledged >= first.Acknowledged+n {
			return nil
		}
		select {
		case <-ctx.Done():
			return messages.Errorf(messages.Unavailable, "%d of %d requests were acknowledged", now.Acknowledged-first.Acknowledged, n)
		case <-time.After(betweenTries):
		}
	}
}
