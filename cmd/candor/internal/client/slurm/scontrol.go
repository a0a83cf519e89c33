package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

func scontrol(ctx context.Context, c *call, args []string) error {
	f := c.flags
	f.CountP("details", "d", "")
	line := f.BoolP("oneliner", "o", false, "")
	c.clusterFlags()
	c.textOnly()
	c.ignore(nil, []string{"all/a", "quiet/Q", "verbose/v", "hide", "future/F"})
	words, done, err := c.parse(args)
	if done || err != nil {
		return err
	}
	if len(words) == 0 {
		return errors.New("too few arguments for keyword: use show, hold, release, requeue, update, write or getaddrs")
	}
	if is, err := c.showHosts(words); is {
		return err
	}
	if words[0] == "getaddrs" {
		return c.addresses(ctx, words[1:])
	}
	s, err := c.dial()
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	switch verb := words[0]; verb {
	case "show":
		return c.show(ctx, s, words[1:], *line)
	case "ping":
		fmt.Fprintf(c.Out, "Slurmctld(primary) at %s is UP\n", s.Site)
		return nil
	case "hold", "uhold":
		return steer(ctx, s, job.VerbHold, words[1:])
	case "release":
		return steer(ctx, s, job.VerbRelease, words[1:])
	case "requeue":
		return requeue(ctx, s, words[1:])
	case "update":
		return c.update(ctx, s, words[1:])
	case "write":
		return c.writeScript(ctx, s, words[1:])
	}
	return fmt.Errorf("invalid keyword: %s: Candor has show, ping, hold, release, requeue, update, write and getaddrs", words[0])
}

// writeScript writes the script of a job, as it was submitted, to a file or to standard output.
func (c *call) writeScript(ctx context.Context, s *cli.Session, words []string) error {
	if len(words) < 2 || len(words) > 3 || words[0] != "batch_script" {
		return errors.New("write: Candor has scontrol write batch_script JOB [FILE]")
	}
	list, err := someTargets(ctx, s, words[1:2])
	if err != nil {
		return err
	}
	detail, err := ask[job.JobDetail](ctx, s, messages.VerbJob, job.JobRequest{Job: list[0].job})
	if err != nil {
		return err
	}
	script := ""
	if len(detail.Spec.Stages) > 0 {
		script = jobfile.Submitted(detail.Spec.Stages[0].Script)
	}
	if script == "" {
		return fmt.Errorf("job script retrieval failed: job %v has no script", list[0].job)
	}
	file := "slurm-" + words[1] + ".sh"
	if len(words) == 3 {
		file = words[2]
	}
	if file == "-" {
		_, err = io.WriteString(c.Out, script)
		return err
	}
	if err := os.WriteFile(file, []byte(script), 0o666); err != nil {
		return fmt.Errorf("failed to open file %s: %w", file, err)
	}
	fmt.Fprintf(c.Out, "batch script for job %s written to %s\n", words[1], file)
	return nil
}

// addresses prints the network addresses of nodes, whose names are also names of hosts. As under Slurm, the number of a
// port follows each address; nothing listens at this port.
func (c *call) addresses(ctx context.Context, words []string) error {
	if len(words) != 1 {
		return errors.New("getaddrs: name a list of nodes, as in scontrol getaddrs n[1-3]")
	}
	hosts, err := expandHosts(words[0])
	if err != nil {
		return err
	}
	for _, host := range hosts {
		found, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			return fmt.Errorf("getaddrs: %s is not the name of a host: %w", host, err)
		}
		fmt.Fprintf(c.Out, "%s: %s\n", host, net.JoinHostPort(found[0], "6818"))
	}
	return nil
}

// someTargets returns the jobs and array elements that the words of a command name, at least one.
func someTargets(ctx context.Context, s *cli.Session, words []string) (list []target, err error) {
	if list, err = targets(words...); err == nil && len(list) == 0 {
		err = errors.New("too few arguments for keyword")
	}
	if err != nil {
		return nil, err
	}
	return known(ctx, s, list)
}

// known replaces the targets in a list by targets that the site knows. The number of a target may be the job number of
// one element of an array. Then the target becomes the array's number with the index of this element. If the elements
// of a target's array are jobs of their own, the target is replaced by these jobs.
func known(ctx context.Context, s *cli.Session, list []target) (all []target, err error) {
	var ids []messages.JobID
	for _, t := range list {
		ids = append(ids, t.job)
	}
	if len(ids) == 0 {
		return list, nil
	}
	reply, err := cli.ListJobs(ctx, s, &job.JobsRequest{Jobs: ids, All: true, Limit: cli.MaxPage})
	if err != nil || reply.More {
		return list, err
	}
	if _, err = elementsOf(ctx, s, list, reply.Jobs); err != nil {
		return nil, err
	}
	for _, t := range list {
		i := slices.IndexFunc(reply.Jobs, func(j job.JobSummary) bool { return j.Job == t.job })
		if i < 0 {
			all = append(all, t)
			continue
		}
		some, err := apartFrom(ctx, s, t, &reply.Jobs[i])
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// apartFrom handles a target that is an array. If the elements of the array are jobs of their own, it returns the jobs
// of the elements that the target names. Otherwise it returns the target.
func apartFrom(ctx context.Context, s *cli.Session, t target, job *job.JobSummary) (all []target, err error) {
	if array, _, is := jobfile.ElementOf(job); !is || array != t.job {
		return []target{t}, nil
	}
	elements, err := submit.Elements(ctx, s, t.job)
	for i := range elements {
		if _, index, _ := jobfile.ElementOf(&elements[i]); t.indices == nil || slices.Contains(t.indices, index) {
			all = append(all, target{job: elements[i].Job, step: t.step})
		}
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("Invalid job id specified: array %v has no such element", t.job)
	}
	return all, err
}

func requeue(ctx context.Context, s *cli.Session, words []string) error {
	list, err := someTargets(ctx, s, words)
	if err != nil {
		return err
	}
	for _, t := range list {
		requests := []job.RequeueRequest{{Job: t.job}}
		if t.indices != nil {
			detail, err := ask[job.JobDetail](ctx, s, messages.VerbJob, job.JobRequest{Job: t.job})
			if err != nil {
				return err
			}
			positions, err := t.positions(&detail)
			if err != nil {
				return err
			}
			requests = nil
			for i := range positions.Indices {
				requests = append(requests, job.RequeueRequest{Job: t.job, Stage: new(int), Task: new(uint32(i))})
			}
		}
		for _, r := range requests {
			if _, err := ask[job.RequeueReply](ctx, s, job.VerbRequeue, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func steer(ctx context.Context, s *cli.Session, verb string, words []string) error {
	list, err := someTargets(ctx, s, words)
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.indices != nil {
			return errors.New("elements of an array cannot be held or released alone: name the job")
		}
		if _, err := ask[job.HoldReply](ctx, s, verb, job.JobRequest{Job: t.job}); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) show(ctx context.Context, s *cli.Session, words []string, line bool) error {
	if len(words) == 0 {
		return errors.New("too few arguments for keyword: show")
	}
	kind, name := words[0], ""
	if before, after, given := strings.Cut(kind, "="); given {
		kind, name = before, after
	} else if len(words) > 1 {
		name = words[1]
	}
	kind = strings.ToLower(kind)
	if len(words) > 2 {
		return fmt.Errorf("too many arguments for keyword: show %s: separate names by commas", kind)
	}
	switch {
	case strings.HasPrefix("config", kind):
		return c.showConfig(s)
	case strings.HasPrefix("partitions", kind):
		return c.showPartitions(ctx, s, name, line)
	case strings.HasPrefix("jobs", kind), kind == "jobid":
		return c.showJobs(ctx, s, name, line)
	case strings.HasPrefix("nodes", kind):
		return c.showNodes(ctx, s, name, line)
	}
	return fmt.Errorf("invalid entity: %s: Candor has config, hostlist, hostnames, jobs, nodes and partitions", kind)
}

// showConfig shows the lines of Slurm's configuration that programs read. MinJobAge is how long squeue shows ended
// jobs.
func (c *call) showConfig(s *cli.Session) error {
	fmt.Fprintf(c.Out, "Configuration data as of %s\n", c.Now().In(c.Zone).Format("2006-01-02T15:04:05"))
	for _, kv := range [][2]string{
		{"AccountingStorageType", "accounting_storage/slurmdbd"}, {"AcctGatherNodeFreq", "30 sec"}, {"ClusterName", s.Site},
		{"KillWait", "30 sec"}, {"MaxArraySize", "1000001"}, {"MaxJobCount", "1000000"},
		{"MinJobAge", fmt.Sprintf("%d sec", int(recently.Seconds()))}, {"SchedulerTimeSlice", "30 sec"}, {"SLURM_VERSION", strings.TrimPrefix(version, "slurm ")},
	} {
		fmt.Fprintf(c.Out, "%-23s = %s\n", kv[0], kv[1])
	}
	return nil
}

// entity writes the description of one object, such as a node. It consists of words of the form "Key=Value". If `line`
// is true, they are all on one line, otherwise on several lines.
func (c *call) entity(line bool, lines ...string) {
	if line {
		fmt.Fprintln(c.Out, oneLine(strings.Join(lines, " ")))
		return
	}
	for i, l := range lines {
		if i > 0 {
			l = "   " + l
		}
		fmt.Fprintln(c.Out, oneLine(l))
	}
	fmt.Fprintln(c.Out)
}

func (c *call) showPartitions(ctx context.Context, s *cli.Session, name string, line bool) error {
	markets, nodes, err := siteOf(ctx, s, fields(name)...)
	if err != nil {
		return err
	}
	for _, m := range markets {
		limit := "UNLIMITED"
		if m.Market.TimeLimit > 0 {
			limit = longClock(m.Market.TimeLimit)
		}
		cpus, of := m.capacity(nodes)
		c.entity(line, "PartitionName="+m.Market.Name,
			"AllowGroups=ALL "+accountsOf(&m.Market)+" AllowQos=ALL",
			fmt.Sprintf("Default=%s DefaultTime=%s MaxTime=%s", yes(m.first), limit, limit),
			"Nodes="+strings.Join(of, ","),
			fmt.Sprintf("State=UP TotalCPUs=%d TotalNodes=%d MaxNodes=UNLIMITED OverSubscribe=NO", cpus, len(of)),
			"Mechanism="+m.Market.Mechanism)
	}
	if name != "" && len(markets) == 0 {
		return fmt.Errorf("Partition %s not found", name)
	}
	return nil
}

func yes(so bool) string {
	if so {
		return "YES"
	}
	return "NO"
}

func (c *call) showNodes(ctx context.Context, s *cli.Session, name string, line bool) error {
	markets, nodes, err := siteOf(ctx, s)
	if err != nil {
		return err
	}
	named, err := jobfile.NodeList(name)
	if err != nil {
		return err
	}
	for _, one := range named {
		if !slices.ContainsFunc(nodes, func(n market.NodeStatus) bool { return n.Node == one }) {
			return fmt.Errorf("Node %s not found", one)
		}
	}
	for i := range nodes {
		n, all, used, of := &nodes[i], 0, 0, []string{}
		if name != "" && !slices.Contains(named, n.Node) {
			continue
		}
		for k := range markets {
			if markets[k].slotsOn(n) > 0 {
				cpus, busy := markets[k].cpusOn(n)
				all, used, of = max(all, cpus), max(used, busy), append(of, markets[k].Market.Name)
			}
		}
		c.entity(line, "NodeName="+n.Node, fmt.Sprintf("CPUAlloc=%d CPUTot=%d", used, all), "AvailableFeatures="+features(n), "ActiveFeatures="+features(n), "Gres="+gres(n),
			"RealMemory="+memory(n), "State="+strings.ToUpper(nodeState(n)), "Partitions="+strings.Join(of, ","), "Reason="+nodeReason(n))
	}
	return nil
}

// showJobs shows, for each job, the fields that programs read from the output of scontrol. It adds Candor's fields
// Budget, Charged, Shares and Price.
func (c *call) showJobs(ctx context.Context, s *cli.Session, name string, line bool) error {
	q := query{everybody: true, active: name == "", tasks: true, details: true, elements: true}
	var err error
	if name != "" {
		if q.targets, err = targets(name); err != nil || len(q.targets) == 0 {
			return cmp.Or(err, errors.New("Invalid job id specified"))
		}
	}
	rows, err := q.list(ctx, s)
	if err != nil {
		return err
	}
	if len(rows) == 0 && name != "" {
		return errors.New("slurm_load_jobs error: Invalid job id specified")
	}
	if len(rows) == 0 {
		fmt.Fprintln(c.Out, "No jobs in the system")
	}
	markets, err := ask[market.MarketsReply](ctx, s, messages.VerbMarkets, messages.Empty{})
	if err != nil {
		return err
	}
	for i := range rows {
		c.entity(line, append(c.jobLines(&rows[i]), "Price="+price(markets.Markets, rows[i].Market))...)
	}
	return nil
}

// accountsOf returns whose jobs a market takes, as scontrol show partition does: DenyAccounts=bob, or
// AllowAccounts=physics, or AllowAccounts=ALL.
func accountsOf(m *market.Market) string {
	switch {
	case len(m.Deny) > 0:
		return "DenyAccounts=" + strings.Join(m.Deny, ",")
	case len(m.Allow) > 0:
		return "AllowAccounts=" + strings.Join(m.Allow, ",")
	}
	return "AllowAccounts=ALL"
}

// This function returns the present price of a slot-hour in credits, for each class of a market: "cpu:72/h". In some
// markets, longer jobs pay more for a slot-second. For such a market, the function returns the price of a slot-second
// for one job, the job that sets the price: "cpu:0.02". If a mechanism has no price, the text has a word instead of a
// price.
func price(markets []market.MarketStatus, name messages.Name) string {
	var classes []string
	for _, m := range markets {
		for _, t := range m.Tariffs {
			switch {
			case m.Market.Name != name:
			case t.Sealed:
				classes = append(classes, t.Class+":sealed")
			case t.OwnBid:
				classes = append(classes, t.Class+":bid")
			case t.Contention != nil:
				classes = append(classes, fmt.Sprintf("%s:contended:%.3f", t.Class, *t.Contention))
			case t.Length > 0:
				classes = append(classes, t.Class+":"+t.Price.String())
			default:
				classes = append(classes, t.Class+":"+messages.Short3(3600*t.Price.Float())+"/h")
			}
		}
	}
	return strings.Join(classes, ",")
}

// dependency says what a waiting job waits for, in the form of sbatch: "afterok:7:8,after:9".
func dependency(s *job.JobSpec, now state) string {
	if now != pending || len(s.Predecessors()) == 0 {
		return "(null)"
	}
	var parts []string
	add := func(kind string, jobs []messages.JobID) {
		if len(jobs) == 0 {
			return
		}
		for _, id := range jobs {
			kind += ":" + id.String()
			if m := s.StartDelay; m > 0 && strings.HasPrefix(kind, "after:") {
				kind += "+" + strconv.FormatInt(int64(m.Std()/time.Minute), 10)
			}
		}
		parts = append(parts, kind)
	}
	add("afterok", s.AfterOK)
	add("afternotok", s.AfterFailed)
	add("afterany", s.AfterJobs)
	add("after", s.AfterStart)
	if s.AfterEach != 0 {
		add("aftercorr", []messages.JobID{s.AfterEach})
	}
	if s.AfterAny {
		return strings.Join(parts, "?")
	}
	return strings.Join(parts, ",")
}

func (c *call) jobLines(r *row) []string {
	now, spec := messages.TimeOf(c.Now()), &r.detail.Spec
	limit := "UNLIMITED"
	if t := spec.Stages[0].TimeLimit; t > 0 {
		limit = longClock(t)
	}
	head := fmt.Sprintf("JobId=%v", r.Job)
	if r.index != "" {
		head = fmt.Sprintf("JobId=%v ArrayJobId=%v ArrayTaskId=%s", r.number(), r.array, r.index)
	}
	shares := make([]string, len(r.detail.Shares))
	for i, s := range r.detail.Shares {
		shares[i] = fmt.Sprintf("%s:%.3f", s.Class, s.Received)
	}
	requeue, restarts := 1, 0
	if spec.Stages[0].Attempts == 1 {
		requeue = 0
	}
	for _, s := range r.detail.Stages {
		restarts += s.Retried
	}
	in, out, errs := jobfile.Files(spec.Stages[0].Script, func(variable string) string {
		return map[string]string{"CANDOR_JOB": r.Job.String(), "SLURM_JOB_ID": r.number().String(), "CANDOR_JOB_NAME": r.Name, "CANDOR_ARRAY_INDEX": r.index, "CANDOR_NODE": r.host}[variable]
	})
	lines := []string{
		head + " JobName=" + r.Name,
		c.owner(r.Account) + " MCS_label=N/A",
		"Priority=0 Nice=0 Account=" + r.Payer + " QOS=" + r.qos(),
		fmt.Sprintf("JobState=%s Reason=%s Dependency=%s", r.state.long, r.why, dependency(spec, r.state)),
		fmt.Sprintf("Requeue=%d Restarts=%d BatchFlag=1 Reboot=0 ExitCode=%s", requeue, restarts, r.code),
		fmt.Sprintf("RunTime=%s TimeLimit=%s TimeMin=N/A", longClock(r.elapsed(now)), limit),
		fmt.Sprintf("SubmitTime=%s EligibleTime=%s", c.instant(r.Submitted, "Unknown"), c.instant(r.Submitted, "Unknown")),
		fmt.Sprintf("StartTime=%s EndTime=%s Deadline=N/A", c.instant(r.began, "Unknown"), c.instant(r.end(), "Unknown")),
		"Partition=" + r.Market,
		"NodeList=" + r.node + " BatchHost=" + r.host,
		r.sizes(),
		"ReqTRES=" + r.resources(),
		"Command=" + cmp.Or(jobfile.PathOf(spec.Stages[0].Script), "(null)"),
		"WorkDir=" + spec.Dir,
		"Comment=" + spec.Comment,
	}
	if out+errs != "" {
		lines = append(lines, "StdErr="+within(spec.Dir, errs), "StdIn="+within(spec.Dir, cmp.Or(in, os.DevNull)), "StdOut="+within(spec.Dir, out))
	}
	return append(lines, fmt.Sprintf("Budget=%v Charged=%v Shares=%s", r.Budget, r.Charged, strings.Join(shares, ",")))
}

// The function `within` returns the path of a file. A relative name is relative to dir.
func within(dir, file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

func (r *row) sizes() string {
	return fmt.Sprintf("NumNodes=%d NumCPUs=%d NumTasks=%d CPUs/Task=%d", r.nodes(), r.cpus(), r.ranks(), max(r.cpus()/r.ranks(), 1))
}

// partition is a market of the site.
type partition struct {
	market.MarketStatus
	first bool // this is the first market of the site
}

// siteOf returns the nodes of the site, and its markets. If the list of partitions is not empty, siteOf returns only the
// markets that the list means.
func siteOf(ctx context.Context, s *cli.Session, partitions ...string) (markets []partition, nodes []market.NodeStatus, err error) {
	m, err := ask[market.MarketsReply](ctx, s, messages.VerbMarkets, messages.Empty{})
	if err != nil {
		return nil, nil, err
	}
	named, open := meanings(partitions, slurmNames(&m).Partitions, m.Markets)
	for i, one := range m.Markets {
		if len(partitions) == 0 || len(open) > 0 || slices.Contains(named, one.Market.Name) {
			markets = append(markets, partition{one, i == 0})
		}
	}
	n, err := ask[market.NodesReply](ctx, s, messages.VerbNodes, messages.Empty{})
	return markets, n.Nodes, err
}

// capacity returns the number of processors that a market sells, and their nodes.
func (p *partition) capacity(nodes []market.NodeStatus) (cpus int, of []string) {
	for i := range nodes {
		if p.slotsOn(&nodes[i]) > 0 {
			n, _ := p.cpusOn(&nodes[i])
			cpus, of = cpus+n, append(of, nodes[i].Node)
		}
	}
	return cpus, of
}

func (p *partition) slotsOn(n *market.NodeStatus) (slots int) {
	if len(p.Market.Nodes) > 0 && !slices.Contains(p.Market.Nodes, n.Node) {
		return 0
	}
	for _, s := range n.Slots {
		if slices.Contains(p.Market.Classes, s.Class) {
			slots += s.Slots
		}
	}
	return slots
}

func slotsOf(all []job.ClassSlots) (n int) {
	for _, s := range all {
		n += s.Slots
	}
	return n
}

func nodeState(n *market.NodeStatus) string {
	all, used := slotsOf(n.Slots), slotsOf(n.Used)
	switch {
	case n.State == "Draining" && n.Window != 0:
		return "maint"
	case (n.State == "Draining" || agent.Paused(n.Abilities) != "" && n.State == "Up") && used > 0:
		return "draining"
	case n.State == "Draining", n.State == "Quarantined", n.State == "Up" && agent.Paused(n.Abilities) != "":
		return "drained"
	case n.State != "Up":
		return "down"
	case used == 0:
		return "idle"
	case used < all:
		return "mixed"
	}
	return "allocated"
}

// nodeReason returns why a node is down or takes no tasks. For a node that is up, it may say that tasks fail there.
func nodeReason(n *market.NodeStatus) string {
	down := map[string]string{"Lost": "Not responding", "Stopped": "Agent stopped"}[n.State]
	if down != "" && n.Reason != "" {
		return down + "; " + n.Reason
	}
	return down + n.Reason
}

func sacctmgr(ctx context.Context, c *call, args []string) error {
	f := c.flags
	bare := f.BoolP("noheader", "n", false, "")
	parsable := f.BoolP("parsable", "p", false, "")
	parsable2 := f.BoolP("parsable2", "P", false, "")
	c.ignore(nil, []string{"associations/s", "immediate/i", "quiet/Q", "oneliner/o", "readonly/r", "verbose/v"})
	words, done, err := c.parse(args)
	if done || err != nil {
		return err
	}
	if len(words) < 2 || !strings.HasPrefix("list", words[0]) && !strings.HasPrefix("show", words[0]) {
		return errors.New("only \"list\" and \"show\" are possible here: change accounts with \"candor account\" and \"candor project\"")
	}
	kind, format := strings.ToLower(words[1]), "account%10,user%10"
	qos := kind == "qos"
	switch {
	case qos:
		format = "name%10"
	case !slices.ContainsFunc([]string{"users", "accounts", "associations", "clusters"}, func(known string) bool { return len(kind) > 3 && strings.HasPrefix(known, kind) }):
		return fmt.Errorf("invalid entity: %s: Candor has account, association, cluster, qos and user", kind)
	}
	var users, only []string // if not empty, only these users and accounts are listed
	for _, w := range words[2:] {
		key, value, given := strings.Cut(w, "=")
		switch key = strings.ToLower(key); {
		case key == "format" && given:
			format = value
		case given && strings.HasPrefix("users", key), given && strings.HasPrefix("names", key) && strings.HasPrefix("users", kind):
			users = append(users, strings.Split(value, ",")...)
		case given && strings.HasPrefix("accounts", key), given && strings.HasPrefix("names", key) && strings.HasPrefix("accounts", kind):
			only = append(only, strings.Split(value, ",")...)
		case !given && key != "where" && !strings.HasPrefix(key, "with") && strings.HasPrefix("users", kind):
			users = append(users, strings.Split(w, ",")...)
		case !given && key != "where" && !strings.HasPrefix(key, "with") && strings.HasPrefix("accounts", kind):
			only = append(only, strings.Split(w, ",")...)
		}
	}
	s, reply, err := c.accounts(ctx)
	if err != nil {
		return err
	}
	fixed := func(text string) func(*row) string { return func(*row) string { return text } }
	known := []recordField{
		{"Account", 10, func(r *row) string { return r.Payer }}, {"User", 10, fixed(s.Account)}, {"Cluster", 10, fixed(s.Site)},
		{"DefaultAccount", 14, fixed(s.Account)}, {"Def Acct", 10, fixed(s.Account)}, {"Admin", 10, fixed("None")}, {"AdminLevel", 10, fixed("None")},
		{"QOS", 10, fixed("normal")}, {"Name", 10, fixed("normal")}, {"Partition", 10, fixed("")}, {"Balance", 12, func(r *row) string { return r.Budget.String() }},
	}
	columns, _, err := recordColumns(format, known, *parsable || *parsable2, "|", *parsable2)
	if err != nil {
		return err
	}
	var rows []row
	for _, a := range reply.Accounts {
		if (users == nil || slices.Contains(usersOf(users, s.Account), s.Account)) && (only == nil || slices.Contains(only, a.Account)) {
			rows = append(rows, row{JobSummary: job.JobSummary{Payer: a.Account, Budget: a.Available}})
		}
	}
	if qos { // all jobs have Slurm's default quality of service
		rows = []row{{}}
	}
	return c.printRecords(columns, rows, *bare, *parsable || *parsable2)
}

// accounts asks the bank for the caller's accounts. The returned session is already closed.
func (c *call) accounts(ctx context.Context) (s *cli.Session, reply money.AccountsReply, err error) {
	if s, err = c.dial(); err != nil {
		return nil, reply, err
	}
	defer s.Bus.Close()
	reply, err = cli.Call[money.AccountsReply](ctx, s, messages.Bank, messages.VerbAccounts, money.AccountsRequest{})
	return s, reply, err
}

// sshare lists the credits that the accounts have left, in place of Slurm's shares.
func sshare(ctx context.Context, c *call, args []string) error {
	f := c.flags
	bare := f.BoolP("noheader", "h", false, "")
	parsable := f.BoolP("parsable", "p", false, "")
	parsable2 := f.BoolP("parsable2", "P", false, "")
	format := f.StringP("format", "o", "Account%20,User%10,Balance%14,Held%14", "")
	c.clusterFlags()
	only := f.StringSliceP("accounts", "A", nil, "")
	users := f.StringSliceP("users", "u", nil, "")
	c.ignore(nil, []string{"all/a", "long/l", "partition/m", "Users/U"})
	if _, done, err := c.parse(args); done || err != nil {
		return err
	}
	s, reply, err := c.accounts(ctx)
	if err != nil {
		return err
	}
	known := []recordField{
		{"Account", 20, func(r *row) string { return r.Payer }}, {"User", 10, func(*row) string { return s.Account }},
		{"Balance", 14, func(r *row) string { return r.Budget.String() }}, {"Held", 14, func(r *row) string { return r.Charged.String() }},
	}
	columns, _, err := recordColumns(*format, known, *parsable || *parsable2, "|", *parsable2)
	if err != nil {
		return err
	}
	var rows []row
	for _, a := range reply.Accounts {
		if (*only == nil || slices.Contains(*only, a.Account)) && (*users == nil || slices.Contains(usersOf(*users, s.Account), s.Account)) {
			rows = append(rows, row{JobSummary: job.JobSummary{Payer: a.Account, Budget: a.Balance, Charged: a.Reserved}})
		}
	}
	return c.printRecords(columns, rows, *bare, *parsable || *parsable2)
}
