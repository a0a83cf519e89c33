package messages

import (
	"fmt"
	"slices"
)

// SlurmNames gives the meaning, at this site, of names in scripts written for Slurm. In each table
// "*" stands for all names that are not listed. Names in no table keep the meaning that they have
// without tables.
type SlurmNames struct {
	// Partitions gives the market for the name of a partition; "" means the first market whose
	// slots are large enough for the job.
	Partitions Labels `json:"partitions,omitempty"`
	// Accounts gives the project for the name of an account; "" means the account of the submitter.
	Accounts Labels `json:"accounts,omitempty"`
	// QOS, for names of qualities of service, is a market, or a time that bounds the time limit of a job; "" is
	// nothing.
	QOS Labels `json:"qos,omitempty"`
	// Reservations is the same for names of reservations.
	Reservations Labels `json:"reservations,omitempty"`
	// Clusters are sites by names of clusters; "" is this site.
	Clusters Labels `json:"clusters,omitempty"`
}

// AllOthers stands in a table for all names that the table does not list.
const AllOthers = "*"

// Lookup returns the value that the table has for a name. listed reports whether the table has the
// name itself, not only [AllOthers].
func (l Labels) Lookup(name string) (value string, listed, ok bool) {
	if value, ok = l.Get(name); ok {
		return value, true, true
	}
	value, ok = l.Get(AllOthers)
	return value, false, ok
}

// Validate reports the first entry that is wrong, by its path.
func (n *SlurmNames) Validate(markets []Market) error {
	market := func(value string) bool {
		return value == "" || slices.ContainsFunc(markets, func(m Market) bool { return m.Name == value })
	}
	limits := func(value string) bool {
		d, err := ParseDuration(value)
		return market(value) || err == nil && d > 0
	}
	for _, t := range []struct {
		path, wants string
		table       Labels
		good        func(string) bool
	}{
		{"partitions", "a market of the site, or empty", n.Partitions, market},
		{"accounts", "a project, or empty", n.Accounts, func(value string) bool { return value == "" || ValidFreeName(value) }},
		{"qos", "a market of the site, a time such as 30m, or empty", n.QOS, limits},
		{"reservations", "a market of the site, a time such as 30m, or empty", n.Reservations, limits},
		{"clusters", "a site, or empty", n.Clusters, func(value string) bool { return value == "" || ValidName(value) }},
	} {
		for _, entry := range t.table {
			if entry.Name == "" || !t.good(entry.Value) {
				return fmt.Errorf("%s: %q: %q: must be %s", t.path, entry.Name, entry.Value, t.wants)
			}
		}
	}
	return nil
}
