package jobfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// Names are Slurm names in a script. The site's tables say what they mean in Candor.
type Names struct {
	Partition   string // one partition, or a list with commas
	Account     string
	QOS         string
	Reservation string
	Cluster     string // one cluster, or a list with commas
	GRES        string // generic resources other than GPUs, as in tmp:50G,shard:2
	// Hardware says that the script names features of nodes, or a type of GPUs.
	Hardware bool
	// Singleton asks that the job begins only after earlier jobs of the account with the same name.
	Singleton bool
}

// nameFlags maps options of sbatch whose value is a Slurm name to our hidden options.
var nameFlags = map[string]string{"partition": "slurm-partition", "account": "slurm-account", "qos": "slurm-qos", "reservation": "slurm-reservation",
	"clusters": "slurm-cluster", "cluster": "slurm-cluster"}

func (o *Options) nameOptions() {
	name := func(flag string, fields func(*Job) []*string) {
		o.hidden(flag, func(job *Job, text string) error {
			for _, field := range fields(job) {
				*field = text
			}
			return nil
		})
	}
	// This rule sets the partition and the market. A job may name a partition and an account of Slurm. The method
	// Translate finds the market that replaces the partition, and the project that replaces the account. Until then,
	// the fields Market and Project have the names of the partition and the account.
	name("slurm-partition", func(j *Job) []*string { return []*string{&j.Names.Partition, &j.Spec.Market} })
	name("slurm-account", func(j *Job) []*string { return []*string{&j.Names.Account, &j.Spec.Project} })
	name("slurm-qos", func(j *Job) []*string { return []*string{&j.Names.QOS} })
	name("slurm-reservation", func(j *Job) []*string { return []*string{&j.Names.Reservation} })
	o.hidden("slurm-singleton", func(job *Job, text string) (err error) {
		job.Names.Singleton, err = strconv.ParseBool(text)
		return err
	})
	name("slurm-gres", func(j *Job) []*string { return []*string{&j.Names.GRES} })
	o.hidden("slurm-hardware", func(job *Job, text string) (err error) {
		job.Names.Hardware, err = strconv.ParseBool(text)
		return err
	})
	name("slurm-cluster", func(j *Job) []*string { return []*string{&j.Names.Cluster} })
}

// ours returns a rule that sets a field of the job to a name of Candor. The rule also clears the field of job.Names in
// which Slurm's name was recorded.
func ours(field func(*Job) *string, said func(*Names) *string) rule {
	set := textOf(field)
	return func(job *Job, text string) error {
		*said(&job.Names) = ""
		return set(job, text)
	}
}

// Market is the market that one of the job's partitions means.
type Market struct {
	Partition string        // the partition, as the job names it
	Market    messages.Name // "" means the first market whose slots are large enough
}

// Translate replaces the job's Slurm names by what they mean at a site. It returns the markets that these names mean.
// The function `payers` returns the accounts that the user may charge, and `nodes` returns the nodes of the site.
func (j *Job) Translate(site messages.Name, reply *market.MarketsReply, payers func() ([]messages.Name, error), nodes func() ([]market.NodeStatus, error)) ([]Market, error) {
	table := reply.Slurm
	if table == nil {
		table = &market.SlurmNames{}
	}
	if err := j.toSite(site, table.Clusters); err != nil {
		return nil, err
	}
	if err := j.toProject(table.Accounts, payers); err != nil {
		return nil, err
	}
	for i, c := range append([]*Job{j}, j.components...) {
		err := c.toResources(table.GRES, &j.Warnings)
		if err == nil && (j.Site == "" || j.Site == site) { // the nodes are only known if the job runs at this site
			err = c.toHardware(table, nodes, &j.Warnings)
		}
		if err != nil {
			if i > 0 {
				err = messages.Errorf(messages.KindOf(err), "component %d: %s", i, messages.Detail(err))
			}
			return nil, err
		}
	}
	markets, err := j.toMarkets(table.Partitions, reply)
	if err != nil {
		return nil, err
	}
	if markets, err = j.within("qos", j.Names.QOS, table.QOS, markets, reply); err != nil {
		return nil, err
	}
	return j.within("reservation", j.Names.Reservation, table.Reservations, markets, reply)
}

// toResources gives the tasks of the job, or of one component, the generic resources (GRES) of Slurm that the script
// asks for. The site's configuration says what each of them means. toResources adds a warning for each GRES without
// effect.
func (j *Job) toResources(table job.Labels, warnings *[]string) error {
	if j.Names.GRES == "" {
		return nil
	}
	s, disk := &j.Spec.Stages[0], int64(0)
	for part := range strings.SplitSeq(j.Names.GRES, ",") {
		name, count, _ := strings.Cut(part, ":")
		switch value, _, ok := table.Lookup(name); {
		case !ok:
			return messages.Errorf(messages.Invalid, "--gres %q: the site's configuration does not say what resource %s is: leave it out, or use --tmp for disk and --gres=gpu for GPUs", part, name)
		case value == market.GRESGPU:
			s.GPUs, j.asked.GPUs = max(s.GPUs, 1), max(j.asked.GPUs, 1)
		case value == market.GRESDisk:
			if count = cmp.Or(count[strings.LastIndex(count, ":")+1:], "1"); strings.Trim(count, "0123456789.") == "" {
				count += "G"
			}
			size, err := parseSize(count)
			if err != nil {
				return messages.Errorf(messages.Invalid, "--gres %q: %v", part, err)
			}
			disk += size
			s.Disk = max(s.Disk, disk)
		default:
			*warnings = append(*warnings, fmt.Sprintf("--gres %s has no effect at this site", part))
		}
	}
	return nil
}

func sells(reply *market.MarketsReply, name messages.Name) bool {
	return slices.ContainsFunc(reply.Markets, func(m market.MarketStatus) bool { return m.Market.Name == name })
}

// toSite chooses the site for a job with a list of Slurm's clusters. Slurm may run the job on any of them. If this site
// is in the list, toSite leaves the job here. Otherwise it sets the job's site to the site of the first cluster in the
// list.
func (j *Job) toSite(site messages.Name, table job.Labels) error {
	names := j.Names.Cluster
	if names == "" || names == "all" {
		return nil
	}
	var sites []messages.Name
	for name := range strings.SplitSeq(names, ",") {
		value, _, ok := table.Lookup(name)
		switch {
		case name == site || ok && value == "":
			return nil
		case !ok:
			return messages.Errorf(messages.Invalid, "--clusters %q: this is site %s, and its configuration does not say which site cluster %s is: leave the option out, or name a site with --site in a #CANDOR line", names, site, name)
		}
		sites = append(sites, value)
	}
	j.Site = sites[0]
	return nil
}

func (j *Job) toProject(table job.Labels, payers func() ([]messages.Name, error)) error {
	name := j.Names.Account
	if name == "" {
		return nil
	}
	value, listed, ok := table.Lookup(name)
	if !listed {
		known, err := payers()
		switch {
		case err != nil:
			return err
		case slices.Contains(known, name):
			value = name
		case !ok:
			return messages.Errorf(messages.NotFound, "--account %q: you cannot charge this account; you can charge %s: name one of these, or leave the option out", name, spelling.List(known))
		default:
			j.Warnings = append(j.Warnings, fmt.Sprintf("account %s is not one of your projects here: your own account pays", name))
		}
	}
	j.Spec.Project = value
	return nil
}

// toMarkets finds the markets for a list of partitions. Each market is in the result once.
func (j *Job) toMarkets(table job.Labels, reply *market.MarketsReply) (markets []Market, err error) {
	if j.Names.Partition == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(j.Names.Partition, ",") {
		value, listed, ok := table.Lookup(name)
		switch {
		case listed:
		case sells(reply, name):
			value = name
		case !ok:
			var all []messages.Name
			for _, m := range reply.Markets {
				all = append(all, m.Market.Name)
			}
			return nil, messages.Errorf(messages.NotFound, "--partition %q: there is no market %q; the site has %s, and its configuration does not say which market partition %s is", j.Names.Partition, name, spelling.List(all), name)
		}
		if !slices.ContainsFunc(markets, func(m Market) bool { return m.Market == value }) {
			markets = append(markets, Market{Partition: name, Market: value})
		}
	}
	return markets, nil
}

// within applies a quality of service or a reservation. The table of the site's configuration says what the argument
// `name` means: a market, a limit of the run time, or nothing.
func (j *Job) within(option, name string, table job.Labels, markets []Market, reply *market.MarketsReply) ([]Market, error) {
	if name == "" {
		return markets, nil
	}
	value, _, ok := table.Lookup(name)
	limit, err := messages.ParseDuration(value)
	switch {
	case !ok && option == "reservation":
		return nil, messages.Errorf(messages.Invalid, "--reservation %q: the site's configuration does not have this reservation; leave the option out, or name a market that reserves slots", name)
	case !ok:
		j.Warnings = append(j.Warnings, fmt.Sprintf("--%s %s has no effect at this site: the budget decides which job goes first, and the market sets the limits", option, name))
		return markets, nil
	case value == "":
		return markets, nil
	case err == nil && !sells(reply, value):
		return markets, j.bound(option, name, limit)
	}
	if len(markets) == 0 {
		return []Market{{Market: value}}, nil
	}
	if i := slices.IndexFunc(markets, func(m Market) bool { return m.Market == value || m.Market == "" }); i >= 0 {
		return []Market{{Partition: markets[i].Partition, Market: value}}, nil
	}
	return nil, messages.Errorf(messages.Invalid, "--%s %s means market %s here, but --partition %s means market %s: leave one of the two out", option, name, value, j.Names.Partition, markets[0].Market)
}

// bound sets a time limit for the stages that have none. It refuses a stage that has a longer limit.
func (j *Job) bound(option, name string, limit messages.Duration) error {
	for i := range j.Spec.Stages {
		s := &j.Spec.Stages[i]
		if s.TimeLimit > limit {
			return messages.Errorf(messages.Invalid, "--time: %v is above the limit of %v that --%s %s has here", s.TimeLimit, limit, option, name)
		}
		if s.TimeLimit == 0 {
			s.TimeLimit = limit
		}
	}
	return nil
}
