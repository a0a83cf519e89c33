package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

// order is a command to the process that loads a measured site. Exactly one field is set.
type order struct {
	Join    *joining    `json:"join,omitempty"`
	Submit  *submitting `json:"submit,omitempty"`
	Await   int         `json:"await,omitempty"`   // wait for this number of task starts since the last await or release
	Release *releasing  `json:"release,omitempty"` // end the running tasks
	Count   bool        `json:"count,omitempty"`
}

type joining struct {
	Site, Token, Seed string
	URL               string
	Nodes, Racks      int
}

type submitting struct {
	URL, Site, CredsFile string
	Account, Market      messages.Name
	Key                  string
	Jobs, Clients, Batch int // Batch is the number of jobs in one request
}

type releasing struct {
	Last  bool // tasks that start after this release run until the next release
	Await int
}

type outcome struct {
	Seconds float64 `json:"seconds"`
	Ended   int     `json:"ended"`   // number of tasks whose end the leader knows
	Longest float64 `json:"longest"` // longest exchange of a node during the order, in seconds
	Start   float64 `json:"start"`   // 99th percentile of the time from a claim to its task, in seconds
	CPU     float64 `json:"cpu"`     // processor time of this process, in seconds
	Error   string  `json:"error,omitempty"`
}

// load is the process with the simulated nodes and the clients of the measured site.
type load struct {
	process *exec.Cmd
	orders  *json.Encoder
	results *json.Decoder
	stdin   io.Closer
}

// loadCommand returns the command of a load's process. It is not for users.
func loadCommand() *cobra.Command {
	return &cobra.Command{Use: "load", Hidden: true, Args: cobra.NoArgs, Short: "nodes and clients for `lab bench scale`",
		RunE: func(c *cobra.Command, _ []string) error { return carryOut(c.Context(), os.Stdin, os.Stdout) }}
}

func startLoad(ctx context.Context) (*load, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := exec.CommandContext(ctx, self, "bench", "load")
	p.Stderr = os.Stderr
	in, err := p.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &load{p, json.NewEncoder(in), json.NewDecoder(out), in}, p.Start()
}

// This method sends an order to the process that makes the load, and returns the outcome of the order.
func (l *load) do(o order) (r outcome, err error) {
	if err = l.orders.Encode(o); err != nil {
		return r, err
	}
	if err = l.results.Decode(&r); err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	return r, err
}

func (l *load) end() {
	_ = l.stdin.Close()
	_ = l.process.Process.Kill()
	_ = l.process.Wait()
}

// carryOut reads orders from the reader `in`, carries out one after another, and writes the results to the writer
// `out`.
func carryOut(ctx context.Context, in io.Reader, out io.Writer) error {
	var h *hall
	orders, results := json.NewDecoder(in), json.NewEncoder(out)
	var full <-chan struct{}
	for {
		var o order
		if err := orders.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		began, cpu := time.Now(), processorTime()
		var err error
		switch {
		case o.Join != nil:
			if h, err = o.Join.open(ctx); err == nil {
				full = h.await(o.Join.Nodes)
			}
		case o.Submit != nil:
			err = o.Submit.run(ctx)
		case o.Await > 0:
			_, err = receive(ctx, full)
		case o.Release != nil:
			full = h.await(max(o.Release.Await, 1))
			if h.release(o.Release.Last); o.Release.Await > 0 {
				_, err = receive(ctx, full)
			}
		}
		r := outcome{Seconds: time.Since(began).Seconds(), CPU: (processorTime() - cpu).Seconds()}
		if h != nil {
			r.Ended, r.Longest, r.Start = h.count()
		}
		if err != nil {
			r.Error = err.Error()
		}
		if err := results.Encode(r); err != nil {
			return err
		}
	}
}

func (j *joining) open(ctx context.Context) (*hall, error) {
	return openHall(ctx, j.Site, j.Nodes, j.Racks, func() (bus.Bus, error) {
		return bus.Connect(bus.Config{URL: j.URL, Name: "$rack", JWT: j.Token, Seed: j.Seed})
	})
}

func (s *submitting) run(ctx context.Context) error {
	connection, err := bus.Connect(bus.Config{URL: s.URL, Name: s.Account, CredsFile: s.CredsFile})
	if err != nil {
		return err
	}
	defer connection.Close()
	subject := messages.Subject(s.Site, messages.Auctioneer, messages.VerbSubmit, s.Account)
	return inParallel(ctx, (s.Jobs+s.Batch-1)/s.Batch, s.Clients, func(number int) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		var r job.SubmitRequest
		for i := (number - 1) * s.Batch; i < min(number*s.Batch, s.Jobs); i++ {
			key := fmt.Sprint(s.Key, i)
			r.Jobs = append(r.Jobs, job.NewJob{Key: key, Spec: benchJob(s.Market, key, 1)})
		}
		if s.Batch == 1 {
			r = job.SubmitRequest{Key: r.Jobs[0].Key, Spec: r.Jobs[0].Spec}
		}
		reply, err := bus.Call[job.SubmitReply](ctx, connection, subject, r)
		for i := range reply.Jobs {
			if err == nil && reply.Jobs[i].Error != nil {
				err = reply.Jobs[i].Error
			}
		}
		return err
	})
}

// rackCredentials returns credentials that act for every node of a site, made with the key of the site's services.
func rackCredentials(keys string) (token, seed string, err error) {
	var pairs [2]nkeys.KeyPair
	for i, file := range []string{"account.nk", "role-service.nk"} {
		text, err := os.ReadFile(filepath.Join(keys, file))
		if err != nil {
			return "", "", err
		}
		if pairs[i], err = nkeys.ParseDecoratedNKey(text); err != nil {
			return "", "", err
		}
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return "", "", err
	}
	public, err := user.PublicKey()
	if err != nil {
		return "", "", err
	}
	claims := jwt.NewUserClaims(public)
	claims.Name = "*"
	claims.SetScoped(true)
	if claims.IssuerAccount, err = pairs[0].PublicKey(); err != nil {
		return "", "", err
	}
	if token, err = claims.Encode(pairs[1]); err != nil {
		return "", "", err
	}
	secret, err := user.Seed()
	return token, string(secret), err
}
