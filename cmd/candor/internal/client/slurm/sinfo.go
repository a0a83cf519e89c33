package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages/hostlist"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// group has the nodes of a partition that have the same state and the same printed fields.
type group struct {
	partition  *partition
	state      string
	nodes      []string
	like       *market.NodeStatus // one of the nodes of the group; nil means there are none
	cpus, used int
	counts     [3]int // numbers of nodes: in use, idle, and all others
}

// sinfo shows nodes in groups. All nodes of a group have the same memory, GPUs and labels. So the functions memory,
// gres and features need only one node of the group, and return the text for the whole group.
func memory(n *market.NodeStatus) string {
	if n == nil || n.Resources == nil {
		return "0"
	}
	return strconv.FormatInt(n.Resources.Memory>>20, 10)
}

func gres(n *market.NodeStatus) string {
	switch {
	case n == nil || n.Resources == nil || n.Resources.GPUs == 0:
		return "(null)"
	case n.Resources.GPUType == "":
		return fmt.Sprintf("gpu:%d", n.Resources.GPUs)
	}
	return fmt.Sprintf("gpu:%s:%d", n.Resources.GPUType, n.Resources.GPUs)
}

func features(n *market.NodeStatus) string {
	if n == nil || len(n.Labels) == 0 {
		return "(null)"
	}
	return strings.Join(n.Labels, ",")
}

// cpusOn returns how many processors of a node the market sells, and how many of these are in use.
func (p *partition) cpusOn(n *market.NodeStatus) (all, used int) {
	for i, of := range [][]job.ClassSlots{n.Slots, n.Used} {
		sum := 0
		for _, s := range of {
			if slices.Contains(p.Market.Classes, s.Class) {
				sum += s.Slots * max(p.Market.UnitOf(s.Class).CPUs, 1)
			}
		}
		if i == 0 {
			all = sum
		} else {
			used = sum
		}
	}
	return all, used
}

func infoFields() map[byte]column {
	of := func(title string, text func(*group) string) column {
		return column{title: title, text: func(r *row) string { return text(r.group) }}
	}
	name := func(g *group) string { return g.partition.Market.Name }
	return map[byte]column{
		'P': of("PARTITION", func(g *group) string {
			if g.partition.first {
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
		't': of("STATE", func(g *group) string { return cmp.Or(shortStates[g.state], g.state) }),
		'T': of("STATE", func(g *group) string { return g.state }),
		'N': of("NODELIST", func(g *group) string { return hostlist.Join(hostlist.Sort(g.nodes)) }),
		'n': of("HOSTNAMES", func(g *group) string { return strings.Join(g.nodes, ",") }),
		'F': of("NODES(A/I/O/T)", func(g *group) string {
			return fmt.Sprintf("%d/%d/%d/%d", g.counts[0], g.counts[1], g.counts[2], len(g.nodes))
		}),
		'c': of("CPUS", func(g *group) string { return strconv.Itoa(g.cpus / max(1, len(g.nodes))) }),
		'C': of("CPUS(A/I/O/T)", func(g *group) string { return fmt.Sprintf("%d/%d/0/%d", g.used, g.cpus-g.used, g.cpus) }),
		'm': of("MEMORY", func(g *group) string { return memory(g.like) }),
		'G': of("GRES", func(g *group) string { return gres(g.like) }),
		'f': of("AVAIL_FEATURES", func(g *group) string { return features(g.like) }),
		'g': of("GROUPS", func(*group) string { return "all" }),
		's': of("JOB_SIZE", func(*group) string { return "1" }),
		'h': of("OVERSUBSCRIBE", func(*group) string { return "NO" }),
		'E': of("REASON", func(g *group) string {
			if g.like == nil {
				return "none"
			}
			return cmp.Or(nodeReason(g.like), "none")
		}),
		'u': of("USER", func(*group) string { return "Unknown" }),
		'H': of("TIMESTAMP", func(*group) string { return "Unknown" }),
		'r': of("ROOT", func(*group) string { return "no" }),
	}
}

// shortStates are the short forms of states, except for states whose short form is the same word.
var shortStates = map[string]string{"mixed": "mix", "allocated": "alloc", "draining": "drng", "drained": "drain"}

var nodeStates = []string{"idle", "mixed", "allocated", "draining", "drained", "maint", "down", "all"}

// unusable are the states of nodes that sinfo -R lists. With -t, it lists fewer nodes.
var unusable = []string{"draining", "drained", "maint", "down"}

// inState reports whether a word, perhaps shortened as "alloc", names one of the states, or means all states.
func inState(states []string, word string) bool {
	word = strings.ToLower(word)
	return word == "all" || len(word) >= len("mix") && slices.ContainsFunc(states, func(s string) bool { return strings.HasPrefix(s, word) })
}

func sinfo(ctx context.Context, c *call, args []string) error {
	f := c.flags
	format := f.StringP("format", "o", "", "")
	summary := f.BoolP("summarize", "s", false, "")
	bare := f.BoolP("noheader", "h", false, "")
	markets := f.StringSliceP("partition", "p", nil, "")
	single := f.BoolP("Node", "N", false, "")
	states := f.StringSliceP("states", "t", nil, "")
	names := f.StringArrayP("nodes", "n", nil, "")
	c.clusterFlags()
	c.textOnly()
	order := f.StringP("sort", "S", "", "")
	long := f.BoolP("long", "l", false, "")
	reasons := f.BoolP("list-reasons", "R", false, "")
	responding := f.BoolP("responding", "r", false, "")
	c.ignore(nil, []string{"exact/e", "all/a", "verbose/v"})
	if _, done, err := c.parse(args); done || err != nil {
		return err
	}
	variables := [][2]string{{"SINFO_PARTITION", "partition"}, {"SINFO_SORT", "sort"}}
	if !*summary && !*single && !*long && !*reasons {
		variables = append(variables, [2]string{"SINFO_FORMAT", "format"})
	}
	if err := c.inputs(variables...); err != nil {
		return err
	}
	if bad := slices.IndexFunc(*states, func(w string) bool { return !inState(nodeStates, w) }); bad >= 0 {
		return fmt.Errorf("Bad state string: %q: use %s", (*states)[bad], strings.Join(nodeStates, ", "))
	}
	wide := *format == "" && *single && !*summary // the first column is as wide as the longest name
	if *order == "" && *single {
		*order = "N"
	}
	switch {
	case *format != "":
	case *reasons:
		*format = "%20E %9u %19H %N"
	case *summary:
		*format = "%9P %.5a %.10l %.16F %N"
	case *single && *long:
		*format = "%N %.6D %.9P %.11T %.4c %.8m %.14f %20E"
	case *single:
		*format = "%N %.6D %.9P %6t"
	case *long:
		*format = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
	default:
		*format = "%9P %.5a %.10l %.6D %.6t %N"
	}
	columns, err := letters(*format, infoFields())
	if err == nil {
		err = sorted(nil, *order, infoFields())
	}
	if err != nil {
		return err
	}
	s, err := c.dial()
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	all, nodes, err := siteOf(ctx, s, *markets...)
	if err != nil {
		return err
	}
	named, err := nodesOf("nodes", strings.Join(*names, ","))
	if err != nil {
		return err
	}
	byNode := strings.ContainsAny(letterOf(*format), "DtTNncCFmGfE") || *single || *responding || *states != nil || *names != nil || *reasons
	apart := strings.ContainsAny(letterOf(*format), "cmGfE")
	alike := func(p *partition, a, b *market.NodeStatus) bool {
		x, _ := p.cpusOn(a)
		y, _ := p.cpusOn(b)
		return !apart || x == y && memory(a) == memory(b) && gres(a) == gres(b) && features(a) == features(b) && nodeReason(a) == nodeReason(b)
	}
	var rows []row
	listed := map[string]bool{} // for -R, which lists each node only once
	for i := range all {
		p := &all[i]
		groups := []*group{{partition: p, state: "n/a"}}
		if byNode {
			groups = groups[:0]
			for k := range nodes {
				n := &nodes[k]
				if *reasons && (listed[n.Node] || !slices.Contains(unusable, nodeState(n))) || p.slotsOn(n) == 0 || *names != nil && !slices.Contains(named, n.Node) || *responding && nodeState(n) == "down" || *states != nil && !slices.ContainsFunc(*states, func(w string) bool { return inState([]string{nodeState(n)}, w) }) {
					continue
				}
				at := -1
				listed[n.Node] = true
				for x, g := range groups {
					if !*single && (*summary || g.state == nodeState(n)) && alike(p, g.like, n) {
						at = x
					}
				}
				if at < 0 {
					groups = append(groups, &group{partition: p, state: nodeState(n), like: n})
					at = len(groups) - 1
				}
				g := groups[at]
				cpus, used := p.cpusOn(n)
				g.nodes, g.cpus, g.used = append(g.nodes, n.Node), g.cpus+cpus, g.used+used
				switch state := nodeState(n); {
				case state == "idle":
					g.counts[1]++
				case state == "mixed" || state == "allocated":
					g.counts[0]++
				default:
					g.counts[2]++
				}
			}
		}
		for _, g := range groups {
			rows = append(rows, row{group: g})
		}
	}
	if err := sorted(rows, *order, infoFields()); err != nil {
		return err
	}
	if wide {
		for i := range rows {
			columns[0].width = max(columns[0].width, len("NODELIST"), len(columns[0].text(&rows[i])))
		}
	}
	return c.print(columns, rows, !*bare)
}
