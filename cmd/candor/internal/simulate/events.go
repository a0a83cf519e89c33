package simulate

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/measure"
	"github.com/candor-grid/candor/messages"
)

// event is one row in the file of events: something that happened to a job.
type event struct {
	at    float64
	what  uint8
	job   int
	slots int
}

// These are the kinds of events. Events at the same time are in the order of these constants.
const (
	ended     uint8 = iota // the file has the final state of the job in place of this name
	suspended              // some of its tasks lost their slots and will continue later
	requeued               // its tasks will run again from the beginning
	submitted
	resumed // suspended tasks continue
	started
)

var (
	changes = map[core.What]uint8{core.Suspended: suspended, core.Resumed: resumed, core.Requeued: requeued}
	names   = map[uint8]string{suspended: "suspended", requeued: "requeued", submitted: "submitted", resumed: "resumed", started: "started"}
)

// readBids replaces bids that were drawn at random by the bids in the file that --bids names.
func (s *Source) readBids(p *core.Problem) error {
	text, err := document(s.BidsFile, maxBids)
	if err != nil {
		return messages.Errorf(messages.Invalid, "--bids: %v", err)
	}
	said, err := bids.Read(s.BidsFile, text, p.Work, p.Bids)
	if err == nil && said < len(p.Bids) {
		p.Work.Notes = append(p.Work.Notes, fmt.Sprintf("%s has bids for %d of %d jobs; the other bids were drawn", s.BidsFile, said, len(p.Bids)))
	}
	return err
}

func eventsOf(s *measure.Study) []event {
	out := make([]event, 0, 3*len(s.Work.Jobs)+len(s.Outcome.Changes))
	for i := range s.Work.Jobs {
		r, j := &s.Outcome.Jobs[i], &s.Work.Jobs[i]
		out = append(out, event{j.Submit, submitted, i, j.Width})
		if !math.IsNaN(r.Start) {
			out = append(out, event{r.Start, started, i, j.Width})
		}
		out = append(out, event{r.Finish, ended, i, j.Width})
	}
	for _, c := range s.Outcome.Changes {
		out = append(out, event{c.At, changes[c.What], c.Job, c.Slots})
	}
	slices.SortFunc(out, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order(s), b.order(s)), cmp.Compare(a.job, b.job))
	})
	return out
}

// order returns the place of an event among the events at the same time. The end of a job without run time comes after
// the start of this job.
func (e event) order(s *measure.Study) uint8 {
	if e.what == ended && s.Outcome.Jobs[e.job].Used == 0 {
		return started + 1
	}
	return e.what
}

func (e event) name(s *measure.Study) string {
	return cmp.Or(names[e.what], s.Outcome.Jobs[e.job].Fate.String())
}

func writeEvents(path string, s *measure.Study) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return messages.Errorf(messages.Invalid, "--events: %v", cli.NotMade(path, err))
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = messages.Errorf(messages.Internal, "--events: %v", err)
		}
	}()
	return writeCSV(file, s)
}

func writeCSV(w io.Writer, s *measure.Study) error {
	rows := csv.NewWriter(w)
	if err := rows.Write([]string{"time", "event", "job", "line", "user", "group", "slots", "value", "bid", "paid"}); err != nil {
		return err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, e := range eventsOf(s) {
		j, b := &s.Work.Jobs[e.job], &s.Bids[e.job]
		if err := rows.Write([]string{number(e.at), e.name(s), whole(j.Number), whole(int64(j.Line)), whole(s.Work.Users[j.User]),
			whole(s.Work.Groups[j.Group]), whole(int64(e.slots)), number(b.Value), number(b.Rate), number(paid(s, e))}); err != nil {
			return err
		}
	}
	rows.Flush()
	return rows.Error()
}

// paid returns the job's payment if the event is the end of a job, and otherwise 0.
func paid(s *measure.Study, e event) float64 {
	if e.what != ended {
		return 0
	}
	return s.Outcome.Jobs[e.job].Paid.Float()
}
