package market

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// SlurmNames gives names in scripts written for Slurm a meaning at this site. In each table "*" stands for all names
// that are not listed. A name that is in no table keeps its usual meaning.
type SlurmNames struct {
	// Partitions gives the market for a partition; empty means the first market whose slots are large enough for the
	// job.
	Partitions job.Labels `json:"partitions,omitempty"`
	// Accounts gives the project for the name of an account; empty means the submitter's own account.
	Accounts job.Labels `json:"accounts,omitempty"`
	// QOS gives the meaning of a quality of service: a market, or a duration that bounds the time limit of a job. Empty
	// means that the quality of service changes nothing.
	QOS job.Labels `json:"qos,omitempty"`
	// Reservations gives the meaning of a reservation: a market, or a duration that bounds the time limit of a job.
	// Empty means that the reservation changes nothing.
	Reservations job.Labels `json:"reservations,omitempty"`
	// Clusters says which site stands for a Slurm cluster; empty means this site.
	Clusters job.Labels `json:"clusters,omitempty"`
	// GRES gives the meaning of a generic resource in scripts: disk, gpu, or empty. With disk, the number is in
	// gibibytes if it has no unit. With gpu, the number is a number of GPUs. With empty, the resource changes nothing.
	GRES job.Labels `json:"gres,omitempty" since:"2"`
	// Features gives the label of nodes that replaces a feature in the option --constraint; empty means that the
	// feature changes nothing. A feature that is not listed keeps its meaning if a node has this label.
	Features job.Labels `json:"features,omitempty" since:"2"`
	// GPUTypes gives the type of GPUs that replaces a type in the script; empty means any type. A type that is not
	// listed keeps its meaning if a node has such GPUs.
	GPUTypes job.Labels `json:"gpu_types,omitempty" since:"2"`
}

// GRESDisk and GRESGPU are meanings of a generic resource.
const (
	GRESDisk = "disk"
	GRESGPU  = "gpu"
)

// Validate returns an error for the first wrong entry, with its path.
func (n *SlurmNames) Validate(markets []Market) error {
	market := func(value string) bool {
		return value == "" || slices.ContainsFunc(markets, func(m Market) bool { return m.Name == value })
	}
	freeName := func(value string) bool { return value == "" || messages.ValidFreeName(value) }
	limits := func(value string) bool {
		d, err := messages.ParseDuration(value)
		return market(value) || err == nil && d > 0
	}
	for _, t := range []struct {
		path, wants string
		table       job.Labels
		good        func(string) bool
	}{
		{"partitions", "a market of the site, or empty", n.Partitions, market},
		{"accounts", "a project, or empty", n.Accounts, freeName},
		{"qos", "a market of the site, a time such as 30m, or empty", n.QOS, limits},
		{"reservations", "a market of the site, a time such as 30m, or empty", n.Reservations, limits},
		{"gres", "disk, gpu or empty", n.GRES, func(value string) bool { return value == "" || value == GRESDisk || value == GRESGPU }},
		{"features", "a label of nodes, or empty", n.Features, freeName},
		{"gpu_types", "a type of GPUs, or empty", n.GPUTypes, freeName},
		{"clusters", "a site, or empty", n.Clusters, func(value string) bool { return value == "" || messages.ValidName(value) }},
	} {
		for _, entry := range t.table {
			if entry.Name == "" || !t.good(entry.Value) {
				return fmt.Errorf("%s: %q: %q: must be %s", t.path, entry.Name, entry.Value, t.wants)
			}
		}
	}
	return nil
}
