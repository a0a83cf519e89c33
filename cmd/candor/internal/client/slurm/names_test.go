package slurm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// namesSite returns a site with a table of Slurm names, a full market and a free market.
func namesSite(t *testing.T) (s *clienttest.Site, submitted *[]job.SubmitRequest) {
	s = newSite(t)
	s.Env["CANDOR_BUDGET"] = "2"
	market := func(name messages.Name) marketmsg.MarketStatus {
		return marketmsg.MarketStatus{Market: marketmsg.Market{Name: name, Classes: []messages.Name{name},
			Units: []job.ClassUnit{{Class: name, Unit: job.Resources{CPUs: 1}}}}}
	}
	clienttest.Reply(s, messages.Auctioneer, messages.VerbMarkets, marketmsg.MarketsReply{Markets: []marketmsg.MarketStatus{market("day"), market("night"), market("fat")},
		Slurm: &marketmsg.SlurmNames{Partitions: job.Labels{{Name: "*"}, {Name: "long", Value: "night"}, {Name: "short", Value: "day"}}, Accounts: job.Labels{{Name: "Proj1", Value: "climate"}}}})
	clienttest.Reply(s, messages.Auctioneer, messages.VerbNodes, marketmsg.NodesReply{Nodes: []marketmsg.NodeStatus{
		{Node: "a", State: "Up", Slots: []job.ClassSlots{{Class: "day", Slots: 4}}, Used: []job.ClassSlots{{Class: "day", Slots: 4}}},
		{Node: "b", State: "Up", Slots: []job.ClassSlots{{Class: "night", Slots: 4}}, Used: []job.ClassSlots{{Class: "night", Slots: 1}}},
		{Node: "c", State: "Lost", Slots: []job.ClassSlots{{Class: "fat", Slots: 64}}}}})
	clienttest.Answer(s, messages.Bank, messages.VerbAccounts, func(money.AccountsRequest) (money.AccountsReply, error) {
		return money.AccountsReply{Accounts: []money.AccountReply{{Account: "alice"}, {Account: "bio"}}}, nil
	})
	submitted = new([]job.SubmitRequest)
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		*submitted = append(*submitted, r)
		if r.Spec.Market == "" {
			r.Spec.Market = "day"
		}
		if cpus := r.Spec.Stages[0].CPUs; r.Spec.Market != "fat" && cpus > 4 || cpus > 64 {
			return job.SubmitReply{}, messages.Errorf(messages.TooLarge, "stages[0]: no node of class %s has %d cpus", r.Spec.Market, cpus)
		}
		return job.SubmitReply{Job: 5, Market: r.Spec.Market}, nil
	})
	return s, submitted
}

func TestPartitionListsGoWhereTheJobStartsFirst(t *testing.T) {
	for line, want := range map[string]string{
		"-p short":                 "day",
		"-p short,long":            "night", // market day (partition short) has no free slots now
		"-p short,long -c 4":       "day",   // neither market has free slots: the job goes to the first that accepts it
		"-p fat,short -c 2":        "fat",   // both markets accept the job, and neither has free slots
		"-p long,fat -c 8":         "fat",   // market night (partition long) does not accept the job
		"-p GPU_Q":                 "",      // the site chooses
		"-p GPU_Q -c 9":            "fat",   // no node of the market that the site chose is large enough
		"-c 9":                     "fat",
		"-p night -A Proj1 -J x":   "night",
		"--partition=short -A bio": "day",
	} {
		s, submitted := namesSite(t)
		s.Write("a.sh", "#!/bin/sh\n#SBATCH "+line+"\ntrue\n")
		got := slurmCall(s, "sbatch", s.Path("a.sh"))
		if got.Code != 0 || len(*submitted) == 0 {
			t.Errorf("%s: %+v", line, got)
			continue
		}
		last := (*submitted)[len(*submitted)-1]
		if last.Spec.Market != want || last.DryRun {
			t.Errorf("%s: market %q, want %q", line, last.Spec.Market, want)
		}
		if strings.Contains(line, "Proj1") && (last.Spec.Project != "climate" || !strings.Contains(last.Spec.Stages[0].Script, "SLURM_JOB_ACCOUNT='Proj1'")) ||
			strings.Contains(line, "-A bio") && last.Spec.Project != "bio" {
			t.Errorf("%s: project %q, %s", line, last.Spec.Project, last.Spec.Stages[0].Script)
		}
	}
}

func TestNamesThatNothingIsKnownOf(t *testing.T) {
	for line, want := range map[string]string{
		"-A nobody":         `--account "nobody": you cannot charge this account; you can charge alice`,
		"--reservation=r":   `--reservation "r": the site's configuration does not have this reservation`,
		"-M elsewhere":      "its configuration does not say which site cluster elsewhere is",
		"-c 99":             "no node of class day has 99 cpus",
		"-p long,fat -c 99": "no node of class night has 99 cpus",
	} {
		s, _ := namesSite(t)
		s.Write("a.sh", "#!/bin/sh\n#SBATCH "+line+"\ntrue\n")
		for _, got := range []clienttest.Result{slurmCall(s, "sbatch", s.Path("a.sh")), s.Run("submit", s.Path("a.sh"))} {
			if got.Code == 0 || !strings.Contains(got.Err, want) {
				t.Errorf("%s: %+v", line, got)
			}
		}
	}
}

// Scripts with the line ends of Windows are refused, as by sbatch. A shell would read these line ends as parts of the
// commands.
func TestScriptsOfWindowsAreRefused(t *testing.T) {
	s, submitted := namesSite(t)
	for text, want := range map[string]string{
		"\ufeff#!/bin/bash\ntrue\n":               "begins with a byte-order mark",
		"#!/bin/bash\n#SBATCH -t 5\r\ntrue\r\n":   "dos2unix",
		"#!/bin/bash\r\n#SBATCH -t 5\r\ntrue\r\n": "dos2unix",
	} {
		s.Write("a.sh", text)
		for _, got := range []clienttest.Result{slurmCall(s, "sbatch", s.Path("a.sh")), s.Run("submit", s.Path("a.sh"))} {
			if got.Code == 0 || !strings.Contains(got.Err, want) {
				t.Errorf("%q: %+v", text, got)
			}
		}
	}
	if len(*submitted) > 0 {
		t.Errorf("submitted %+v", *submitted)
	}
}

// A job with the dependency "singleton" must wait for the present jobs of its account that have the same name, and for
// no other jobs.
func TestSingletonWaitsForItsNamesakes(t *testing.T) {
	s, submitted := namesSite(t)
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (job.JobsReply, error) {
		if r.After == "" {
			return job.JobsReply{Jobs: []job.JobSummary{{Job: 3, Name: "chain", Account: "alice"}, {Job: 4, Name: "chain", Account: "bob"}}, More: true, Next: "3"}, nil
		}
		return job.JobsReply{Jobs: []job.JobSummary{{Job: 2, Name: "chain", Account: "alice"}, {Job: 1, Name: "other", Account: "alice"}}}, nil
	})
	s.Write("a.sh", "#!/bin/sh\n#SBATCH -J chain -d singleton,afterok:9\ntrue\n")
	if got := slurmCall(s, "sbatch", s.Path("a.sh")); got.Code != 0 || len(*submitted) != 1 {
		t.Fatalf("%+v", got)
	}
	if spec := (*submitted)[0].Spec; !slices.Equal(spec.AfterJobs, []messages.JobID{3, 2}) || !slices.Equal(spec.AfterOK, []messages.JobID{9}) {
		t.Errorf("after %v, after ok %v", spec.AfterJobs, spec.AfterOK)
	}
}

// Ranks that do not fit on one node are divided, unless the script gives the number of nodes.
func TestRanksAreSpreadOverNodes(t *testing.T) {
	s := newSite(t)
	s.Env["CANDOR_BUDGET"] = "2"
	market := func(name messages.Name, unit job.Resources) marketmsg.MarketStatus {
		return marketmsg.MarketStatus{Market: marketmsg.Market{Name: name, Classes: []messages.Name{name}, Units: []job.ClassUnit{{Class: name, Unit: unit}}}}
	}
	clienttest.Reply(s, messages.Auctioneer, messages.VerbMarkets, marketmsg.MarketsReply{Markets: []marketmsg.MarketStatus{market("loose", job.Resources{CPUs: 1, Memory: 1 << 30}),
		market("day", job.Resources{CPUs: 1, Memory: 1 << 30}), market("gpu", job.Resources{CPUs: 8, Memory: 64 << 30, GPUs: 1})}})
	var nodes []marketmsg.NodeStatus
	for name, slots := range map[messages.Name]job.ClassSlots{"l1": {Class: "loose", Slots: 4}, "l2": {Class: "loose", Slots: 4}, "l3": {Class: "loose", Slots: 4}, "a": {Class: "day", Slots: 4}, "b": {Class: "day", Slots: 4},
		"c": {Class: "day", Slots: 3}, "g1": {Class: "gpu", Slots: 4}, "g2": {Class: "gpu", Slots: 4}} {
		nodes = append(nodes, marketmsg.NodeStatus{Node: name, State: "Up", Slots: []job.ClassSlots{slots}, Labels: []messages.Name{"on-" + name[:1]}})
	}
	clienttest.Reply(s, messages.Auctioneer, messages.VerbNodes, marketmsg.NodesReply{Nodes: nodes})
	var last job.SubmitRequest
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		if r.Spec.Market == "loose" && r.Spec.Stages[0].Allocation {
			return job.SubmitReply{}, messages.Errorf(messages.Invalid, "stages[0]: this mechanism starts no tasks together")
		}
		last = r
		return job.SubmitReply{Job: 5, Market: r.Spec.Market}, nil
	})
	for line, want := range map[string]struct {
		market               messages.Name
		nodes, cpus, gpus    int
		memory               int64
		tasksPerNode, ntasks string
	}{
		"-n 4":                                  {"", 0, 4, 0, 0, "4", "4"},
		"-n 7":                                  {"day", 2, 4, 0, 0, "'4,3'", "7"},
		"-n 9 -p day":                           {"day", 3, 3, 0, 0, "'3(x3)'", "9"},
		"-n 4 --mem-per-cpu=2G -p day":          {"day", 2, 2, 0, 4 << 30, "'2(x2)'", "4"},
		"-n 12":                                 {"", 0, 12, 0, 0, "12", "12"}, // one node of gpu is large enough for all ranks
		"-n 8 --gpus-per-task=1 -c 2":           {"gpu", 2, 8, 4, 0, "'4(x2)'", "8"},
		"-n 6 -p day -C on-c":                   {"day", 0, 6, 0, 0, "6", "6"}, // no node is large enough, and the site says why
		"-n 6 -p day -N 1":                      {"day", 0, 6, 0, 0, "6", "6"},
		"-n 6 -p day -N 1-2 --mem-per-cpu=512M": {"day", 2, 3, 0, 3 << 29, "'3(x2)'", "6"},
		"-n 9 -p day -N 1-2":                    {"day", 0, 9, 0, 0, "9", "9"},
		"-n 9 -p loose,day":                     {"day", 3, 3, 0, 0, "'3(x3)'", "9"},
		"-n 7 --array=3":                        {"day", 2, 4, 0, 0, "'4,3'", "7"}, // the job must not go to gpu, where one node would be large enough
		"-n 4 --array=3":                        {"", 0, 4, 0, 0, "4", "4"},
	} {
		last = job.SubmitRequest{}
		s.Write("a.sh", "#!/bin/sh\n#SBATCH "+line+"\ntrue\n")
		got := slurmCall(s, "sbatch", s.Path("a.sh"))
		st := job.Stage{}
		if len(last.Spec.Stages) == 1 {
			st = last.Spec.Stages[0]
		}
		if got.Code != 0 || last.DryRun || last.Spec.Market != want.market || st.Tasks != want.nodes || st.Allocation != (want.nodes > 0) || st.CPUs != want.cpus || st.GPUs != want.gpus || st.Memory != want.memory ||
			!strings.Contains(st.Script, "SLURM_TASKS_PER_NODE="+want.tasksPerNode+" ") || !strings.Contains(st.Script, "SLURM_NTASKS="+want.ntasks+" ") {
			t.Errorf("%s: %+v, %+v in %q", line, got, st, last.Spec.Market)
		}
	}
}

// As under Slurm, each element of an array has a number of its own. Commands must accept and show these numbers. A job
// that must wait for an element waits for the whole array.
func TestElementsHaveNumbersOfTheirOwn(t *testing.T) {
	s, submitted := namesSite(t)
	array := job.JobSummary{Job: 40, Name: "sweep", Account: "alice", State: job.Running, Tasks: 3, Running: 2, Array: job.Array{{First: 0, Last: 6, Step: 3}}, Numbered: true}
	plain := job.JobSummary{Job: 30, Name: "old", Account: "alice", State: job.Running, Tasks: 40, Array: job.Array{{First: 0, Last: 39, Step: 1}}}
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (reply job.JobsReply, err error) {
		for _, j := range []job.JobSummary{array, plain} {
			if (r.Jobs == nil || slices.Contains(r.Jobs, j.Job)) && (r.Before == 0 || j.Job < r.Before) && (r.Limit == 0 || len(reply.Jobs) < r.Limit) {
				reply.Jobs = append(reply.Jobs, j)
			}
		}
		return reply, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(r job.JobRequest) (job.JobDetail, error) {
		return job.JobDetail{JobSummary: array, Spec: job.JobSpec{Stages: []job.Stage{{Name: "main"}}}}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(r job.TasksRequest) (job.TasksReply, error) {
		return job.TasksReply{Tasks: []job.TaskStatus{{Index: 0, Array: 0, State: "Running", Node: "a"}, {Index: 1, Array: 3, State: "Running", Node: "b"}}}, nil
	})
	var cancelled job.CancelRequest
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r job.CancelRequest) (job.CancelReply, error) {
		cancelled = r
		return job.CancelReply{Job: r.Job}, nil
	})
	if got := slurmCall(s, "squeue", "-h", "-j", "41", "-o", "%i %A %F %N"); got.Code != 0 || got.Out != "40_3 41 40 b\n" {
		t.Errorf("squeue: %+v", got)
	}
	if got := slurmCall(s, "scontrol", "show", "job", "41"); !strings.HasPrefix(got.Out, "JobId=41 ArrayJobId=40 ArrayTaskId=3 ") || strings.Contains(got.Out, "ArrayTaskId=0") {
		t.Errorf("scontrol: %+v", got)
	}
	if got := slurmCall(s, "sacct", "-n", "-P", "-j", "42,40_0", "-o", "JobID,JobIDRaw"); got.Out != "40_[6]|40\n40_0|40\n" {
		t.Errorf("sacct: %+v", got)
	}
	if got := slurmCall(s, "scancel", "42"); got.Code != 0 || cancelled.Job != 40 || !slices.Equal(cancelled.Tasks, job.Array{{First: 2, Last: 2, Step: 1}}) {
		t.Errorf("scancel: %+v, %+v", got, cancelled)
	}
	for _, none := range []string{"43", "31"} { // 43 is not in the array; 31 is an array without numbers for its elements
		if got := slurmCall(s, "squeue", "-j", none); got.Code != 1 || !strings.Contains(got.Err, "Invalid job id") {
			t.Errorf("squeue -j %s: %+v", none, got)
		}
	}
	s.Write("a.sh", "#!/bin/sh\n#SBATCH -a 5-7 -o %j.%A.%a -d afterok:41:42\ntrue\n")
	got := slurmCall(s, "sbatch", s.Path("a.sh"))
	if got.Code != 0 || len(*submitted) != 1 || !strings.Contains(got.Err, "41 is an element of array job 40") {
		t.Fatalf("%+v", got)
	}
	spec := (*submitted)[0].Spec
	if !spec.Numbered || spec.Numbers() != 3 || !slices.Equal(spec.AfterOK, []messages.JobID{40}) {
		t.Errorf("%+v", spec)
	}
	for _, want := range []string{`SLURM_JOB_ID="$((CANDOR_JOB + CANDOR_TASK))"`, `SLURM_ARRAY_JOB_ID="$CANDOR_JOB"`, `"$((CANDOR_JOB + CANDOR_TASK))"'.'"$CANDOR_JOB"'.'"$CANDOR_ARRAY_INDEX"`} {
		if !strings.Contains(spec.Stages[0].Script, want) {
			t.Errorf("no %s in %s", want, spec.Stages[0].Script)
		}
	}
}

// A job waits for another job, and both are arrays. Then each element of the new array waits for the element of the
// other array with the same position. If one of the two jobs is no array, the new job waits for the whole other job.
func TestElementsWaitForElements(t *testing.T) {
	s, submitted := namesSite(t)
	array := job.JobSummary{Job: 40, Account: "alice", Tasks: 3, Array: job.Array{{First: 0, Last: 2, Step: 1}}, Numbered: true}
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (job.JobsReply, error) {
		if r.Before > 40 && r.Before <= 50 {
			return job.JobsReply{Jobs: []job.JobSummary{array}}, nil
		}
		return job.JobsReply{Jobs: []job.JobSummary{{Job: r.Before - 1, Account: "alice"}}}, nil
	})
	s.Write("a.sh", "#!/bin/sh\ntrue\n")
	for _, one := range []struct {
		words    []string
		each, ok messages.JobID
	}{
		{[]string{"-a", "0-2", "-d", "aftercorr:40"}, 40, 0},
		{[]string{"-a", "0-2", "-d", "aftercorr:41"}, 40, 0},
		{[]string{"-a", "0-2", "-d", "aftercorr:7"}, 0, 7},
		{[]string{"-d", "aftercorr:40"}, 0, 40},
	} {
		*submitted = nil
		if got := slurmCall(s, "sbatch", append(one.words, s.Path("a.sh"))...); got.Code != 0 || len(*submitted) != 1 {
			t.Fatalf("%q: %+v", one.words, got)
		}
		spec, ok := (*submitted)[0].Spec, []messages.JobID(nil)
		if one.ok != 0 {
			ok = []messages.JobID{one.ok}
		}
		if spec.AfterEach != one.each || !slices.Equal(spec.AfterOK, ok) {
			t.Errorf("%q: after each %v, after ok %v", one.words, spec.AfterEach, spec.AfterOK)
		}
	}
}
