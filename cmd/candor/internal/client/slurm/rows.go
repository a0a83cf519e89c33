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

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/hostlist"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// row is one line of output: a job, an element of an array, or all waiting elements of an array.
type row struct {
	jobmsg.JobSummary
	array  messages.JobID // number of the array
	index  string         // index in the array, as "4" or "[5-9]"; "" means the job is not an array
	parts  []int64        // the indices in the field index, ascending
	at     int            // position of an element in its array
	state  state
	code   string // exit code and signal, as Slurm writes them
	why    string
	node   string // name of the node, or a list of names
	host   string // the first node, which runs the script
	began  messages.Time
	ended  messages.Time
	cpu    messages.Duration
	rss    int64
	detail *jobmsg.JobDetail // set only if a field needs it
	group  *group            // the group of nodes, for a row of sinfo
}

func (r *row) id() string {
	if r.index == "" {
		return r.Job.String()
	}
	return r.array.String() + "_" + r.index
}

// number returns the job's number, or an array element's own number.
func (r *row) number() messages.JobID {
	if r.Numbered {
		return r.Job + messages.JobID(r.at)
	}
	return r.Job
}

// nodes returns the number of nodes on which the row's job runs, or for which it asks.
func (r *row) nodes() int { return max(r.Nodes, 1) }

func (r *row) cpus() int { return max(r.CPUs, r.nodes()) }

// ranks returns the number of ranks that the script of the row's job starts. A job of Candor may be one task with
// several ranks. Slurm counts these ranks as tasks.
func (r *row) ranks() int {
	if r.detail == nil {
		return r.nodes()
	}
	return max(jobfile.RanksOf(r.detail.Spec.Stages[0].Script), r.nodes())
}

// resources returns the resources of the row on all its nodes, as Slurm writes them.
func (r *row) resources() string {
	text := fmt.Sprintf("billing=%d,cpu=%d", r.cpus(), r.cpus())
	if r.detail == nil {
		return text
	}
	mebibytes, gpus := r.memoryAndGPUs()
	if gpus > 0 {
		text += fmt.Sprintf(",gres/gpu=%d", gpus)
	}
	if mebibytes > 0 {
		text += fmt.Sprintf(",mem=%dM", mebibytes)
	}
	return text + fmt.Sprintf(",node=%d", r.nodes())
}

// memoryAndGPUs returns the row's memory in mebibytes and its number of GPUs, on all its nodes. For a heterogeneous
// job, it adds up all components.
func (r *row) memoryAndGPUs() (mebibytes int64, gpus int) {
	stages, nodes := r.detail.Spec.Stages[:1], r.nodes()
	if r.detail.Spec.Together {
		stages = r.detail.Spec.Stages
	}
	for i := range stages {
		if r.detail.Spec.Together {
			nodes = stages[i].TaskCount()
		}
		mebibytes, gpus = mebibytes+max(stages[i].Memory, 0)>>20*int64(nodes), gpus+stages[i].GPUs*nodes
	}
	return mebibytes, gpus
}

// said returns the value of a variable of the job's script, or "" if the script has none. If the user names a value,
// such as a partition, the script sets a variable to it.
func (r *row) said(variable string) string {
	if r.detail == nil || len(r.detail.Spec.Stages) == 0 {
		return ""
	}
	_, rest, _ := strings.Cut(r.detail.Spec.Stages[0].Script, " "+variable+"='")
	value, _, _ := strings.Cut(rest, "'")
	return value
}

// qos returns the name of the quality of service that the job's script asks for.
func (r *row) qos() string { return cmp.Or(r.said("SLURM_JOB_QOS"), "normal") }

// among reports whether one of the names is in `list`, whose names are separated by commas.
func among(names []string, list string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(name string) bool { return slices.Contains(names, name) })
}

func (r *row) elapsed(now messages.Time) messages.Duration {
	switch {
	case r.began == 0:
		return 0
	case r.ended != 0:
		return r.ended.Sub(r.began)
	}
	return max(0, now.Sub(r.began))
}

// end returns when the job ended, or when a running job reaches its time limit; 0 means that neither is known.
func (r *row) end() messages.Time {
	if r.ended != 0 || r.began == 0 || r.state.ended() || r.detail == nil || len(r.detail.Spec.Stages) == 0 || r.detail.Spec.Stages[0].TimeLimit == 0 {
		return r.ended
	}
	return r.began.Add(r.detail.Spec.Stages[0].TimeLimit)
}

// target is a job, or some elements of a job, as users write them: 33, 33_4, 33_[1-3].
type target struct {
	job     messages.JobID
	indices []int64 // indices of the elements, ascending; nil means the whole job
	step    string  // in scancel, the number of a step; "" means none
}

func targets(lists ...string) (all []target, err error) {
	for _, list := range lists {
		for _, word := range fields(list) {
			number, index, element := strings.Cut(word, "_")
			number, step, _ := strings.Cut(number, ".") // 33.0 is a step of job 33
			id, err := strconv.ParseUint(number, 10, 64)
			if err != nil || id == 0 {
				return nil, fmt.Errorf("Invalid job id specified: %q", word)
			}
			if element {
				index, step, _ = strings.Cut(index, ".")
			}
			t := target{job: messages.JobID(id), step: step}
			if element && index != "*" {
				if t.indices, err = indicesOf(strings.Trim(index, "[]")); err != nil {
					return nil, fmt.Errorf("Invalid job id specified: %q", word)
				}
				slices.Sort(t.indices)
				t.indices = slices.Compact(t.indices)
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// fields splits a list at commas that are not within brackets.
func fields(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		return depth == 0 && (r == ',' || r == ' ')
	})
}

// maxIndices is the largest number of elements that a command line may name.
const maxIndices = 100_000

// indicesOf reads a list of indices such as "1-3,7". In "0-8:4", 4 is the step from one index to the next.
func indicesOf(text string) (all []int64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, span := strings.Cut(part, "-")
		to, by, steps := strings.Cut(to, ":")
		first, err := strconv.ParseInt(from, 10, 64)
		last, step := first, int64(1)
		if err == nil && span {
			last, err = strconv.ParseInt(to, 10, 64)
		}
		if err == nil && steps {
			step, err = strconv.ParseInt(by, 10, 64)
		}
		if err != nil || last < first || step < 1 || (last-first)/step >= maxIndices-int64(len(all)) {
			return nil, fmt.Errorf("%q is no index", part)
		}
		for i := range (last-first)/step + 1 {
			all = append(all, first+i*step)
		}
	}
	return all, nil
}

type query struct {
	targets  []target
	names    []string
	users    []string
	markets  []string // names of markets; before translate is called, names of partitions
	projects []string // names of projects; before translate is called, names of accounts
	qos      []string // names of quality of service, in the scripts of jobs
	// partitions and accounts are Slurm names that the site knows, but that mean no particular market or project. Jobs
	// whose scripts have these names are also listed.
	partitions, accounts []string
	on                   []string // names of nodes; nil means any
	nodes, cpus          *bounds  // numbers of nodes and processors of a job; nil means any
	states               []state  // nil means jobs in all states
	active               bool
	everybody            bool // jobs of all accounts, if the caller is an operator
	since                messages.Time
	until                messages.Time
	elements             bool // each element of an array gets a row
	tasks                bool // some field needs the list of tasks
	details              bool // some field needs the description of the job
}

// bounds are the smallest and the largest number that an option such as --nnodes allows.
type bounds struct{ least, most int }

// boundsOf reads "4" or "2-8".
func boundsOf(option, text string) (*bounds, error) {
	if text == "" {
		return nil, nil
	}
	low, high, ranged := strings.Cut(text, "-")
	if !ranged {
		high = low
	}
	least, err := strconv.Atoi(low)
	most, errMost := strconv.Atoi(high)
	if err != nil || errMost != nil || least < 0 || most < least {
		return nil, fmt.Errorf("--%s %q: write a number or a range, as in 4 or 2-8", option, text)
	}
	return &bounds{least, most}, nil
}

// nodesOf reads the value of an option that names nodes, such as node1,node[3-5].
func nodesOf(option, text string) ([]string, error) {
	nodes, err := jobfile.NodeList(text)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", option, err)
	}
	return nodes, nil
}

func (b *bounds) allow(n int) bool { return b == nil || n >= b.least && n <= b.most }

// translate replaces names of partitions and accounts by the markets and projects that they mean at the site.
func (q *query) translate(ctx context.Context, s *cli.Session) error {
	if q.markets != nil || q.projects != nil {
		reply, err := ask[market.MarketsReply](ctx, s, messages.VerbMarkets, messages.Empty{})
		if err != nil {
			return err
		}
		q.markets, q.partitions = meanings(q.markets, slurmNames(&reply).Partitions, reply.Markets)
		q.projects, q.accounts = meanings(q.projects, slurmNames(&reply).Accounts, nil)
	}
	q.details = q.details || q.qos != nil || q.partitions != nil || q.accounts != nil
	return nil
}

// meanings looks up names of Slurm in a table of the site. The result `ours` has the names that they have in Candor.
// The result `open` has only the names that stand for no particular market or project; these are also in `ours`.
func meanings(names []string, table jobmsg.Labels, markets []market.MarketStatus) (ours, open []string) {
	for _, name := range names {
		value, listed, ok := table.Lookup(name)
		if listed && value != "" {
			ours = append(ours, value)
			continue
		}
		ours = append(ours, name)
		if ok && !slices.ContainsFunc(markets, func(m market.MarketStatus) bool { return m.Market.Name == name }) {
			open = append(open, name)
		}
	}
	return ours, open
}

// list returns the rows of a query. The job with the smallest number comes first.
func (q *query) list(ctx context.Context, s *cli.Session) (rows []row, err error) {
	if err := q.translate(ctx, s); err != nil {
		return nil, err
	}
	jobs, err := q.jobs(ctx, s)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(jobs, func(a, b jobmsg.JobSummary) int { return int(int64(a.Job) - int64(b.Job)) })
	for i := range jobs {
		if q.users != nil && !slices.Contains(q.users, jobs[i].Account) {
			continue
		}
		of, err := q.rowsOf(ctx, s, &jobs[i])
		if err != nil {
			return nil, err
		}
		for _, r := range of {
			if q.wants(&r) {
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

func (q *query) jobs(ctx context.Context, s *cli.Session) (jobs []jobmsg.JobSummary, err error) {
	r := jobmsg.JobsRequest{All: q.everybody, Active: q.active, Since: q.since, Until: q.until, Limit: cli.MaxPage}
	if len(q.names) == 1 {
		r.Name = q.names[0]
	}
	if len(q.markets) == 1 && q.partitions == nil {
		r.Market = q.markets[0]
	}
	for _, t := range q.targets {
		r.Jobs = append(r.Jobs, t.job)
	}
	for {
		reply, err := cli.ListJobs(ctx, s, &r)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, reply.Jobs...)
		if r.After = reply.Next; !reply.More || r.After == "" {
			break
		}
	}
	missing, err := elementsMissing(ctx, s, q.targets, jobs)
	if err != nil {
		return nil, err
	}
	jobs = append(jobs, missing...)
	more, err := elementsOf(ctx, s, q.targets, jobs)
	if err != nil || len(more) == 0 {
		return jobs, err
	}
	again := *q
	again.targets = more
	elements, err := again.jobs(ctx, s)
	return append(jobs, elements...), err
}

// elementsMissing returns elements that the list `jobs` lacks, for each target that is an array whose elements are
// separate jobs.
func elementsMissing(ctx context.Context, s *cli.Session, targets []target, jobs []jobmsg.JobSummary) (more []jobmsg.JobSummary, err error) {
	for _, t := range targets {
		i := slices.IndexFunc(jobs, func(j jobmsg.JobSummary) bool { return j.Job == t.job })
		if i >= 0 {
			if array, _, is := jobfile.ElementOf(&jobs[i]); !is || array != t.job {
				continue
			}
		}
		all, err := submit.Elements(ctx, s, t.job)
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			same := func(j jobmsg.JobSummary) bool { return j.Job == one.Job }
			if !slices.ContainsFunc(jobs, same) && !slices.ContainsFunc(more, same) {
				more = append(more, one)
			}
		}
	}
	return more, nil
}

// elementsOf handles each target whose number is not in `jobs`. The number may be the number of an element of an array.
// Then elementsOf changes the target to the number of the array and the element's index. It returns the changed targets
// whose arrays are not in `jobs`.
func elementsOf(ctx context.Context, s *cli.Session, targets []target, jobs []jobmsg.JobSummary) (more []target, err error) {
	among := func(id messages.JobID) bool {
		return slices.ContainsFunc(jobs, func(j jobmsg.JobSummary) bool { return j.Job == id })
	}
	for i := range targets {
		t := &targets[i]
		if t.indices != nil || among(t.job) {
			continue
		}
		if is, err := t.resolve(ctx, s); err != nil {
			return nil, err
		} else if is && !among(t.job) {
			more = append(more, *t)
		}
	}
	return more, nil
}

// resolve handles a target that is the job number of an array element. It replaces this number by the number of the
// array and the index of the element. It returns false if the target is no such number.
func (t *target) resolve(ctx context.Context, s *cli.Session) (is bool, err error) {
	array, at, is, err := cli.Element(ctx, s, t.job)
	if is {
		t.job, t.indices = array.Job, []int64{array.Array.At(at)}
	}
	return is, err
}

// wants reports whether a row meets the conditions of a query that the site has not already checked.
func (q *query) wants(r *row) bool {
	return (q.states == nil || slices.Contains(q.states, r.state)) &&
		(q.names == nil || slices.Contains(q.names, r.Name)) &&
		(q.markets == nil || slices.Contains(q.markets, r.Market) || among(q.partitions, r.said("SLURM_JOB_PARTITION"))) &&
		(q.projects == nil || slices.Contains(q.projects, r.Payer) || among(q.accounts, r.said("SLURM_JOB_ACCOUNT"))) &&
		(q.qos == nil || among(q.qos, r.qos())) &&
		q.nodes.allow(r.nodes()) && q.cpus.allow(r.cpus()) && q.runsOn(r) &&
		q.has(r)
}

// runsOn reports whether the row runs, or ran, on one of the nodes that the user named. If the user named no node, it
// returns true.
func (q *query) runsOn(r *row) bool {
	if q.on == nil {
		return true
	}
	hosts, _ := expandHosts(r.node) // a row without nodes is on none of them
	return slices.ContainsFunc(hosts, func(node string) bool { return slices.Contains(q.on, node) })
}

// The method `has` reports whether the row belongs to a job that the user named. If the user named no job, it returns
// true.
func (q *query) has(r *row) bool {
	if q.targets == nil {
		return true
	}
	return slices.ContainsFunc(q.targets, func(t target) bool {
		return (t.job == r.Job || r.index != "" && t.job == r.array) && (t.indices == nil || r.parts == nil && r.Array != nil || slices.ContainsFunc(t.indices, r.includes))
	})
}

// includes reports whether the row stands for the element with an index.
func (r *row) includes(index int64) bool {
	_, is := slices.BinarySearch(r.parts, index)
	return is
}

// chosen returns the jobs and array elements for which the rows stand. If the user named elements of an array, it
// returns only these.
func (q *query) chosen(rows []row) (list []target) {
	for i := range rows {
		t := target{job: rows[i].Job}
		if rows[i].Array != nil {
			t.indices = q.indicesOf(&rows[i])
		}
		if last := len(list) - 1; last >= 0 && list[last].job == t.job {
			list[last].indices = append(list[last].indices, t.indices...)
			slices.Sort(list[last].indices)
		} else {
			list = append(list, t)
		}
	}
	return list
}

// indicesOf returns the indices of those elements of a row that the user named. If the user named none, it returns all
// elements of the row. It returns nil if the row stands for the whole array.
func (q *query) indicesOf(r *row) (all []int64) {
	for _, t := range q.targets {
		switch {
		case t.job != r.Job:
		case t.indices == nil:
			return slices.Clone(r.parts)
		default:
			all = append(all, t.indices...)
		}
	}
	if len(all) == 0 {
		return slices.Clone(r.parts)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if r.parts != nil {
		all = slices.DeleteFunc(all, func(i int64) bool { return !r.includes(i) })
	}
	return all
}

func (q *query) rowsOf(ctx context.Context, s *cli.Session, j *jobmsg.JobSummary) ([]row, error) {
	whole := row{JobSummary: *j, array: j.Job, state: stateOf(j), began: j.Started, ended: j.Ended}
	if array, index, is := jobfile.ElementOf(j); is {
		whole.array, whole.index, whole.parts = array, strconv.FormatInt(index, 10), []int64{index}
	}
	whole.code, whole.why = exit(int(max(j.ExitCode, 0)), j.Reason, whole.state), reasonOf(j, whole.state)
	if q.details {
		detail, err := ask[jobmsg.JobDetail](ctx, s, messages.VerbJob, jobmsg.JobRequest{Job: j.Job})
		if err != nil {
			return nil, err
		}
		whole.detail = &detail
	}
	if j.Array == nil || !q.elements {
		if q.tasks || whole.state == failed && j.Tasks == 1 || whole.state == running && j.Nodes > 1 {
			if err := whole.addTask(ctx, s); err != nil {
				return nil, err
			}
		}
		return []row{whole}, nil
	}
	return elements(ctx, s, &whole)
}

// addTask adds the nodes, processor time and memory of the job's tasks to the job's row.
func (r *row) addTask(ctx context.Context, s *cli.Session) error {
	reply, err := ask[jobmsg.TasksReply](ctx, s, messages.VerbTasks, jobmsg.TasksRequest{Job: r.Job, Limit: min(r.nodes(), cli.MaxPage)})
	if err != nil || len(reply.Tasks) == 0 {
		return err
	}
	t := &reply.Tasks[0]
	r.node, r.host, r.cpu, r.rss = nodeOf(t), nodeOf(t), t.CPU, t.MaxRSS
	if r.Nodes > 1 {
		var nodes []string
		r.cpu = 0
		for i := range reply.Tasks {
			r.cpu, r.rss = r.cpu+reply.Tasks[i].CPU, max(r.rss, reply.Tasks[i].MaxRSS)
			if name := nodeOf(&reply.Tasks[i]); name != "" {
				nodes = append(nodes, name)
			}
		}
		r.node = hostlist.Join(nodes)
	}
	gathers := func(t jobmsg.TaskStatus) bool { return t.State == "Gathering" || t.State == "Pending" }
	switch {
	case r.Tasks == 1 && r.state == failed:
		r.say(t)
	case r.state == running && !slices.ContainsFunc(reply.Tasks, func(t jobmsg.TaskStatus) bool { return !gathers(t) }):
		r.state, r.began = pending, 0 // the field Running of the job also counts nodes that wait for the others
		r.why = reasonOf(&r.JobSummary, pending)
	}
	return nil
}

// nodeOf returns the node of a task, or "" if the task waits. A task that waits again still has the node of its last
// attempt in its status.
func nodeOf(t *jobmsg.TaskStatus) messages.Name {
	if t.State == "Pending" || t.State == "Gathering" {
		return ""
	}
	return t.Node
}

func (r *row) say(t *jobmsg.TaskStatus) {
	r.state = taskState(t, r.state)
	code := 0
	if t.ExitCode != nil {
		code = *t.ExitCode
	}
	r.code, r.why = exit(code, t.Reason, r.state), reasonOf(&r.JobSummary, r.state)
}

// elements returns the rows of an array: one for each started element, and one for all others.
func elements(ctx context.Context, s *cli.Session, job *row) (rows []row, err error) {
	seen, stage := map[int64]bool{}, 0
	for r := (jobmsg.TasksRequest{Job: job.Job, Stage: &stage, Limit: cli.MaxPage}); ; {
		reply, err := ask[jobmsg.TasksReply](ctx, s, messages.VerbTasks, r)
		if err != nil {
			return nil, err
		}
		for i := range reply.Tasks {
			t := &reply.Tasks[i]
			e := *job
			e.at = int(t.Index)
			e.parts = []int64{t.Array}
			e.index, e.node, e.host, e.began, e.ended, e.cpu, e.rss = strconv.FormatInt(t.Array, 10), nodeOf(t), nodeOf(t), t.Claimed, t.Ended, t.CPU, t.MaxRSS
			if e.say(t); e.state == pending {
				continue
			}
			seen[t.Array] = true
			rows = append(rows, e)
		}
		if r.From = reply.Next; !reply.More || r.From == 0 {
			break
		}
	}
	var rest []int64
	for i := range job.Array.Indices {
		if !seen[i] {
			rest = append(rest, i)
		}
	}
	if len(rest) == 0 {
		return rows, nil
	}
	waiting := *job
	waiting.parts = rest
	if waiting.index, waiting.began, waiting.ended = "["+ranges(rest)+"]", 0, job.Ended; !job.state.ended() {
		waiting.state = pending
		waiting.why = reasonOf(&job.JobSummary, pending)
	}
	return append([]row{waiting}, rows...), nil
}

// ranges writes a list of indices in short form: "0-3,7".
func ranges(all []int64) string {
	var b strings.Builder
	for i := 0; i < len(all); {
		k := i
		for k+1 < len(all) && all[k+1] == all[k]+1 {
			k++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(all[i], 10))
		if k > i {
			b.WriteString("-" + strconv.FormatInt(all[k], 10))
		}
		i = k + 1
	}
	return b.String()
}

// clock writes a duration as squeue does: 1-02:03:04, 2:03:04 or 3:04.
func clock(d messages.Duration) string {
	s := int64(d.Std() / time.Second)
	days, hours, minutes, seconds := s/86400, s/3600%24, s/60%60, s%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, hours, minutes, seconds)
	case hours > 0:
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, seconds)
	}
	return fmt.Sprintf("%d:%02d", minutes, seconds)
}

// longClock writes a duration as sacct does: 1-02:03:04 or 02:03:04.
func longClock(d messages.Duration) string {
	s := int64(d.Std() / time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if days := s / 86400; days > 0 {
		return fmt.Sprintf("%d-%s", days, text)
	}
	return text
}

func (c *call) instant(t messages.Time, none string) string {
	if t == 0 {
		return none
	}
	return t.Std().In(c.Zone).Format("2006-01-02T15:04:05")
}
