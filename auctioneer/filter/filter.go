package filter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/program"
	"github.com/candor-grid/candor/messages/wire"
)

// The site's filter program must end within 5 s. If it fails, its error is kept for a second: a client that has not yet
// heard of the error may ask again, and then gets the same error. At most 8 programs run at once, and at most 64
// submissions wait for an answer. If 16 of these are of one account, its further submissions wait for one of the 16
// places, and the other places are left to other accounts.
const (
	mostAtOnce  = 8
	mostAsked   = 64
	mostAskedOf = 16 // for one account
	mostWaitOf  = 16 // submissions of one account that wait for one of its places
	kept        = time.Second
)

// Filter runs the site's filter program, which can change or refuse submissions.
type Filter struct {
	program string
	site    messages.Name
	asked   chan struct{} // has a place for each submission that is asked about
	running chan struct{} // has a place for each program that runs
	within  time.Duration

	mu   sync.Mutex
	open map[string]*answer        // by account and submission
	of   map[messages.Name]*places // of each account with submissions
}

// places are an account's places with the filter. The number `all` also counts submissions that wait for a place.
type places struct {
	all   int
	asked chan struct{}
}

// answer is what the program wrote about a submission, once done is closed.
type answer struct {
	done chan struct{}
	text []byte
	err  error
}

// New returns the filter of a site, or nil without a program.
func New(site messages.Name, program string) *Filter {
	if program == "" {
		return nil
	}
	return &Filter{program: program, site: site, asked: make(chan struct{}, mostAsked), running: make(chan struct{}, mostAtOnce), within: 5 * time.Second, open: map[string]*answer{}, of: map[messages.Name]*places{}}
}

// Ask asks the site's filter program about a job of an account. It returns the job that the site takes, and the
// changes, such as "market: main → gpu". A client that gets no answer repeats its submission with the same id. The
// program runs once for all repetitions.
func (f *Filter) Ask(ctx context.Context, account messages.Name, id string, spec *jobmsg.JobSpec) (*jobmsg.JobSpec, []string, error) {
	job, err := wire.Marshal(spec, wire.JSON)
	if err != nil {
		return nil, nil, err
	}
	text, err := f.shared(ctx, account, id, job)
	if err != nil {
		return nil, nil, err
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return spec, nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, nil, f.broken("wrote %q, which is no JSON object (%v)", messages.Short(string(text), 100), err)
	}
	if refuses, ok := fields["refuse"]; ok {
		var why string
		if err := json.Unmarshal(refuses, &why); err != nil || why == "" || len(fields) > 1 {
			return nil, nil, f.broken("wrote %q, where refuse must be a sentence and the only field", messages.Short(string(text), 100))
		}
		return nil, nil, messages.Errorf(messages.PermissionDenied, "the site's rules for jobs: %s", messages.Short(why, 1000))
	}
	changed, d := new(jobmsg.JobSpec), json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(changed); err != nil {
		return nil, nil, f.broken("wrote no job: %v", messages.Short(err.Error(), 200))
	}
	after, err := wire.Marshal(changed, wire.JSON)
	if err != nil {
		return nil, nil, f.broken("wrote no job: %v", err)
	}
	return changed, differences(job, after), nil
}

// shared returns what the program writes about a submission. If the submission is repeated before the program has
// answered, the repetition waits for the same answer.
func (f *Filter) shared(ctx context.Context, account messages.Name, id string, job []byte) ([]byte, error) {
	id = account + " " + id
	f.mu.Lock()
	a := f.open[id]
	if a == nil {
		p := f.of[account]
		if p == nil {
			p = &places{asked: make(chan struct{}, mostAskedOf)}
			f.of[account] = p
		}
		if p.all >= mostAskedOf+mostWaitOf {
			f.mu.Unlock()
			return nil, messages.Errorf(messages.Unavailable, "%d other jobs of account %s wait for the site's filter; submit again later", p.all, account)
		}
		p.all++
		a = &answer{done: make(chan struct{})}
		f.open[id] = a
		go func() {
			a.text, a.err = f.run(ctx, p, account, job)
			f.mu.Lock()
			if p.all--; p.all == 0 {
				delete(f.of, account)
			}
			f.mu.Unlock()
			close(a.done)
			if a.err != nil && !messages.KindOf(a.err).Retriable() {
				time.Sleep(kept)
			}
			f.mu.Lock()
			delete(f.open, id)
			f.mu.Unlock()
		}()
	}
	f.mu.Unlock()
	<-a.done
	return a.text, a.err
}

// run waits until the filter has room for a submission, and then runs the program.
func (f *Filter) run(ctx context.Context, p *places, account messages.Name, job []byte) ([]byte, error) {
	patience := f.within / 2 // the request's time must be enough for this wait and for the program
	waits, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case p.asked <- struct{}{}:
		defer func() { <-p.asked }()
	case <-waits.Done():
		return nil, messages.Errorf(messages.Unavailable, "the site's filter was busy with %d other jobs of account %s for %v; submit again later", mostAskedOf, account, patience)
	}
	select {
	case f.asked <- struct{}{}:
		defer func() { <-f.asked }()
	default:
		return nil, messages.Errorf(messages.Unavailable, "the site's filter is asked about %d other jobs; submit again later", mostAsked)
	}
	select {
	case f.running <- struct{}{}:
		defer func() { <-f.running }()
	case <-waits.Done():
		return nil, messages.Errorf(messages.Unavailable, "the site's filter was busy with other jobs for %v; submit again later", patience)
	}
	ctx, end := context.WithTimeout(ctx, f.within) // the program has the whole time, also after a wait
	defer end()
	text, err := program.Run(ctx, f.program, []string{"CANDOR_SITE=" + f.site, "CANDOR_ACCOUNT=" + account}, job)
	if err != nil {
		return nil, f.broken("%v", err)
	}
	return text, nil
}

// broken returns the error for a program that does not work. It says what an operator must do.
func (f *Filter) broken(format string, args ...any) error {
	host, _ := os.Hostname()
	return messages.Errorf(messages.Internal, "the site takes no jobs now: its filter %s on host %s %s; tell an operator, who mends the program or removes submit_filter from the configuration",
		f.program, cmp.Or(host, "(no name)"), fmt.Sprintf(format, args...))
}

// differences lists the fields that differ between two jobs in JSON.
func differences(before, after []byte) (out []string) {
	var x, y map[string]any
	if json.Unmarshal(before, &x) != nil || json.Unmarshal(after, &y) != nil {
		return nil
	}
	compare("", x, y, &out)
	const most = 8
	if more := len(out) - most; more > 0 {
		out = append(out[:most], fmt.Sprintf("%d more", more))
	}
	return out
}

func compare(path string, x, y any, out *[]string) {
	a, maps := x.(map[string]any)
	b, both := y.(map[string]any)
	if maps && both {
		var names []string
		for name := range a {
			names = append(names, name)
		}
		for name := range b {
			if _, ok := a[name]; !ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			compare(strings.TrimPrefix(path+"."+name, "."), a[name], b[name], out)
		}
		return
	}
	list, lists := x.([]any)
	other, both := y.([]any)
	if lists && both && len(list) == len(other) {
		for i := range list {
			compare(fmt.Sprintf("%s[%d]", path, i), list[i], other[i], out)
		}
		return
	}
	if was, is := word(x), word(y); was != is {
		*out = append(*out, path+": "+messages.Short(was, 60)+" → "+messages.Short(is, 60))
	}
}

// word returns a JSON value as text, without quotes.
func word(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		return v
	}
	text, _ := json.Marshal(v)
	return string(text)
}
