package mailbox

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type meters struct {
	commit prometheus.Histogram
	all    *prometheus.Registry
}

func newMeters(m *replicated) (*meters, error) {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "candor", Subsystem: m.config.Name, Name: "log_" + name, Help: help,
			ConstLabels: prometheus.Labels{"replica": m.config.ID}}
	}
	counter := func(name, help string, f func() uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts(opts(name, help)), func() float64 { return float64(f()) })
	}
	gauge := func(name, help string, f func() uint64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts(name, help)), func() float64 { return float64(f()) })
	}
	commit := opts("commit_seconds", "Time from the first command of an entry to its result.")
	mt := &meters{all: prometheus.NewRegistry(), commit: prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: commit.Namespace, Subsystem: commit.Subsystem, Name: commit.Name, Help: commit.Help,
		ConstLabels: commit.ConstLabels, Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	})}
	mt.all.MustRegister(
		mt.commit,
		counter("entries_total", "Log entries applied.", m.applier.entries.Load),
		counter("commands_total", "Commands applied.", m.applier.commands.Load),
		counter("differing_total", "Comparisons in which this replica's state differed from the state of a majority, or no majority had the same state.", m.applier.differing.Load),
		gauge("damaged", "Pieces of damaged state on this replica's disk: found by a check and not repaired, or put aside and not deleted.", m.scrubber.damages),
		counter("scrubs_total", "Complete checks of all files of this replica.", m.scrubber.passes.Load),
		gauge("doubtful", "1 while this replica may lack entries that it acknowledged, and therefore has no vote.", m.doubtful),
		counter("verify_rounds_total", "Rounds of leadership verification.", m.verified.Load),
		counter("refused_connections_total", "Connections to the group's port that were refused, because they did not prove to come from a replica.", m.stream.refusedTotal.Load),
		gauge("applied_index", "Index of the last log entry applied.", m.applier.index.Load),
		gauge("disk_free_bytes", "Space left on the log's disk.", m.guard.free.Load),
		gauge("leader", "1 while this replica leads.", m.leads),
	)
	if m.config.Metrics == nil {
		return mt, nil
	}
	if err := m.config.Metrics.Register(mt.all); err != nil {
		return nil, fmt.Errorf("mailbox: cannot register metrics; give each group its Name and each replica its ID: %w", err)
	}
	return mt, nil
}

func (m *replicated) doubtful() uint64 {
	if m.standing.doubts() != nil {
		return 1
	}
	return 0
}
