package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

var formats = []string{"hledger", "csv"}

// Writer writes the lines of a journal. The caller must write all lines in order, starting with the first.
type Writer interface {
	Line(l *ledger.Line) error
	// Close writes what must stand at the end of a file in this format. It does not close the underlying writer.
	Close() error
}

// New returns the writer of a format.
func New(format string, w io.Writer, site messages.Name) (Writer, error) {
	out := &output{w: bufio.NewWriterSize(w, 1<<16), seen: map[messages.Name]bool{}}
	switch format {
	case "hledger":
		return newHledger(out, site), nil
	case "csv":
		return newCSV(out), nil
	}
	return nil, messages.Errorf(messages.Invalid, "format %q: is not one of %s", format, strings.Join(formats, ", "))
}

// output is a buffered writer of exported books. It also remembers the accounts in the lines so far.
type output struct {
	w    *bufio.Writer
	seen map[messages.Name]bool
}

// printf writes text. The writer w keeps the first error, and flush returns it.
func (o *output) printf(format string, args ...any) { fmt.Fprintf(o.w, format, args...) } //nolint:errcheck // flush returns the error

func (o *output) flush() error { return o.w.Flush() }

// An account has an available part and a held part. A posting is the change of one part in a transaction. Its field
// `after` is the amount of this part afterwards.
type posting struct {
	account messages.Name
	held    bool
	change  messages.Credits
	after   messages.Credits
}

// postings returns the legs of a line that moves credits. They sum to zero.
func postings(l *ledger.Line) []posting {
	available := func(s money.Standing) messages.Credits { return s.Balance - s.Reserved }
	legs := []posting{
		{account: l.Debit, change: -l.Amount - l.Held, after: available(l.DebitAfter)},
		{account: l.Debit, held: true, change: l.Held, after: l.DebitAfter.Reserved},
	}
	if l.Credit != "" {
		legs = append(legs, posting{account: l.Credit, change: l.Amount, after: available(l.CreditAfter)})
	}
	return slices.DeleteFunc(legs, func(p posting) bool { return p.change == 0 })
}

// fresh returns the accounts in a line of the journal that occur there for the first time.
func (o *output) fresh(l *ledger.Line) (names []messages.Name) {
	for _, s := range []money.Standing{l.DebitAfter, l.CreditAfter} {
		if s.Account != "" && !o.seen[s.Account] {
			names = append(names, s.Account)
			o.seen[s.Account] = true
		}
	}
	return names
}

func decimal(c messages.Credits) string {
	sign, u := "", uint64(c)
	if c < 0 {
		sign, u = "-", -u
	}
	return fmt.Sprintf("%s%d.%06d", sign, u/uint64(messages.Credit), u%uint64(messages.Credit))
}

// day returns the date of a line, in UTC.
func day(t messages.Time) string { return t.Std().Format("2006-01-02") }

type tag struct{ name, value string }

func tags(l *ledger.Line) []tag {
	all := []tag{
		{"number", fmt.Sprint(l.Number)}, {"at", l.At.String()}, {"kind", kind(l)}, {"transfer", l.Asked.ID},
		{"pending", l.Asked.Pending}, {"by", l.By}, {"member", l.Asked.Member}, {"reason", l.Asked.Reason},
	}
	if l.Job != 0 {
		all = append(all, tag{"job", fmt.Sprint(uint64(l.Job))})
	}
	if l.Asked.Linked {
		all = append(all, tag{"linked", "yes"})
	}
	for _, label := range labels(l) {
		all = append(all, tag{"label-" + label.Name, cmp.Or(label.Value, "yes")})
	}
	return slices.DeleteFunc(all, func(t tag) bool { return t.value == "" })
}

func labels(l *ledger.Line) job.Labels {
	if l.Job == 0 {
		return nil
	}
	return job.LabelsOf(l.Asked.Reason)
}

// kind returns the kind of a line's transfer. For a line without a transfer, it returns what happened.
func kind(l *ledger.Line) string {
	if l.What == "done" || l.What == "refused" {
		return l.Asked.Kind.String()
	}
	return l.What
}

// words returns a description of a line that moves credits.
func words(l *ledger.Line) string {
	text := map[string]string{
		"posted": "transfer", "hold": "held", "post": "charge", "void": "freed", "lapsed": "hold expired",
	}[kind(l)]
	if text == "" {
		text = kind(l)
	}
	if l.Ground != "" {
		text = l.Ground
	}
	if l.Job != 0 {
		text += fmt.Sprintf(" for job %d", uint64(l.Job))
	}
	return text
}
