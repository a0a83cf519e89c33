package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/bank"
	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
)

// ledgerResult has the number of transfers per second, and the processor time for one transfer in microseconds. The
// processor time includes the client and all three replicas. Ratio is our rate divided by PostgreSQL's rate. Both are
// measured with 64 clients that send one transfer at a time.
type ledgerResult struct {
	Batched    float64  `json:"batched_per_second"`
	Single     float64  `json:"single_64_clients_per_second"`
	BatchedCPU float64  `json:"batched_cpu_us"`
	SingleCPU  float64  `json:"single_cpu_us"`
	Postgres   *float64 `json:"postgres_per_second"`
	Ratio      *float64 `json:"ratio"`
	Transfers  uint64   `json:"transfers"`
}

const (
	singleClients = 64
	batchClients  = 8
	batchSize     = 1000
	accounts      = 1000
)

func ledgerFlags(c *cobra.Command) {
	c.Flags().Duration("for", 5*time.Second, "`time` to measure each way")
	c.Flags().Bool("postgres", true, "measure PostgreSQL too, where it is installed")
}

// ledger measures transfers to a bank with three durable replicas in this process. First it sends the transfers in
// batches. Then 64 clients send transfers, each client one transfer at a time. Finally PostgreSQL does similar work on
// the same disk.
func ledger(ctx context.Context, c *cobra.Command) (any, error) {
	span, err := c.Flags().GetDuration("for")
	if err != nil || span <= 0 {
		return nil, messages.Errorf(messages.Invalid, "--for: must be above 0")
	}
	b, err := openBank(ctx)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	var r ledgerResult
	if r.Batched, r.BatchedCPU, err = b.measure(ctx, "batched", batchClients, batchSize, span); err != nil {
		return nil, err
	}
	if r.Single, r.SingleCPU, err = b.measure(ctx, "single", singleClients, 1, span); err != nil {
		return nil, err
	}
	books, err := ask[money.BooksReply](ctx, b, messages.VerbBooks, money.BooksRequest{Full: true})
	if err != nil {
		return nil, err
	}
	if !books.Balanced {
		return nil, fmt.Errorf("the books do not balance: %s", books.Message)
	}
	r.Transfers = books.Transfers
	if err := b.stop(); err != nil {
		return nil, err
	}
	if wanted, err := c.Flags().GetBool("postgres"); err != nil || !wanted {
		return r, err
	}
	if r.Postgres, err = postgres(ctx, span); err != nil {
		return nil, fmt.Errorf("postgresql: %w", err)
	}
	if r.Postgres != nil {
		r.Ratio = new(r.Single / *r.Postgres)
	}
	return r, nil
}

type bankBed struct {
	dir      string
	network  *bus.Network
	keys     *identity.Authority
	replicas []*bank.Bank
	client   bus.Bus
	once     sync.Once
	stopped  error
}

// operator is the account that sends all requests of the benchmark. bankSite is the name of the bank's site.
const (
	operator = "operator"
	bankSite = "bench"
)

func openBank(ctx context.Context) (*bankBed, error) {
	dir, err := os.MkdirTemp("", "candor-bench-")
	if err != nil {
		return nil, err
	}
	b := &bankBed{dir: dir, network: bus.NewMemory()}
	if b.keys, err = identity.Create(filepath.Join(dir, "keys"), bankSite); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	b.client = b.network.ConnectAs(operator, &bus.Identity{Principal: func() (proof.Principal, error) {
		c, err := b.keys.Credentials(identity.Operator, operator)
		return proof.Principal{Token: c.Token, Seed: c.Seed}, err
	}})
	if err := b.start(ctx); err != nil {
		_ = b.stop()
		return nil, err
	}
	return b, nil
}

func (b *bankBed) start(ctx context.Context) error {
	local := mailbox.NewLocal()
	for _, id := range []string{"1", "2", "3"} {
		if err := b.startReplica(ctx, id, local); err != nil {
			return err
		}
	}
	for i := range accounts {
		name := account + fmt.Sprint(i)
		_, err := ask[money.AccountReply](ctx, b, messages.VerbGrant, money.GrantRequest{Key: name, Account: name, Amount: 1_000_000 * messages.Credit})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bankBed) startReplica(ctx context.Context, id string, local *mailbox.Local) error {
	dir := filepath.Join(b.dir, id)
	journal, err := history.Directory(filepath.Join(dir, "history"))
	if err != nil {
		return err
	}
	replica, err := bank.Start(ctx, bank.Config{
		Site: bankSite, Replica: id, Bus: b.network.Connect("bank"), Operators: []messages.Name{operator}, History: journal, Keys: b.keys,
		Open: func(m mailbox.Machine) (mailbox.Mailbox, error) {
			return mailbox.OpenRaft(mailbox.Config{
				ID: id, Name: "bank", Dir: dir, Local: local, Bootstrap: []string{"1", "2", "3"},
			}, m)
		},
	})
	if err == nil {
		b.replicas = append(b.replicas, replica)
	}
	return err
}

func (b *bankBed) stop() error {
	b.once.Do(func() {
		for _, r := range b.replicas {
			b.stopped = errors.Join(b.stopped, r.Close())
		}
		_ = os.RemoveAll(b.dir)
	})
	return b.stopped
}

func ask[Reply any](ctx context.Context, b *bankBed, verb string, request any) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return bus.Call[Reply](ctx, b.client, messages.Subject(bankSite, messages.Bank, verb, operator), request)
}

// measure returns how many transfers per second the bank carries out, and the processor time of one transfer in
// microseconds. Each client sends one request at a time.
func (b *bankBed) measure(ctx context.Context, name string, clients, batch int, span time.Duration) (rate, micros float64, err error) {
	var done atomic.Int64
	began, cpu := time.Now(), processorTime()
	err = repeat(ctx, clients, func(client, i int) (bool, error) {
		err := b.send(ctx, fmt.Sprintf("%s/%d/%d", name, client, i), client, i, batch)
		done.Add(int64(batch))
		return time.Since(began) < span, err
	})
	n := float64(max(done.Load(), 1))
	return n / time.Since(began).Seconds(), float64((processorTime() - cpu).Microseconds()) / n, err
}

func (b *bankBed) send(ctx context.Context, id string, client, i, batch int) error {
	r := money.TransferRequest{Transfers: make([]money.Transfer, batch)}
	for j := range r.Transfers {
		from := (client*7919 + i*31 + j) % accounts
		r.Transfers[j] = money.Transfer{
			ID: fmt.Sprintf("%s/%d", id, j), Kind: money.Posted, Amount: 1,
			Debit: account + fmt.Sprint(from), Credit: account + fmt.Sprint((from+1+j%(accounts-1))%accounts), Reason: "bench",
		}
	}
	reply, err := ask[money.TransferReply](ctx, b, messages.VerbTransfer, r)
	if err != nil {
		return err
	}
	for j := range reply.Results {
		if err := reply.Results[j].Error; err != nil {
			return err
		}
	}
	return nil
}
