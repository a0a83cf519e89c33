package slurm_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// listings has the expected output of each command, without the title line.
type listings map[string]string

func (all listings) check(t *testing.T, s *clienttest.Site) {
	t.Helper()
	for line, want := range all {
		words := strings.Fields(line)
		if r := slurmCall(s, words[0], words[1:]...); r.Code != 0 || r.Out != want {
			t.Errorf("%s: exit code %d, %s\n%swant\n%s", line, r.Code, r.Err, r.Out, want)
		}
	}
}

// A site says which markets and projects the names of partitions and accounts mean. Options that select jobs take these
// names. If a name stands for no particular market, jobs are selected by the name in their scripts.
func TestListingsKnowTheNamesOfTheSite(t *testing.T) {
	s, _ := namesSite(t)
	all := []job.JobSummary{
		{Job: 1, Account: "alice", Payer: "alice", Market: "day", State: job.Waiting, Tasks: 1},
		{Job: 2, Account: "alice", Payer: "climate", Market: "night", State: job.Waiting, Tasks: 1},
		{Job: 3, Account: "alice", Payer: "alice", Market: "fat", State: job.Waiting, Tasks: 1},
	}
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (reply job.JobsReply, err error) {
		for _, j := range all {
			if r.Market == "" || r.Market == j.Market {
				reply.Jobs = append(reply.Jobs, j)
			}
		}
		return reply, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(r job.JobRequest) (job.JobDetail, error) {
		script := "#!/bin/sh\nexport SLURM_JOB_QOS='normal'\n"
		if r.Job == 3 {
			script = "#!/bin/sh\nexport SLURM_JOB_PARTITION='GPU_Q,other' SLURM_JOB_QOS='high'\n"
		}
		return job.JobDetail{JobSummary: all[r.Job-1], Spec: job.JobSpec{Stages: []job.Stage{{Script: script}}}}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(job.TasksRequest) (job.TasksReply, error) { return job.TasksReply{}, nil })
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r job.CancelRequest) (job.CancelReply, error) {
		s.Signals = append(s.Signals, cancelOf(&r))
		return job.CancelReply{}, nil
	})
	listings{
		"squeue -h -o %i -p short":                       "1\n",
		"squeue -h -o %i -p long,fat":                    "2\n3\n",
		"squeue -h -o %i -p day":                         "1\n",
		"squeue -h -o %i -p GPU_Q":                       "3\n",
		"squeue -h -o %i -p UNSEEN":                      "",
		"squeue -h -o %i -A Proj1":                       "2\n",
		"squeue -h -o %i -A climate":                     "2\n",
		"squeue -h -o %i:%q -q high":                     "3:high\n",
		"squeue -h -o %i -q normal,other":                "1\n2\n",
		"sacct -n -P -o jobid -S 1970-01-01 -r long":     "2\n",
		"sacct -n -P -o jobid,qos -S 1970-01-01 -q high": "3|high\n",
		"sinfo -h -p short -o %R":                        "day\n",
		"sinfo -h -p long,fat -o %P":                     "night\nfat\n",
		"sinfo -h -p day -o %P":                          "day*\n",
	}.check(t, s)
	if r := slurmCall(s, "scontrol", "show", "partition", "long"); r.Code != 0 || !strings.HasPrefix(r.Out, "PartitionName=night\n") || strings.Contains(r.Out, "PartitionName=day") {
		t.Errorf("%+v", r)
	}
	for line, want := range map[string][]string{"--me -p short": {"cancel 1"}, "-p UNSEEN": nil, "-p GPU_Q 1 3": {"cancel 3"}, "-q high": {"cancel 3"}, "-A Proj1": {"cancel 2"}} {
		s.Signals = nil
		if r := slurmCall(s, "scancel", strings.Fields(line)...); r.Code != 0 || !slices.Equal(s.Signals, want) {
			t.Errorf("scancel %s: %+v sends %q, want %q", line, r, s.Signals, want)
		}
	}
}

// No option of a listing may be accepted and then have no effect.
func TestOptionsOfListingsHaveAnEffect(t *testing.T) {
	s, _ := slurmSite(t)
	listings{
		"squeue -h -o %i -S -i":                         "11\n10_[3]\n10_1\n",
		"squeue -h -o %i -S t,i":                        "10_[3]\n11\n10_1\n",
		"squeue -h -o %i%M -S -M,-A":                    "10_13:18\n110:00\n10_[3]0:00\n",
		"squeue -h -o %i -j 10_[1,3]":                   "10_[3]\n10_1\n",
		"squeue -h -j 10_1 -o %e":                       "2026-03-01T13:06:42\n",
		"squeue -h -j 10_1 -o %o":                       "(null)\n",
		"sacct -n -P -o jobid -j 10_[0,2]":              "10_0\n10_2\n",
		"sacct -n -P -o jobid,maxrss -j 9 --units=M":    "9|4M\n",
		"sacct -n -P -o jobid,maxrss -j 9 --units=G":    "9|0.00G\n",
		"sacct -n -P -o jobid -j 9,10 -s F -i 1 -I 1-4": "9\n",
		"sacct -n -P -o jobid -j 9 -i 2-3":              "",
		"sacct -n -P -o jobid,start,end,elapsed -j 9 -T -S 2026-03-01T12:55:10 -E 2026-03-01T12:56:00": "9|2026-03-01T12:55:10|2026-03-01T12:56:00|00:00:50\n",
		"sinfo -h -N":                         "node1         1     main* mix   \nnode1         1     night mix   \nnode2         1     main* down  \nnode2         1     night down  \n",
		"sinfo -h -N -r -p main":              "node1         1     main* mix   \n",
		"sinfo -h -p main -n node[1-2] -o %N": "node1\nnode2\n",
		"sinfo -h -p main -N -o %N -S -N":     "node2\nnode1\n",
		"sinfo -h -p main -l -r":              "main*        up   infinite          1   no       NO        all      1       mixed node1\n",
		"sshare -h -A climate -o Account":     "             climate \n",
	}.check(t, s)
	for line, want := range map[string]string{
		"squeue --json":                  "--json: this command writes text",
		"sinfo --json=list":              "--json: this command writes text",
		"squeue -S 9":                    "Invalid sort specification: 9",
		"sacct --units=X":                "Invalid --units",
		"sacct -i few":                   "--nnodes \"few\"",
		"squeue -M other":                "this is site west",
		"scontrol -M other show job 10":  "this is site west",
		"scontrol show node node1,node9": "Node node9 not found",
	} {
		words := strings.Fields(line)
		if r := slurmCall(s, words[0], words[1:]...); r.Code != 1 || !strings.Contains(r.Err, want) {
			t.Errorf("%s: %+v, want %q", line, r, want)
		}
	}
	for line, want := range map[string][]string{
		"sacct -j 9 -P --format=ALL":   {"JobID|JobIDRaw|JobName|", "|Budget|Charged"},
		"sacct -j 9 -P -l":             {"|MaxRSS|", "|ReqMem|", "|AllocTRES|"},
		"scontrol show node node[1-2]": {"NodeName=node1\n", "NodeName=node2\n"},
		"scontrol show job 10_1":       {"StartTime=2026-03-01T12:56:42 EndTime=2026-03-01T13:06:42 "},
		"sinfo -N -l":                  {"NODELIST  NODES PARTITION", "REASON"},
	} {
		words := strings.Fields(line)
		for _, part := range want {
			if r := slurmCall(s, words[0], words[1:]...); r.Code != 0 || !strings.Contains(r.Out, part) {
				t.Errorf("%s: %+v has no %q", line, r, part)
			}
		}
	}
}

// Variables set options of the listings and of scancel. Options on the command line win.
func TestVariablesOfListings(t *testing.T) {
	s, _ := slurmSite(t)
	for name, value := range map[string]string{"SQUEUE_FORMAT": "%i", "SQUEUE_SORT": "-i", "SQUEUE_USERS": "alice", "SQUEUE_STATES": "PD", "SINFO_FORMAT": "%R %t", "SINFO_PARTITION": "night",
		"SACCT_FORMAT": "JobID%-5", "SCANCEL_STATE": "PENDING", "SCANCEL_USER": "alice"} {
		s.Env[name] = value
	}
	listings{
		"squeue -h":                 "11\n10_[3]\n",
		"squeue -h -t R -o %i/%t":   "10_1/R\n",
		"sinfo -h":                  "night mix\nnight down\n",
		"sinfo -h -p main":          "main mix\nmain down\n",
		"sacct -n -j 9":             "9     \n",
		"sacct -n -j 9 -o State%-6": "FAILED \n",
	}.check(t, s)
	s.Signals = nil
	if r := slurmCall(s, "scancel", "10"); r.Code != 0 || !slices.Equal(s.Signals, []string{"cancel 10 [{3 3 1}]"}) {
		t.Errorf("%+v sends %q", r, s.Signals)
	}
	s.Env["SQUEUE_STATES"] = "NONSENSE"
	if r := slurmCall(s, "squeue"); r.Code != 1 || !strings.Contains(r.Err, "Invalid job state specified: NONSENSE") {
		t.Errorf("%+v", r)
	}
}

// sacctmgr lists only the users and accounts that it is asked for, and refuses lists that it does not have.
func TestSacctmgrListsWhatIsAsked(t *testing.T) {
	s, _ := slurmSite(t)
	listings{
		"sacctmgr -n -P show user alice format=account":                 "alice\nclimate\n",
		"sacctmgr -n -P show user bob format=account":                   "",
		"sacctmgr -n -P list assoc where user=bob format=account":       "",
		"sacctmgr -n -P list assoc account=climate format=account,user": "climate|alice\n",
		"sacctmgr -n -P list accounts climate withassoc format=account": "climate\n",
	}.check(t, s)
	for line, want := range map[string]string{"sacctmgr show events": "invalid entity: events", "scontrol show job 10 11": "too many arguments for keyword: show job"} {
		words := strings.Fields(line)
		if r := slurmCall(s, words[0], words[1:]...); r.Code != 1 || !strings.Contains(r.Err, want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

// Slurm's commands list the jobs of all accounts for operators. For other users, they list the user's own jobs.
func TestOperatorsSeeAllJobs(t *testing.T) {
	s, _ := namesSite(t)
	operator := false
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (reply job.JobsReply, err error) {
		if r.All && !operator {
			return reply, messages.Errorf(messages.PermissionDenied, "only operators may list the jobs of other accounts")
		}
		for i, who := range []messages.Name{"alice", "bob"} {
			if r.All || who == "alice" {
				reply.Jobs = append(reply.Jobs, job.JobSummary{Job: messages.JobID(i + 1), Account: who, Payer: who, Market: "day", State: job.Waiting, Tasks: 1})
			}
		}
		return reply, nil
	})
	listings{"squeue -h -o %i": "1\n", "squeue -h -o %i -u bob": "", "sacct -n -P -o jobid -S 1970-01-01 -a": "1\n"}.check(t, s)
	operator = true
	listings{
		"squeue -h -o %i:%u":                        "1:alice\n2:bob\n",
		"squeue -h -o %i -u bob":                    "2\n",
		"squeue -h -o %i --me":                      "1\n",
		"sacct -n -P -o jobid -S 1970-01-01":        "1\n",
		"sacct -n -P -o jobid -S 1970-01-01 -a":     "1\n2\n",
		"sacct -n -P -o jobid -S 1970-01-01 -u bob": "2\n",
	}.check(t, s)
}

// sinfo -R names each node that is down or takes no tasks once, with the reason. It names no other node.
func TestSinfoListsReasons(t *testing.T) {
	s := newSite(t)

	cpu := []job.ClassSlots{{Class: "cpu", Slots: 2}}
	clienttest.Reply(s, messages.Auctioneer, messages.VerbMarkets, market.MarketsReply{Markets: []market.MarketStatus{
		{Market: market.Market{Name: "day", Classes: []messages.Name{"cpu"}}}, {Market: market.Market{Name: "night", Classes: []messages.Name{"cpu"}}}}})
	clienttest.Reply(s, messages.Auctioneer, messages.VerbNodes, market.NodesReply{Nodes: []market.NodeStatus{
		{Node: "n1", State: "Up", Slots: cpu}, {Node: "n2", State: "Draining", Slots: cpu, Reason: "bad disk"},
		{Node: "n3", State: "Up", Slots: cpu, Reason: "takes no tasks: its disk is almost full", Abilities: []messages.Name{agent.AbilityFull}},
		{Node: "n4", State: "Lost", Slots: cpu, Reason: "bad disk"}, {Node: "n5", State: "Stopped", Slots: cpu},
		{Node: "n6", State: "Up", Slots: cpu, Reason: "not in quarantine: tasks fail everywhere"}}})
	for line, want := range map[string]string{
		"sinfo -h -R": "bad disk             Unknown   Unknown             n2\ntakes no tasks: its  Unknown   Unknown             n3\n" +
			"Not responding; bad  Unknown   Unknown             n4\nAgent stopped        Unknown   Unknown             n5\n",
		"sinfo -h -R -t all -o %N": "n[2-3]\nn[4-5]\n", "sinfo -h -R -t idle": "",
		"sinfo -h -R -t down": "Not responding; bad  Unknown   Unknown             n4\nAgent stopped        Unknown   Unknown             n5\n",
		"sinfo -h -p day -N -o %N:%t:%E": "n1:idle:none\nn2:drain:bad disk\nn3:drain:takes no tasks: its disk is almost full\nn4:down:Not responding; bad disk\n" +
			"n5:down:Agent stopped\nn6:idle:not in quarantine: tasks fail everywhere\n",
	} {
		if r := slurmCall(s, "sinfo", strings.Fields(line)[1:]...); r.Out != want {
			t.Errorf("%s: %s%s, want %s", line, r.Out, r.Err, want)
		}
	}
}

// Options must select jobs by their node.
func TestJobsOfNodes(t *testing.T) {
	s, _ := slurmSite(t)
	listings{
		"squeue -h -o %i -w node2":                        "10_1\n",
		"squeue -h -o %i --nodelist=node1":                "",
		"sacct -n -P -o jobid -S 1970-01-01 -N node[1,3]": "9\n10_0\n10_2\n",
	}.check(t, s)
	for line, want := range map[string][]string{"-w node2": {"cancel 10 [{1 1 1}]"}, "-w node1": nil} {
		s.Signals = nil
		if r := slurmCall(s, "scancel", strings.Fields(line)...); r.Code != 0 || !slices.Equal(s.Signals, want) {
			t.Errorf("scancel %s: %+v sends %q, want %q", line, r, s.Signals, want)
		}
	}
}

// A task that waits again still names the node of its last attempt. Its job is on no node.
func TestWaitingJobsAreOnNoNode(t *testing.T) {
	s := newSite(t)
	jobs := []job.JobSummary{
		{Job: 20, Account: "alice", Market: "main", State: job.Running, Tasks: 1},
		{Job: 21, Account: "alice", Market: "main", State: job.Running, Tasks: 2, Nodes: 2},
		{Job: 22, Account: "alice", Market: "main", State: job.Running, Tasks: 1, Running: 1},
		{Job: 23, Account: "alice", Market: "main", State: job.Running, Tasks: 1, Array: job.Array{{First: 4, Last: 4, Step: 1}}},
		{Job: 24, Account: "alice", Market: "main", State: job.Running, Tasks: 2, Running: 2, Nodes: 2, Started: 1e6},
	}
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(job.JobsRequest) (job.JobsReply, error) { return job.JobsReply{Jobs: jobs}, nil })
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(r job.TasksRequest) (job.TasksReply, error) {
		return map[messages.JobID]job.TasksReply{
			20: {Tasks: []job.TaskStatus{{Attempt: 1, Node: "node2", State: "Pending"}}},
			21: {Tasks: []job.TaskStatus{{Attempt: 1, Node: "node1", State: "Pending"}, {Attempt: 2, Node: "node2", State: "Gathering"}}},
			22: {Tasks: []job.TaskStatus{{Attempt: 1, Node: "node2", State: "Running"}}},
			23: {Tasks: []job.TaskStatus{{Attempt: 1, Array: 4, Node: "node2", State: "Gathering"}}},
			24: {Tasks: []job.TaskStatus{{Attempt: 1, Node: "node1", State: "Gathering"}, {Attempt: 2, Node: "node2", State: "Gathering"}}},
		}[r.Job], nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r job.CancelRequest) (job.CancelReply, error) {
		s.Signals = append(s.Signals, cancelOf(&r))
		return job.CancelReply{}, nil
	})
	listings{"squeue -h -o %i:%t:%N": "20:PD:\n21:PD:\n22:R:node2\n23_[4]:PD:\n24:PD:\n", "squeue -h -o %i -w node[1-2]": "22\n",
		"squeue -h -j 24 -o %t:%r:%R:%M": "PD:Resources:(Resources):0:00\n", "squeue -h -t R -o %i": "22\n"}.check(t, s)
	if r := slurmCall(s, "scancel", "-w", "node2"); r.Code != 0 || !slices.Equal(s.Signals, []string{"cancel 22"}) {
		t.Errorf("%+v sends %q", r, s.Signals)
	}
}

// A list of nodes that cannot be read must be an error. It must not select nothing, or exclude nothing.
func TestListsOfNodesAreRead(t *testing.T) {
	s, _ := slurmSite(t)
	for _, line := range []string{"squeue --nodelist", "scancel --nodelist", "sacct --nodelist", "sinfo --nodes"} {
		for _, list := range []string{"node[1", "node[1-2000]"} {
			words := append(strings.Fields(line), list)
			if r := slurmCall(s, words[0], words[1:]...); r.Code != 1 || !strings.Contains(r.Err, words[1]+": \""+list+"\": write names of nodes") {
				t.Errorf("%q: %+v", words, r)
			}
		}
	}
}

// othersArray makes a site whose operator, alice, looks at an array of bob. Each element of the array is a job of its
// own. If operator is false, alice may not see it. asked counts the requests for the tasks of a job.
func othersArray(t *testing.T, operator *bool) (s *clienttest.Site, asked *int) {
	s, _ = namesSite(t)
	asked = new(int)
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (reply job.JobsReply, err error) {
		if r.All && !*operator {
			return reply, messages.Errorf(messages.PermissionDenied, "only operators may list the jobs of other accounts")
		}
		for i := range 3 {
			j := job.JobSummary{Job: messages.JobID(40 + i), Account: "bob", Payer: "bob", Market: "day", State: job.Running, Tasks: 2, Running: 2, Nodes: 2}
			of := "40"
			if i == 0 {
				of = "first"
			}
			j.Labels = job.Labels{{Name: "slurm-array", Value: of}, {Name: "slurm-index", Value: fmt.Sprint(i)}}
			if r.All && (r.Jobs == nil || slices.Contains(r.Jobs, j.Job)) && (r.Labels == nil || r.Labels[0] == "slurm-array="+of) {
				reply.Jobs = append(reply.Jobs, j)
			}
		}
		forged := job.JobSummary{Job: 43, Account: "mallory", Payer: "mallory", Market: "day", State: job.Running, Tasks: 1, Running: 1,
			Labels: job.Labels{{Name: "slurm-array", Value: "40"}, {Name: "slurm-index", Value: "2"}}}
		if r.All && (slices.Contains(r.Jobs, 43) || r.Labels != nil && r.Labels[0] == "slurm-array=40") {
			reply.Jobs = append(reply.Jobs, forged)
		}
		if own := (job.JobSummary{Job: 39, Account: "alice", Payer: "alice", Market: "day", State: job.Running, Tasks: 1, Running: 1}); r.Labels == nil && (r.Jobs == nil || slices.Contains(r.Jobs, 39)) {
			reply.Jobs = append(reply.Jobs, own)
		}
		return reply, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(r job.TasksRequest) (job.TasksReply, error) {
		*asked++
		return job.TasksReply{Tasks: []job.TaskStatus{{Attempt: 1, Node: "node1", State: "Running"}, {Attempt: 1, Node: "node2", State: "Running"}}[:min(r.Limit, 2)]}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r job.CancelRequest) (job.CancelReply, error) {
		s.Signals = append(s.Signals, cancelOf(&r))
		return job.CancelReply{}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, job.VerbHold, func(r job.JobRequest) (job.HoldReply, error) {
		s.Signals = append(s.Signals, fmt.Sprint("hold ", r.Job))
		return job.HoldReply{}, nil
	})
	return s, asked
}

// An operator names another account's array of jobs on several nodes. Then the commands reach all its elements.
func TestOperatorsReachAllElements(t *testing.T) {
	operator := true
	s, _ := othersArray(t, &operator)
	listings{"squeue -h -o %i:%u -j 40": "40_0:bob\n40_1:bob\n40_2:bob\n", "sacct -n -P -o jobid -j 40_2": "40_2\n"}.check(t, s)
	all := []string{"cancel 40", "cancel 41", "cancel 42"}
	for line, want := range map[string][]string{
		"scancel 40": all, "scancel 40_1": {"cancel 41"}, "scancel -t RUNNING 40": all, "scancel -t PENDING 40": nil,
		"scancel -w node2 40": all, "scancel -w node1 -u bob": all, "scancel -t RUNNING 40_0": {"cancel 40"}, "scancel -w node1 40_0": {"cancel 40"},
		"scancel -u bob 40_[0,1]": {"cancel 40", "cancel 41"}, "scancel -p day 40_0 41": {"cancel 40", "cancel 41"}, "scancel -u bob 40_[0-2]": all,
		"scancel --me 40": nil, "scontrol hold 40": {"hold 40", "hold 41", "hold 42"},
	} {
		s.Signals = nil
		words := strings.Fields(line)
		if r := slurmCall(s, words[0], words[1:]...); r.Code != 0 || r.Err != "" || !slices.Equal(s.Signals, want) {
			t.Errorf("%s: %+v sends %q, want %q", line, r, s.Signals, want)
		}
	}
}

// An option that selects jobs must not hide that an array lacks an element that the user names.
func TestScancelNamesElementsThatAreNot(t *testing.T) {
	operator := true
	s, _ := othersArray(t, &operator)
	for _, line := range []string{"40_7", "-u bob 40_7", "-t RUNNING 40_[7,8]"} {
		if r := slurmCall(s, "scancel", strings.Fields(line)...); r.Code != 1 || !strings.Contains(r.Err, "array 40 has no such element") || s.Signals != nil {
			t.Errorf("scancel %s: %+v sends %q", line, r, s.Signals)
		}
	}
}

// An operator names an element of another account's array by its own number.
func TestOperatorsReachNumberedElements(t *testing.T) {
	s := newSite(t)
	array := job.JobSummary{Job: 40, Account: "bob", Payer: "bob", Market: "day", State: job.Running, Tasks: 4, Array: job.Array{{First: 5, Last: 8, Step: 1}}, Numbered: true}
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (reply job.JobsReply, err error) {
		if r.All && (r.Jobs == nil || slices.Contains(r.Jobs, 40)) && (r.Before == 0 || r.Before > 40) {
			reply.Jobs = append(reply.Jobs, array)
		}
		return reply, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(job.JobRequest) (job.JobDetail, error) { return job.JobDetail{JobSummary: array}, nil })
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(r job.TasksRequest) (reply job.TasksReply, err error) {
		return job.TasksReply{Tasks: []job.TaskStatus{{Task: messages.TaskRef{Job: 40, Index: 1}, Attempt: 1, Index: 1, Array: 6, State: "Running", Node: "node1"}}}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r job.CancelRequest) (job.CancelReply, error) {
		s.Signals = append(s.Signals, cancelOf(&r))
		return job.CancelReply{}, nil
	})
	listings{"squeue -h -o %i:%u -j 41": "40_6:bob\n"}.check(t, s)
	for _, line := range []string{"41", "-t RUNNING 41"} {
		s.Signals = nil
		if r := slurmCall(s, "scancel", strings.Fields(line)...); r.Code != 0 || !slices.Equal(s.Signals, []string{"cancel 40 [{1 1 1}]"}) {
			t.Errorf("scancel %s: %+v sends %q", line, r, s.Signals)
		}
	}
}

// Without --user, scancel -w cancels only the operator's own jobs, and names the accounts whose jobs go on.
func TestOperatorsNameTheAccountsOfANode(t *testing.T) {
	operator := true
	s, asked := othersArray(t, &operator)
	const said = "scancel: the jobs of bob on node1 go on: name these accounts with --user to cancel their jobs\n"
	for line, want := range map[string]string{"-w node1": said, "-w node1 --me": "", "-w node1 -Q": ""} {
		s.Signals, *asked = nil, 0
		if r := slurmCall(s, "scancel", strings.Fields(line)...); r.Code != 0 || r.Err != want || !slices.Equal(s.Signals, []string{"cancel 39"}) || strings.Contains(line, "--me") && *asked != 1 {
			t.Errorf("scancel %s: %+v sends %q and asks for the tasks of %d jobs", line, r, s.Signals, *asked)
		}
	}
	s.Signals, operator = nil, false
	if r := slurmCall(s, "scancel", "-w", "node1"); r.Code != 0 || r.Err != "" || !slices.Equal(s.Signals, []string{"cancel 39"}) {
		t.Errorf("%+v sends %q", r, s.Signals)
	}
}

// scontrol gives a job's script back as it was submitted, and the addresses of nodes.
func TestScontrolWritesScripts(t *testing.T) {
	s := newSite(t)
	t.Chdir(s.Dir)
	source := "#!/bin/bash\n#SBATCH -t 5\n\necho hello\n"
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(job.JobsRequest) (job.JobsReply, error) {
		return job.JobsReply{Jobs: []job.JobSummary{{Job: 11}}}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(r job.JobRequest) (job.JobDetail, error) {
		script := "#!/bin/bash\n#SBATCH -t 5\nexport SLURM_JOB_ID=\"$CANDOR_JOB\" # the script goes on: \necho hello\n"
		return job.JobDetail{Spec: job.JobSpec{Stages: []job.Stage{{Script: script}}}}, nil
	})
	listings{
		"scontrol write batch_script 11 -":    source,
		"scontrol write batch_script 11":      "batch script for job 11 written to slurm-11.sh\n",
		"scontrol write batch_script 11 a.sh": "batch script for job 11 written to a.sh\n",
		"scontrol getaddrs 127.0.0.1":         "127.0.0.1: 127.0.0.1:6818\n",
		"scontrol -o getaddrs 127.0.0.[1-2]":  "127.0.0.1: 127.0.0.1:6818\n127.0.0.2: 127.0.0.2:6818\n",
	}.check(t, s)
	for _, file := range []string{"slurm-11.sh", "a.sh"} {
		if text, err := os.ReadFile(file); err != nil || string(text) != source {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	for line, want := range map[string]string{"write batch_script": "scontrol write batch_script JOB", "write config": "scontrol write batch_script JOB", "getaddrs": "name a list of nodes", "getaddrs no.such.host.invalid": "is not the name of a host"} {
		if r := slurmCall(s, "scontrol", strings.Fields(line)...); r.Code != 1 || !strings.Contains(r.Err, want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}
