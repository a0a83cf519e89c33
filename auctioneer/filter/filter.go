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
// heard of the error may ask again, and then gets the same error. At most 8 programs run at once, and further
// submissions wait. The users of another site count as one account, because that site could give them any number of
// names.
const (
	mostAtOnce  = 8
	mostAsked   = 128 // submissions whose programs run or wait
	mostAskedOf = 32  // of these, for one account
	alwaysOf    = 4   // for one account, when half of mostAsked are taken
	kept        = time.Second
)

// Filter runs the site's filter program, which can change or refuse submissions.
type Filter struct {
	program string
	site    messages.Name
	within  time.Duration

	mu      sync.Mutex
	open    map[string]*answer // by account and submission
	asked   int
	running int
	of      map[messages.Name]*share // by account, for the accounts that have submissions
	waiting []*turn                  // the submission that has waited longest is first
}

// share counts the submissions of an account, and the submissions whose programs run.
type share struct{ asked, running int }

// turn is a submission that waits for the filter program to be started for it. The channel `starts` is closed when the
// program may start.
type turn struct {
	of     *share
	starts chan struct{}
}

// answer is what the program wrote about a submission. Its fields `text` and `err` are valid after the channel `done`
// is closed.
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
	return &Filter{program: program, site: site, within: 5 * time.Second, open: map[string]*answer{}, of: map[messages.Name]*share{}}
}

// Ask asks the site's filter program about a job of an account. It returns the job that the program accepts, and the
// changes that the program made, such as "market: main → gpu". A client that gets no answer repeats its submission with
// the same `id`. The program runs once for all repetitions.
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
		return nil, nil, f.broken("wrote %q, which is not a JSON object (%v)", messages.Short(string(text), 100), err)
	}
	if refuses, ok := fields["refuse"]; ok {
		var why string
		if err := json.Unmarshal(refuses, &why); err != nil || why == "" || len(fields) > 1 {
			return nil, nil, f.broken("wrote %q: with the field refuse there must be no other field, and its value must be a sentence", messages.Short(string(text), 100))
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
		of, err := f.enter(messages.Participant(account))
		if err != nil {
			f.mu.Unlock()
			return nil, err
		}
		a = &answer{done: make(chan struct{})}
		f.open[id] = a
		go func() {
			a.text, a.err = f.run(ctx, of, account, job)
			f.mu.Lock()
			f.asked--
			if of.asked--; of.asked == 0 {
				delete(f.of, messages.Participant(account))
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

// enter counts one more submission of an account.
func (f *Filter) enter(account messages.Name) (*share, error) {
	of := f.of[account]
	if of == nil {
		of = new(share)
	}
	if of.asked >= mostAskedOf || f.asked >= mostAsked/2 && of.asked >= alwaysOf || f.asked >= mostAsked {
		return nil, messages.Errorf(messages.Unavailable, "%d other jobs wait for the site's filter, %d of these jobs are from account %s; submit again later", f.asked, of.asked, account)
	}
	f.of[account] = of
	f.asked++
	of.asked++
	return of, nil
}

// run waits until the program may run, and then runs it. The wait takes up to 3 s, and the program up to 5 s. The
// client waits for 10 s, so the site has 2 s for all other steps of the submission.
func (f *Filter) run(ctx context.Context, of *share, account messages.Name, job []byte) ([]byte, error) {
	if !f.wait(ctx, of) {
		return nil, messages.Errorf(messages.Unavailable, "the site's filter was busy with other jobs for %v; submit again later", f.patience())
	}
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.running--
		of.running--
		f.start()
	}()
	ctx, end := context.WithTimeout(ctx, f.within) // the program has the whole time, also after a wait
	defer end()
	text, err := program.Run(ctx, f.program, []string{"CANDOR_SITE=" + f.site, "CANDOR_ACCOUNT=" + account}, job)
	if err != nil {
		return nil, f.broken("%v", err)
	}
	return text, nil
}

func (f *Filter) patience() time.Duration { return f.within * 3 / 5 }

// wait waits until the filter may start one more program, at most for the filter's patience. It reports whether the
// program may start now.
func (f *Filter) wait(ctx context.Context, of *share) bool {
	ctx, end := context.WithTimeout(ctx, f.patience())
	defer end()
	mine := &turn{of, make(chan struct{})}
	f.mu.Lock()
	f.waiting = append(f.waiting, mine)
	f.start()
	f.mu.Unlock()
	select {
	case <-mine.starts:
		return true
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.waiting, mine)
	if i < 0 { // start has just let the program start
		return true
	}
	f.waiting = slices.Delete(f.waiting, i, i+1)
	return false
}

// start lets waiting programs start until mostAtOnce programs run. The account with the fewest running programs is
// next.
func (f *Filter) start() {
	for f.running < mostAtOnce && len(f.waiting) > 0 {
		next := slices.MinFunc(f.waiting, func(a, b *turn) int { return cmp.Compare(a.of.running, b.of.running) })
		i := slices.Index(f.waiting, next)
		f.waiting = slices.Delete(f.waiting, i, i+1)
		f.running++
		next.of.running++
		close(next.starts)
	}
}

// broken returns the error for a program that does not work. It says what an operator must do.
func (f *Filter) broken(format string, args ...any) error {
	host, _ := os.Hostname()
	return messages.Errorf(messages.Internal, "the site takes no jobs now: its filter %s on host %s %s; tell an operator, who repairs the program or removes submit_filter from the configuration",
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
