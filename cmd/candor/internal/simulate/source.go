package simulate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/grid"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/swf"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// Source has the flags that all studies of a log share: which log and which market to study.
type Source struct {
	Trace    string
	Market   string
	BidsFile string
	Nodes    int
	From, To string
	Load     float64
	Seed     uint64
	Parallel string
	SkipBad  bool
	// AllActors runs the market with all actors of a site, not only with its mechanism.
	AllActors bool

	flags *pflag.FlagSet
}

// Flags adds the flags to a set.
func (s *Source) Flags(f *pflag.FlagSet) {
	s.flags = f
	f.StringVar(&s.Trace, "trace", "", "the log: `file` in the Standard Workload Format, gzipped or not")
	f.StringVar(&s.Market, "market", "", "the market: `file` of YAML, or the name of a mechanism for its defaults")
	f.StringVar(&s.BidsFile, "bids", "", "read bids from this `file`, CSV, instead of drawing them")
	f.IntVar(&s.Nodes, "nodes", 0, "`number` of slots (default: the market's, or else the one in the log's header)")
	f.StringVar(&s.From, "from", "", "leave out jobs submitted before this `time`: 36h or 30d from the log's beginning, seconds, or a date")
	f.StringVar(&s.To, "to", "", "leave out jobs submitted at this `time` or later")
	f.Float64Var(&s.Load, "scale-load", 1, "let jobs arrive this many `times` as fast")
	f.Uint64Var(&s.Seed, "seed", 1, "`seed` of all that is drawn")
	f.StringVar(&s.Parallel, "parallel", "", "what to do with parallel jobs, a `word`: gang, split, skip, or wide (default: gang if the mechanism can, otherwise split)")
	f.BoolVar(&s.SkipBad, "skip-bad", false, "skip lines and records that make no sense, and count them")
}

// Study reads the log, the market and the bids.
func (s *Source) Study() (*core.Problem, error) {
	if s.Trace == "" || s.Market == "" {
		return nil, messages.Errorf(messages.Invalid, "--trace and --market: name the log and the market")
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	market, err := s.market()
	if err != nil {
		return nil, err
	}
	work, err := s.workload(market)
	if err != nil {
		return nil, err
	}
	if market.C > work.Nodes {
		return nil, messages.Errorf(messages.Invalid, "--nodes: the market gives %d slots (C), and the machine has only %d; use a smaller C, or more nodes", market.C, work.Nodes)
	}
	p := &core.Problem{Market: market, Work: work, Bids: market.Bids.Draw(work, s.Seed), Seed: s.Seed}
	if s.BidsFile != "" {
		if err := s.readBids(p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (s *Source) check() error {
	switch {
	case !(s.Load >= 1e-6 && s.Load <= 1e6):
		return messages.Errorf(messages.Invalid, "--scale-load: must be from 0.000001 to 1000000, is %v", s.Load)
	case s.flags.Changed("nodes") && (s.Nodes < 1 || s.Nodes > workload.MostNodes):
		return messages.Errorf(messages.Invalid, "--nodes: must be from 1 to %d, is %d", workload.MostNodes, s.Nodes)
	}
	switch workload.Parallel(s.Parallel) {
	case "", workload.Gang, workload.Split, workload.Leave, workload.Wide:
		return nil
	}
	return messages.Errorf(messages.Invalid, "--parallel: must be %s, %s, %s or %s, is %.64q", workload.Gang, workload.Split, workload.Leave, workload.Wide, s.Parallel)
}

// market reads the file that the flag --market names. If there is no such file, and the flag is the name of a
// mechanism, the market has this mechanism with default parameters.
func (s *Source) market() (*rules.Market, error) {
	text, err := document(s.Market, maxMarket)
	switch {
	case errors.Is(err, fs.ErrNotExist) && rules.Parameters(s.Market) != nil:
		return rules.Decode(s.Market, []byte("mechanism: "+s.Market))
	case errors.Is(err, fs.ErrNotExist):
		return nil, messages.Errorf(messages.Invalid, "--market: there is no file %q, and no mechanism of that name: there are %s", s.Market, spelling.List(rules.Mechanisms()))
	case err != nil:
		return nil, messages.Errorf(messages.Invalid, "--market: %v", err)
	}
	return rules.Decode(s.Market, text)
}

// maxMarket is the largest size in bytes of a file with a market or a plan. maxBids is the largest size of a file with
// bids.
const (
	maxMarket = 1 << 20
	maxBids   = 1 << 30
)

// document reads a file of at most the given size in bytes. It checks the size while it reads, because a device may
// have no end.
func document(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: is larger than the limit of %d MiB", path, most>>20)
	}
	return text, err
}

func (s *Source) workload(market *rules.Market) (*workload.Workload, error) {
	file, err := os.Open(s.Trace)
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "--trace: %v", err)
	}
	defer file.Close()
	read := swf.Read
	if s.SkipBad {
		read = swf.ReadSkipping
	}
	log, err := read(file)
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "%s: %v", s.Trace, err)
	}
	options, err := s.options(market, log)
	if err != nil {
		return nil, err
	}
	work, err := workload.New(log, options)
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "%s: %s", s.Trace, messages.Detail(err))
	}
	return work, nil
}

func (s *Source) options(market *rules.Market, log *swf.Log) (o workload.Options, err error) {
	o = workload.Options{Nodes: s.Nodes, Load: s.Load, Parallel: workload.Parallel(s.Parallel), SkipBad: s.SkipBad}
	if o.Nodes == 0 {
		o.Nodes = market.Slots()
	}
	if o.Parallel == "" {
		o.Parallel = workload.Split
		if s.AllActors && grid.Gangs(market.Mechanism) || !s.AllActors && rules.Wide(market.Mechanism) {
			o.Parallel = workload.Gang
		}
	}
	epoch, _ := log.Number("UnixStartTime")
	if o.From, err = when("--from", s.From, epoch); err != nil {
		return o, err
	}
	o.To, err = when("--to", s.To, epoch)
	if err == nil && s.To != "" && o.To <= o.From {
		err = messages.Errorf(messages.Invalid, "--to: %s is not after --from", s.To)
	}
	return o, err
}

// This function reads a point in time, as seconds since the beginning of the log. The argument `epoch` is the Unix time
// of the log's beginning, or 0 if that is unknown.
func when(flag, text string, epoch int64) (float64, error) {
	if text == "" {
		return 0, nil
	}
	refuse := func(why string) (float64, error) {
		return 0, messages.Errorf(messages.Invalid, "%s: %.64q %s", flag, text, why)
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n <= 1e6 {
			return n * 86400, nil
		}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02"} {
		t, err := time.Parse(layout, text)
		switch {
		case err != nil:
			continue
		case epoch <= 0:
			return refuse("is a date, and the log does not say when it began (UnixStartTime): give seconds, 36h or 30d from its beginning")
		case t.Unix() < epoch:
			return refuse("is before the log begins")
		}
		return float64(t.Unix() - epoch), nil
	}
	d, err := messages.ParseDuration(text)
	if err != nil || d < 0 {
		return refuse("is no time: write 36h or 30d from the log's beginning, seconds, or 2006-01-31")
	}
	return d.Seconds(), nil
}
