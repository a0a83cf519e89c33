package bids

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// entry is a line of a file of bids. If a field is absent, its value comes from the model of bids.
type entry struct {
	Job      *int64
	Value    *float64
	Bid      *float64
	Deadline *float64
	Length   *float64
	Budget   *float64

	line int
}

var columns = []string{"job", "value", "bid", "deadline", "length", "budget"}

// numbers returns pointers to the fields of the entry that are numbers: the fields of all columns except "job", in the
// order of the columns.
func (e *entry) numbers() [5]**float64 {
	return [...]**float64{&e.Value, &e.Bid, &e.Deadline, &e.Length, &e.Budget}
}

var most = [5]float64{Largest, Largest, 1e12, workload.MostTime, 1e12}

// Read replaces drawn bids of a workload by the values in a file, and returns the number of jobs in it. The file is CSV
// with a header line: job (its number in the log), value and bid (per slot-second), deadline (seconds from the log's
// beginning), length (seconds) and budget. A job with a value but no bid bids its value. Errors are Invalid and name
// file and line.
func Read(name string, text []byte, w *workload.Workload, into []Bid) (int, error) {
	entries, err := parse(name, bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))) // some editors write a byte order mark before UTF-8
	if err != nil {
		return 0, err
	}
	jobs := map[int64][]int{}
	for i := range w.Jobs {
		jobs[w.Jobs[i].Number] = append(jobs[w.Jobs[i].Number], i)
	}
	said, seen := 0, map[int64]int{}
	for i := range entries {
		e := &entries[i]
		refuse := func(format string, args ...any) error {
			return messages.Errorf(messages.Invalid, "%s:%d: "+format, append([]any{name, e.line}, args...)...)
		}
		if e.Job == nil {
			return 0, refuse("job: is missing")
		}
		if before, twice := seen[*e.Job]; twice {
			return 0, refuse("job %d: line %d already has this job", *e.Job, before)
		}
		seen[*e.Job] = e.line
		if wrong := e.wrong(); wrong != "" {
			return 0, refuse("job %d: %s", *e.Job, wrong)
		}
		for _, k := range jobs[*e.Job] {
			e.put(&into[k])
			said++
		}
	}
	if said == 0 {
		return 0, messages.Errorf(messages.Invalid, "%s: none of the %d jobs in this file can be run", name, len(entries))
	}
	return said, nil
}

// wrong looks for the first field with an impossible value. It returns the field's name and the values that are
// possible, or "" if there is no such field.
func (e *entry) wrong() string {
	for i, x := range e.numbers() {
		switch x, deadline := *x, columns[i+1] == "deadline"; {
		case x == nil || *x > 0 && *x <= most[i] || deadline && *x == 0:
		case deadline:
			return fmt.Sprintf("deadline: must be a number from 0 to %g, is %v", most[i], *x)
		default:
			return fmt.Sprintf("%s: must be a number above 0, at most %g, is %v", columns[i+1], most[i], *x)
		}
	}
	return ""
}

func (e *entry) put(b *Bid) {
	if e.Value != nil {
		b.Value, b.Rate, b.Valued, b.High = *e.Value, *e.Value, true, false
	}
	set(&b.Rate, e.Bid)
	if e.Value != nil || e.Bid != nil {
		b.Rated, b.Aggressive = true, false
	}
	set(&b.Deadline, e.Deadline)
	set(&b.Length, e.Length)
	set(&b.Budget, e.Budget)
}

func set(field, value *float64) {
	if value != nil {
		*field = *value
	}
}

func parse(name string, text []byte) ([]entry, error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.TrimLeadingSpace, r.Comment = true, '#'
	head, err := r.Read()
	if err != nil {
		return nil, csvError(name, err)
	}
	var out []entry
	fields, err := fieldsOf(name, head)
	if err != nil {
		return nil, err
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, csvError(name, err)
		}
		var e entry
		e.line, _ = r.FieldPos(0)
		for k, cell := range row {
			if cell = strings.TrimSpace(cell); cell == "" {
				continue
			}
			if err := e.parse(fields[k], cell); err != nil {
				return nil, messages.Errorf(messages.Invalid, "%s:%d: %s: %.40q is not a number", name, e.line, fields[k], cell)
			}
		}
		out = append(out, e)
	}
}

func csvError(name string, err error) error {
	var at *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return messages.Errorf(messages.Invalid, "%s:1: is empty: the first line names the columns %s", name, strings.Join(columns, ", "))
	case errors.As(err, &at):
		return messages.Errorf(messages.Invalid, "%s:%d: %v", name, at.Line, at.Err)
	}
	return messages.Errorf(messages.Invalid, "%s: %v", name, err)
}

func fieldsOf(name string, head []string) ([]string, error) {
	seen := map[string]bool{}
	for k := range head {
		head[k] = strings.TrimSpace(head[k])
		if !slices.Contains(columns, head[k]) || seen[head[k]] {
			return nil, messages.Errorf(messages.Invalid, "%s:1: column %.40q: is unknown or appears twice; the columns are %s", name, head[k], strings.Join(columns, ", "))
		}
		seen[head[k]] = true
	}
	if !seen["job"] {
		return nil, messages.Errorf(messages.Invalid, "%s:1: column job is missing", name)
	}
	return head, nil
}

func (e *entry) parse(field, cell string) error {
	if field == "job" {
		n, err := strconv.ParseInt(cell, 10, 64)
		e.Job = &n
		return err
	}
	x, err := strconv.ParseFloat(cell, 64)
	if math.IsNaN(x) {
		return errors.New("not a number")
	}
	*e.numbers()[slices.Index(columns, field)-1] = &x
	return err
}
