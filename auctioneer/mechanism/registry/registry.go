// Package registry lists the mechanisms that a market can name. A new mechanism needs a directory next to this one,
// with a function Describe, and a line in the list.
package registry

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/backfill"
	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadline"
	"github.com/candor-grid/candor/auctioneer/mechanism/fairshare"
	"github.com/candor-grid/candor/auctioneer/mechanism/fifo"
	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/auctioneer/mechanism/karma"
	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

var described = index(
	proportional.Describe,
	highestbid.Describe,
	deadline.Describe,
	batchqueue.Describe,
	reservation.Describe,
	contract.Describe,
	karma.Describe,
	fifo.Describe,
	fairshare.Describe,
	backfill.Describe,
)

// Describe returns the traits of a mechanism, for a market that names it.
type Describe func(*market.Market) mechanism.Traits

func index(list ...Describe) map[messages.Name]Describe {
	by := map[messages.Name]Describe{}
	for _, d := range list {
		by[d(&market.Market{}).Name] = d
	}
	return by
}

// Add adds a mechanism for a test. The returned function removes it again.
func Add(d Describe) (remove func()) {
	name := d(&market.Market{}).Name
	described[name] = d
	return func() { delete(described, name) }
}

// Rows returns the rows of the README's table of mechanisms: the name, which jobs run, and the price.
func Rows() (rows []string) {
	for _, name := range Names(nil) {
		t := Of(&market.Market{Mechanism: name})
		rows = append(rows, "| `"+name+"` | "+t.Who+" | "+t.Cost+" |")
	}
	return rows
}

// Of returns the traits of a market's mechanism. It returns zero traits if no mechanism has the name that the market
// gives.
func Of(m *market.Market) (t mechanism.Traits) {
	if d := described[m.Mechanism]; d != nil {
		t = d(m)
	}
	return t
}

// Names returns the mechanisms for whose traits `is` returns true, in alphabetical order. If `is` is nil, it returns
// all.
func Names(is func(*mechanism.Traits) bool) (out []messages.Name) {
	for name, d := range described {
		if t := d(&market.Market{}); is == nil || is(&t) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Make makes the mechanism that a valid market names. An error begins with the name of the wrong parameter.
func Make(m market.Market) (mechanism.Mechanism, error) {
	t := Of(&m)
	if t.Make == nil {
		return nil, messages.Errorf(messages.Invalid, "mechanism: %q cannot run in a live market; name one of: %s", m.Mechanism, spelling.List(Names(nil)))
	}
	if len(m.Classes) == 0 {
		return nil, messages.Errorf(messages.Invalid, "classes: name at least one")
	}
	mech, err := t.Make(m)
	if err != nil {
		text := strings.TrimPrefix(messages.Detail(err), "market "+m.Name+": ")
		return nil, messages.Errorf(messages.KindOf(err), "%s", text)
	}
	return mech, nil
}

// common lists the fields of a market that every mechanism accepts.
var common = []string{"name", "mechanism", "classes", "units", "time_limit", "nodes", "max_jobs", "max_tasks", "default_budget", "closed", "allow", "deny", "default_for", "at_once"}

// Check refuses unknown modes, and parameters that only other mechanisms use, because they would silently be ignored.
// It returns all errors, joined into one. Each error begins with the name of its field.
func Check(m *market.Market) error {
	var found []error
	t, v := Of(m), reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		field, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if f := v.Field(i); f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 || slices.Contains(common, field) || slices.Contains(t.Parameters, field) {
			continue
		}
		users := Names(func(t *mechanism.Traits) bool { return slices.Contains(t.Parameters, field) })
		found = append(found, messages.Errorf(messages.Invalid, "%s: markets of mechanism %s do not use this field, which is for %s; leave it out", field, m.Mechanism, strings.Join(users, ", ")))
	}
	if len(found) == 0 && m.Mode != "" && !slices.Contains(t.Modes, m.Mode) {
		found = append(found, messages.Errorf(messages.Invalid, "mode: %.64q is not one of %v", m.Mode, t.Modes))
	}
	if m.AtOnce.Bounds() && t.FixesTimes() {
		found = append(found, messages.Errorf(messages.Invalid, "at_once: markets of mechanism %s promise when a job starts or ends, and a bound could break a promise; leave at_once out, or use a market of %s", m.Mechanism,
			spelling.List(Names(func(t *mechanism.Traits) bool { return !t.FixesTimes() }))))
	}
	return errors.Join(found...)
}
