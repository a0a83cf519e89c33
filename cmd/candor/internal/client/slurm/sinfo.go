package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages/hostlist"
)

// group is the nodes of a partition that are in the same state.
type group struct {
	partition *partition
	first     bool // the partition is the site's first
	state     string
	nodes     []string
	slots     int
	used      int
}

// infoFields returns the columns for the letters of sinfo's formats.
func infoFields() map[byte]column {
	of := func(title string, text func(*group) string) column {
		return column{title: title, text: func(r *row) string { return text(r.group) }}
	}
	name := func(g *group) string { return g.partition.Market.Name }
	return map[byte]column{
		'P': of("PARTITION", func(g *group) string {
			if g.first {
				return name(g) + "*"
			}
			return name(g)
		}),
		'R': of("PARTITION", name),
		'a': of("AVAIL", func(*group) string { return "up" }),
		'l': of("TIMELIMIT", func(g *group) string {
			if g.partition.Market.TimeLimit == 0 {
				return "infinite"
			}
			return clock(g.partition.Market.TimeLimit)
		}),
		'D': of("NODES", func(g *group) string { return strconv.Itoa(len(g.nodes)) }),
		't': of("STATE", func(g *group) string { return g.state[:min(len(g.state), 5)] }),
		'T': of("STATE", func(g *group) string { return g.state }),
		'N': of("NODELIST", func(g *group) string { return hostlist.Join(hostlist.Sort(g.nodes)) }),
		'n': of("HOSTNAMES", func(g *group) string { return strings.Join(g.nodes, ",") }),
		'c': of("CPUS", func(g *group) string { return strconv.Itoa(g.slots / max(1, len(g.nodes))) }),
		'C': of("CPUS(A/I/O/T)", func(g *group) string {
			return strconv.Itoa(g.used) + "/" + strconv.Itoa(g.slots-g.used) + "/0/" + strconv.Itoa(g.slots)
		}),
		'm': of("MEMORY", func(*group) string { return "0" }),
		'G': of("GRES", func(*group) string { return "(null)" }),
		'f': of("AVAIL_FEATURES", func(*group) string { return "(null)" }),
		'g': of("GROUPS", func(*group) string { return "all" }),
		's': of("JOB_SIZE", func(*group) string { return "1" }),
		'h': of("OVERSUBSCRIBE", func(*group) string { return "NO" }),
		'r': of("ROOT", func(*group) string { return "no" }),
	}
}

// nodeStates are the states of nodes, in Slurm's words.
var nodeStates = []string{"idle", "mixed", "allocated", "draining", "drained", "down", "all"}

// inState reports whether a word, which may be short as in "alloc", names one of the states
// or all states.
func inState(states []string, word string) bool {
	word = strings.ToLower(word)
	return word == "all" || len(word) >= len("mix") && slices.ContainsFunc(states, func(s string) bool { return strings.HasPrefix(s, word) })
}

// sinfo lists the partitions with their nodes.
func sinfo(ctx context.Context, c *call, args []string) error {
	f := c.flags
	format := f.StringP("format", "o", "%9P %.5a %.10l %.6D %.6t %N", "")
	bare := f.BoolP("noheader", "h", false, "")
	markets := f.StringSliceP("partition", "p", nil, "")
	single := f.BoolP("Node", "N", false, "")
	states := f.StringSliceP("states", "t", nil, "")
	names := f.StringSliceP("nodes", "n", nil, "")
	c.ignore([]string{"clusters/M", "sort/S"}, []string{"long/l", "exact/e", "summarize/s", "all/a", "responding/r", "verbose/v"})
	if _, done, err := c.parse(args); done || err != nil {
		return err
	}
	if bad := slices.IndexFunc(*states, func(w string) bool { return !inState(nodeStates, w) }); bad >= 0 {
		return fmt.Errorf("Bad state string: %q: use %s", (*states)[bad], strings.Join(nodeStates, ", "))
	}
	columns, err := letters(*format, infoFields())
	if err != nil {
		return err
	}
	s, err := c.dial()
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	all, nodes, err := siteOf(ctx, s)
	if err != nil {
		return err
	}
	byNode := strings.ContainsAny(letterOf(*format), "DtTNncC") || *single || *states != nil || *names != nil
	var rows []row
	for i := range all {
		p := &all[i]
		if *markets != nil && !slices.Contains(*markets, p.Market.Name) {
			continue
		}
		groups := []*group{{partition: p, first: i == 0, state: "n/a"}}
		if byNode {
			groups = groups[:0]
			for k := range nodes {
				n := &nodes[k]
				slots := p.slotsOn(n)
				if slots == 0 || *names != nil && !slices.Contains(*names, n.Node) || *states != nil && !slices.ContainsFunc(*states, func(w string) bool { return inState([]string{nodeState(n)}, w) }) {
					continue
				}
				at := -1
				for x, g := range groups {
					if !*single && g.state == nodeState(n) {
						at = x
					}
				}
				if at < 0 {
					groups = append(groups, &group{partition: p, first: i == 0, state: nodeState(n)})
					at = len(groups) - 1
				}
				g := groups[at]
				g.nodes, g.slots, g.used = append(g.nodes, n.Node), g.slots+slots, g.used+slotsOf(n.Used)
			}
		}
		for _, g := range groups {
			rows = append(rows, row{group: g})
		}
	}
	return c.print(columns, rows, !*bare)
}
