package bus

import (
	"context"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/wire"
)

// These benchmarks measure an exchange with 16 finished tasks and 16 claims. One benchmark sends it through Call and
// Handle. The other sends the same bytes through nats.go alone.

func benchExchange() agent.Exchange {
	x := agent.Exchange{Session: 1 << 60, Seq: 77}
	for i := range 16 {
		x.Finished = append(x.Finished, agent.Finished{
			Attempt: messages.Attempt{Task: messages.TaskRef{Job: messages.JobID(1000 + i), Stage: 1, Index: uint32(70000 + i)}, Number: 1},
			Started: 1_700_000_000_000_000, Ended: 1_700_000_001_000_000, CPU: 1e9, MaxRSS: 12 << 20})
		x.Claims = append(x.Claims, agent.Claim{Market: "main", Class: "map", Job: messages.JobID(1000 + i), Slots: 1})
	}
	return x
}

func benchReply() (r agent.ExchangeReply) {
	for i := range 16 {
		r.Grants = append(r.Grants, agent.Grant{Attempt: messages.Attempt{Task: messages.TaskRef{Job: 1000, Index: uint32(i)}, Number: 1}})
	}
	return r
}

func BenchmarkRoundTrip(b *testing.B) {
	s := startServer(b, nil)
	tcp := Config{URL: userURL(s, "alice"), Name: "alice"}
	inProcess := tcp
	inProcess.InProcess = s
	b.Run("raw/tcp", func(b *testing.B) { benchRaw(b, tcp) })
	b.Run("raw/in-process", func(b *testing.B) { benchRaw(b, inProcess) })
	b.Run("bus/tcp", func(b *testing.B) { benchBus(b, func() (Bus, error) { return Connect(tcp) }) })
	b.Run("bus/in-process", func(b *testing.B) { benchBus(b, func() (Bus, error) { return Connect(inProcess) }) })
	n := NewMemory()
	b.Run("bus/memory", func(b *testing.B) { benchBus(b, func() (Bus, error) { return n.Connect("alice"), nil }) })
}

// benchBoth measures one request at a time, for latency, and 64 at the same time, for throughput.
func benchBoth(b *testing.B, request func() error) {
	b.Run("latency", func(b *testing.B) {
		before := processorTime()
		for b.Loop() {
			if err := request(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
	})
	b.Run("64-at-once", func(b *testing.B) {
		b.SetParallelism(32) // 64 goroutines on 2 processors
		before := processorTime()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if err := request(); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
	})
}

// processorTime returns the processor time of this process, with its server, in nanoseconds. Unlike elapsed time, it is
// useful also on a busy machine.
func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func benchRaw(b *testing.B, c Config) {
	options := []nats.Option{}
	if c.InProcess != nil {
		options = append(options, nats.InProcessServer(c.InProcess))
	}
	var conns [2]*nats.Conn
	for i := range conns {
		nc, err := nats.Connect(c.URL, options...)
		if err != nil {
			b.Fatal(err)
		}
		defer nc.Close()
		conns[i] = nc
	}
	x, err := wire.Marshal(benchExchange(), wire.Msgpack)
	if err != nil {
		b.Fatal(err)
	}
	r, err := wire.Marshal(benchReply(), wire.Msgpack)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := conns[0].QueueSubscribe("exchange.*", "q", func(m *nats.Msg) { m.Respond(r) }); err != nil {
		b.Fatal(err)
	}
	conns[0].Flush()
	benchBoth(b, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), RequestTimeout)
		defer cancel()
		_, err := conns[1].RequestWithContext(ctx, "exchange.alice", x)
		return err
	})
}

func benchBus(b *testing.B, connect func() (Bus, error)) {
	var buses [2]Bus
	for i := range buses {
		c, err := connect()
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		buses[i] = c
	}
	reply := benchReply()
	service := one("exchange.*", Handle("exchange", func(context.Context, messages.Name, agent.Exchange) (agent.ExchangeReply, error) {
		return reply, nil
	}))
	service.Name = "bench"
	if _, err := buses[0].Serve(service); err != nil {
		b.Fatal(err)
	}
	x := benchExchange()
	benchBoth(b, func() error {
		_, err := Call[agent.ExchangeReply](context.Background(), buses[1], "exchange.alice", x)
		return err
	})
}
