package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

type recordField struct {
	name  string
	width int
	text  func(*row) string
}

// records returns the fields of sacct that Candor supports, and Candor's own fields Budget and Charged. A field that
// the site does not measure is empty. `unit` is the letter of the unit for memory.
func (c *call) records(cluster, unit string) []recordField {
	now := messages.TimeOf(c.Now())
	number := func(of func(*row) int) func(*row) string { return func(r *row) string { return strconv.Itoa(of(r)) } }
	fixed := func(s string) func(*row) string { return func(*row) string { return s } }
	state := func(r *row) string { return r.state.long }
	spec := func(of func(*job.JobSpec) string) func(*row) string {
		return func(r *row) string {
			if r.detail == nil {
				return ""
			}
			return of(&r.detail.Spec)
		}
	}
	return []recordField{
		{"JobID", 12, (*row).id},
		{"JobIDRaw", 12, func(r *row) string {
			if r.index != "" && r.Array != nil && !r.Numbered {
				return r.id()
			}
			return r.number().String()
		}},
		{"JobName", 10, func(r *row) string { return r.Name }},
		{"Partition", 10, func(r *row) string { return r.Market }},
		{"Account", 10, func(r *row) string { return r.Payer }},
		{"User", 9, func(r *row) string { return r.Account }},
		{"Group", 9, fixed("")},
		{"AllocCPUS", 10, number((*row).cpus)},
		{"NCPUS", 10, number((*row).cpus)},
		{"ReqCPUS", 8, number((*row).cpus)},
		{"State", 10, state},
		{"ExitCode", 8, func(r *row) string { return r.code }},
		{"DerivedExitCode", 15, func(r *row) string { return r.code }},
		{"Elapsed", 10, func(r *row) string { return longClock(r.elapsed(now)) }},
		{"ElapsedRaw", 10, func(r *row) string { return strconv.FormatInt(int64(r.elapsed(now).Std()/time.Second), 10) }},
		{"Submit", 19, func(r *row) string { return c.instant(r.Submitted, "Unknown") }},
		{"Eligible", 19, func(r *row) string { return c.instant(r.Submitted, "Unknown") }},
		{"Start", 19, func(r *row) string { return c.instant(r.began, "Unknown") }},
		{"End", 19, func(r *row) string { return c.instant(r.ended, "Unknown") }},
		{"NodeList", 15, func(r *row) string {
			if r.node == "" {
				return "None assigned"
			}
			return r.node
		}},
		{"NNodes", 8, number((*row).nodes)},
		{"AllocNodes", 10, number((*row).nodes)},
		{"NTasks", 8, number((*row).ranks)},
		{"MaxRSS", 10, func(r *row) string {
			if r.rss == 0 {
				return ""
			}
			return sizeIn(r.rss>>10, unit)
		}},
		{"AveRSS", 10, func(r *row) string {
			if r.rss == 0 || r.nodes() > 1 {
				return ""
			}
			return sizeIn(r.rss>>10, unit)
		}},
		{"AveCPU", 10, func(r *row) string { return longClock(r.cpu / messages.Duration(r.nodes())) }},
		{"ReqTRES", 10, (*row).resources}, {"AllocTRES", 10, (*row).resources}, {"ReqNodes", 8, number((*row).nodes)},
		{"MaxVMSize", 10, fixed("")}, {"AveVMSize", 10, fixed("")}, {"UserCPU", 10, fixed("")}, {"SystemCPU", 10, fixed("")}, {"MaxDiskRead", 12, fixed("")}, {"MaxDiskWrite", 12, fixed("")},
		{"AveDiskRead", 14, fixed("")}, {"AveDiskWrite", 14, fixed("")}, {"TRESUsageInTot", 14, fixed("")}, {"TRESUsageInMax", 14, fixed("")}, {"TRESUsageInAve", 14, fixed("")},
		{"ConsumedEnergy", 14, fixed("")}, {"MaxRSSNode", 10, fixed("")}, {"MaxRSSTask", 10, fixed("")},
		{"Planned", 10, func(r *row) string { return longClock(max(0, cmp.Or(r.began, r.ended, now).Sub(r.Submitted))) }},
		{"TotalCPU", 10, func(r *row) string { return longClock(r.cpu) }},
		{"CPUTime", 10, func(r *row) string { return longClock(r.elapsed(now) * messages.Duration(r.cpus())) }},
		{"CPUTimeRAW", 10, func(r *row) string {
			return strconv.FormatInt(int64(r.elapsed(now).Std()/time.Second)*int64(r.cpus()), 10)
		}},
		{"Cluster", 10, fixed(cluster)},
		{"Reason", 22, func(r *row) string { return r.why }},
		{"Priority", 10, fixed("0")},
		{"QOS", 10, (*row).qos},
		{"Timelimit", 10, spec(func(s *job.JobSpec) string {
			if s.Stages[0].TimeLimit == 0 {
				return "UNLIMITED"
			}
			return longClock(s.Stages[0].TimeLimit)
		})},
		{"WorkDir", 20, spec(func(s *job.JobSpec) string { return s.Dir })},
		{"Comment", 14, spec(func(s *job.JobSpec) string { return s.Comment })},
		{"ReqMem", 10, func(r *row) string {
			if r.detail == nil || len(r.detail.Spec.Stages) == 0 {
				return ""
			}
			mebibytes, _ := r.memoryAndGPUs()
			if unit == "K" { // K is the default unit; with it, this field is in mebibytes
				return strconv.FormatInt(mebibytes, 10) + "M"
			}
			return sizeIn(mebibytes<<10, unit)
		}},
		{"Budget", 10, func(r *row) string { return r.Budget.String() }},
		{"Charged", 10, func(r *row) string { return r.Charged.String() }},
	}
}

// If the user asks for a field in taskFields, sacct must read the list of tasks of each job. If the user asks for a
// field in detailFields, it must read the description of each job.
var (
	taskFields   = []string{"nodelist", "maxrss", "averss", "totalcpu", "avecpu"}
	detailFields = []string{"timelimit", "workdir", "comment", "reqmem", "ntasks", "reqtres", "alloctres", "qos"}
)

const (
	recordFormat     = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
	longRecordFormat = "JobID,JobIDRaw,JobName,Partition,MaxVMSize,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,AveCPU,NTasks,AllocCPUS,Elapsed,State,ExitCode," +
		"ReqMem,ConsumedEnergy,MaxDiskRead,AveDiskRead,MaxDiskWrite,AveDiskWrite,ReqTRES,AllocTRES,TRESUsageInAve,TRESUsageInMax,TRESUsageInTot"
)

func sacct(ctx context.Context, c *call, args []string) error {
	f := c.flags
	numbers := f.StringArrayP("jobs", "j", nil, "")
	names := f.StringSlice("name", nil, "")
	users := f.StringSliceP("user", "u", nil, "")
	everybody := f.BoolP("allusers", "a", false, "")
	projects := f.StringSliceP("accounts", "A", nil, "")
	markets := f.StringSliceP("partition", "r", nil, "")
	format := f.StringP("format", "o", "", "")
	wanted := f.StringP("state", "s", "", "")
	since := f.StringP("starttime", "S", "", "")
	until := f.StringP("endtime", "E", "", "")
	bare := f.BoolP("noheader", "n", false, "")
	parsable := f.BoolP("parsable", "p", false, "")
	parsable2 := f.BoolP("parsable2", "P", false, "")
	brief := f.BoolP("brief", "b", false, "")
	delimiter := f.String("delimiter", "|", "")
	list := f.BoolP("helpformat", "e", false, "")
	c.clusterFlags()
	c.textOnly()
	qos := f.StringSliceP("qos", "q", nil, "")
	nodes := f.StringP("nnodes", "i", "", "")
	cpus := f.StringP("ncpus", "I", "", "")
	units := f.String("units", "K", "")
	long := f.BoolP("long", "l", false, "")
	single := f.Bool("array", false, "")
	truncate := f.BoolP("truncate", "T", false, "")
	on := f.StringP("nodelist", "N", "", "")
	c.ignore(nil, []string{"allocations/X", "duplicates/D", "verbose/v", "local", "federation", "noconvert", "allclusters/L"})
	if _, done, err := c.parse(args); done || err != nil {
		return err
	}
	if !*brief && !*long {
		if err := c.inputs([2]string{"SACCT_FORMAT", "format"}); err != nil {
			return err
		}
	}
	site := ""
	if t, err := c.Resolve(false); err == nil {
		site = t.Site
	}
	if len(*units) != 1 || !strings.Contains(unitLetters, *units) {
		return fmt.Errorf("Invalid --units %q: use one of K, M, G, T and P", *units)
	}
	known := c.records(site, *units)
	if *list {
		for _, f := range known {
			fmt.Fprintln(c.Out, f.name)
		}
		return nil
	}
	if *brief {
		*format = "JobID,State,ExitCode"
	}
	if *long && !f.Changed("format") {
		*format = longRecordFormat
	}
	if *format == "" {
		*format = recordFormat
	}
	columns, names2, err := recordColumns(*format, known, *parsable || *parsable2, *delimiter, *parsable2)
	if err != nil {
		return err
	}
	q := query{names: *names, markets: *markets, projects: *projects, qos: *qos, elements: true}
	if q.on, err = nodesOf("nodelist", *on); err != nil {
		return err
	}
	if q.nodes, err = boundsOf("nnodes", *nodes); err != nil {
		return err
	}
	if q.cpus, err = boundsOf("ncpus", *cpus); err != nil {
		return err
	}
	q.tasks = q.on != nil || slices.ContainsFunc(names2, func(n string) bool { return slices.Contains(taskFields, n) })
	q.details = slices.ContainsFunc(names2, func(n string) bool { return slices.Contains(detailFields, n) })
	if q.targets, err = targets(*numbers...); err != nil {
		return err
	}
	if q.states, err = named(*wanted); err != nil {
		return err
	}
	if err := c.window(&q, *since, *until); err != nil {
		return err
	}
	s, err := c.dial()
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	q.users, q.everybody = usersOf(*users, s.Account), *everybody || *users != nil || len(q.targets) > 0
	rows, err := q.list(ctx, s)
	if err != nil {
		return err
	}
	if *single {
		rows = apart(rows)
	}
	for i := range rows {
		if *truncate {
			rows[i].truncate(q.since, q.until)
		}
	}
	return c.printRecords(columns, rows, *bare, *parsable || *parsable2)
}

// truncate shortens the run of a job to the period from `since` to `until`, as sacct --truncate does. 0 means no limit.
func (r *row) truncate(since, until messages.Time) {
	if r.began != 0 {
		r.began = max(r.began, since)
	}
	if until != 0 && r.began != 0 && (r.ended == 0 || r.ended > until) {
		r.ended = max(until, r.began)
	}
}

// unitLetters are the units of memory, beginning with 1024 bytes. Each unit is 1024 times the unit before it.
const unitLetters = "KMGTP"

// sizeIn writes a size in the unit with the given letter, for example G for gibibytes. The size is given in kibibytes.
func sizeIn(kibibytes int64, letter string) string {
	size := float64(kibibytes)
	for range strings.Index(unitLetters, letter) {
		size /= 1024
	}
	if size == float64(int64(size)) {
		return strconv.FormatInt(int64(size), 10) + letter
	}
	return fmt.Sprintf("%.2f%s", size, letter)
}

// window sets the period about which the query asks. As with sacct, the period begins today at midnight, if the user
// names no other time and no jobs.
func (c *call) window(q *query, since, until string) (err error) {
	now := c.Now().In(c.Zone)
	if since != "" {
		if q.since, err = c.when(since); err != nil {
			return err
		}
	} else if q.targets == nil {
		q.since = messages.TimeOf(time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, c.Zone))
	}
	if until != "" && until != "now" {
		q.until, err = c.when(until)
	}
	if q.until != 0 && q.until <= q.since {
		q.until = q.since + 1
	}
	return err
}

// This method reads a time as Slurm's commands accept it: 2026-11-20, 2026-11-20T10:00, 10:00, now, now-2days,
// midnight.
func (c *call) when(text string) (messages.Time, error) {
	now := c.Now().In(c.Zone)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, c.Zone)
	switch text {
	case "now":
		return messages.TimeOf(now), nil
	case "today", "midnight":
		return messages.TimeOf(midnight), nil
	}
	if back, ok := strings.CutPrefix(text, "now-"); ok {
		digits := strings.TrimRight(back, "abcdefghijklmnopqrstuvwxyz")
		units := map[string]time.Duration{"": time.Second, "seconds": time.Second, "second": time.Second, "minutes": time.Minute, "minute": time.Minute,
			"hours": time.Hour, "hour": time.Hour, "days": 24 * time.Hour, "day": 24 * time.Hour, "weeks": 168 * time.Hour, "week": 168 * time.Hour}
		n, err := strconv.Atoi(digits)
		if unit, ok := units[back[len(digits):]]; ok && err == nil {
			return messages.TimeOf(now.Add(-time.Duration(n) * unit)), nil
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "01/02/06", "01/02"} {
		if at, err := time.ParseInLocation(layout, text, c.Zone); err == nil {
			// Programs ask for all jobs since 1970-01-01, which is time 0. The site reads 0 as no limit at all. So the
			// result is at least 1.
			return max(1, messages.TimeOf(at)), nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if at, err := time.ParseInLocation(layout, text, c.Zone); err == nil {
			return messages.TimeOf(midnight.Add(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second)), nil
		}
	}
	return 0, fmt.Errorf("Invalid time specification: %q", text)
}

// fieldOf returns the position of a field, or −1. As under Slurm, a shortened name means the first field in
// alphabetical order that begins with it.
func fieldOf(known []recordField, name string) int {
	found := -1
	for i := range known {
		switch full := known[i].name; {
		case strings.EqualFold(full, name):
			return i
		case len(full) <= len(name) || name == "" || !strings.EqualFold(full[:len(name)], name):
		case found < 0 || strings.ToLower(full) < strings.ToLower(known[found].name):
			found = i
		}
	}
	return found
}

// recordColumns returns the columns of a format such as "JobID,State%20".
func recordColumns(format string, known []recordField, parsable bool, delimiter string, last bool) (columns []column, names []string, err error) {
	for part := range strings.SplitSeq(format, ",") {
		if part == "" {
			continue
		}
		name, width, wide := strings.Cut(part, "%")
		if strings.EqualFold(name, "ALL") {
			var all []string
			for i := range known {
				all = append(all, known[i].name)
			}
			of, its, err := recordColumns(strings.Join(all, ","), known, parsable, delimiter, false)
			if err != nil {
				return nil, nil, err
			}
			columns, names = append(columns, of...), append(names, its...)
			continue
		}
		i := fieldOf(known, name)
		if i < 0 {
			return nil, nil, fmt.Errorf("Invalid field requested: %q", name)
		}
		k := column{title: known[i].name, text: known[i].text, width: known[i].width, right: true, after: " "}
		if wide {
			n, err := strconv.Atoi(width)
			if err != nil {
				return nil, nil, fmt.Errorf("Invalid field requested: %q", part)
			}
			k.width, k.right = max(n, -n), n > 0
		}
		if parsable {
			k.width, k.after = 0, delimiter
		}
		columns, names = append(columns, k), append(names, strings.ToLower(known[i].name))
	}
	if len(columns) == 0 {
		return nil, nil, fmt.Errorf("Invalid field requested: %q", format)
	}
	if parsable && last {
		columns[len(columns)-1].after = ""
	}
	return columns, names, nil
}

func (c *call) printRecords(columns []column, rows []row, bare, parsable bool) error {
	if err := c.print(columns, nil, !bare); err != nil {
		return err
	}
	if !bare && !parsable {
		var b strings.Builder
		for i := range columns {
			columns[i].write(&b, strings.Repeat("-", columns[i].width))
		}
		fmt.Fprintln(c.Out, b.String())
	}
	return c.print(columns, rows, false)
}
