package submit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// The function together makes the site accept several jobs in one request, except jobs with the name "dear.sh". It
// returns the requests.
func together(s *clienttest.Site) *[]job.SubmitRequest {
	taken, known := &[]job.SubmitRequest{}, map[string]messages.JobID{}
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (reply job.SubmitReply, err error) {
		*taken = append(*taken, r)
		for _, j := range r.Jobs {
			o := job.SubmitOutcome{Market: "main", Payer: "alice", Held: j.Spec.Budget, Tasks: 1}
			if j.Spec.Name == "dear.sh" {
				o = job.SubmitOutcome{Error: messages.Errorf(messages.Insufficient, "account alice has 1 credit")}
			} else if o.Job = known[j.Key]; o.Job == 0 {
				o.Job = messages.JobID(len(known) + 1)
				known[j.Key] = o.Job
			}
			reply.Jobs = append(reply.Jobs, o)
		}
		if r.Jobs == nil {
			reply = job.SubmitReply{Job: 99, Payer: "alice", Site: r.Site, Held: r.Spec.Budget}
		}
		return reply, nil
	})
	return taken
}

// The jobs of all files must be in one request. The command refuses some files, and the site refuses some jobs. All
// other jobs must still be submitted.
func TestSubmitEach(t *testing.T) {
	s := newSite(t)
	taken := together(s)
	s.Write("a.sh", "#!/bin/sh\ntrue a\n")
	s.Write("b.yaml", "command: [hostname]\nbudget: 2\n")
	s.Write("bad.yaml", "budget: 1\ntasks: x\n")
	s.Write("dear.sh", "#!/bin/sh\ntrue dear\n")
	a, b, bad, dear := s.Path("a.sh"), s.Path("b.yaml"), s.Path("bad.yaml"), s.Path("dear.sh")
	lines := fmt.Sprintf("%s: Submitted job 1 (1 credit held from alice)\n%s: Submitted job 2 (1 credit held from alice)\n%s: Submitted job 3", a, b, a)
	got := s.Run("submit", "-b", "1", "--key", "k", "--each", a, bad, dear, b, "none.sh", a)
	got.Expect(t, cli.CodeUsage, lines, "candor submit: "+bad+": line 2, column 8: \"x\" is not a whole number from 0 on (Invalid)\n")
	got.Expect(t, cli.CodeUsage, "", "candor submit: "+dear+": account alice has 1 credit (Insufficient)\n")
	got.Expect(t, cli.CodeUsage, "", "candor submit: none.sh: there is no such file\n")
	s.Run("submit", "-b", "1", "--each", s.Dir).Expect(t, cli.CodeUsage, "", "candor submit: "+s.Dir+": this is a directory: name the files in it\n")
	if got := s.Run("submit", "-b", "1", "--each", "\x1b[31mred.sh"); strings.Contains(got.Err, "\x1b") {
		t.Errorf("the name of a file colours the terminal: %q", got.Err)
	}
	if len(*taken) != 1 || len((*taken)[0].Jobs) != 4 {
		t.Fatalf("%d requests, %+v", len(*taken), *taken)
	}
	s.Run("submit", "-b", "1", "--key", "k", "--each", a, dear, b).Expect(t, cli.CodeCredits, strings.TrimSuffix(lines, fmt.Sprintf("%s: Submitted job 3", a)), "")
	s.In = b + "\n" + a + "\n"
	s.Run("submit", "-b", "1", "--key", "k", "--id-only", "--each").Expect(t, 0, "2\n1\n", "")
	s.Run("submit", "-b", "1", "--id-only", "--each", "-").Expect(t, 0, "4\n5\n", "")
	got = s.Run("submit", "-b", "1", "--key", "k", "--json", "--each", a, bad, b, "none.sh")
	var reply job.SubmitReply
	if err := json.Unmarshal([]byte(got.Out), &reply); err != nil || got.Code != cli.CodeUsage || len(reply.Jobs) != 4 || reply.Jobs[3].Error == nil || reply.Jobs[3].Error.Kind != messages.Invalid ||
		reply.Jobs[0].Job != 1 || reply.Jobs[1].Error == nil || reply.Jobs[1].Error.Kind != messages.Invalid || reply.Jobs[2].Job != 2 {
		t.Errorf("%v, %+v", err, got)
	}
}

// Many jobs are submitted at once. They must be sent in several requests, so that no request has too many jobs or
// bytes. Each job for another site must have a request of its own.
func TestSubmitEachInParts(t *testing.T) {
	s := newSite(t)
	taken := together(s)
	s.Write("small.sh", "#!/bin/sh\ntrue\n")
	s.Write("large.sh", "#!/bin/sh\ntrue\n#"+strings.Repeat("x", 200<<10)+"\n")
	s.Write("away.sh", "#!/bin/sh\n#CANDOR --site east\ntrue\n")
	sizes := func() (n []int) {
		for _, r := range *taken {
			n = append(n, len(r.Jobs))
		}
		*taken = nil
		return n
	}
	for _, c := range []struct {
		files []string
		want  []int
	}{
		{slices.Repeat([]string{"small.sh"}, 2*job.MaxSubmitted+1), []int{job.MaxSubmitted, job.MaxSubmitted, 1}},
		{slices.Repeat([]string{"large.sh"}, 7), []int{3, 3, 1}},
		{[]string{"small.sh", "away.sh", "small.sh"}, []int{0, 2}},
	} {
		args := []string{"submit", "-b", "1", "--each"}
		for _, f := range c.files {
			args = append(args, s.Path(f))
		}
		if got := s.Run(args...); got.Code != 0 || strings.Count(got.Out, "Submitted job") != len(c.files) {
			t.Errorf("%d: %.1000s", got.Code, got.Out+got.Err)
		}
		if got := sizes(); !slices.Equal(got, c.want) {
			t.Errorf("requests of %v jobs, want %v", got, c.want)
		}
	}
}

// The command must exit with the code of the first file whose job did not complete.
func TestSubmitEachWaits(t *testing.T) {
	s := newSite(t)
	together(s)
	s.Write("a.sh", "#!/bin/sh\ntrue\n")
	args := []string{"submit", "-b", "1", "--wait", "--each"}
	for range 1200 {
		args = append(args, s.Path("a.sh"))
	}
	looks := 0
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (reply job.JobsReply, err error) {
		looks++
		for i, id := range r.Jobs {
			j := job.JobSummary{Job: id, Charged: 1000, State: job.Completed}
			if j.State = job.Running; i < 500 {
				j.State = job.Completed
			}
			if id == 40 || id == 700 {
				j.State, j.ExitCode = job.Failed, job.Exit(id/10)
			}
			if r.States == nil || slices.Contains(r.States, j.State.String()) {
				reply.Jobs = append(reply.Jobs, j)
			}
		}
		return reply, nil
	})
	got := s.Run(args...)
	got.Expect(t, 4, "See `candor logs 40`,", "1,200 of 1,200 jobs ended\n")
	got.Expect(t, 4, "\n1,198 of 1,200 jobs completed, 1.2 credits charged\n", "")
	if looks > 10 {
		t.Errorf("%d requests to wait for 1,200 jobs", looks)
	}
	got = s.Run(append(args[:4:4], "--each", "--json", args[5], args[6])...)
	var reply job.JobsReply
	if err := json.Unmarshal([]byte(got.Out), &reply); err != nil || got.Code != 0 || len(reply.Jobs) != 2 {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestSubmitEachRefuses(t *testing.T) {
	s := newSite(t)
	taken := together(s)
	for says, args := range map[string][]string{
		"--each: needs the names of files, and cannot be used with --wrap": {"--wrap", "true"},
		"leave \"a.sh\" out":                       {"-", "a.sh"},
		"file 2, \"-\", is not the name of a file": {"a.sh", "-"},
		"standard input names no file":             nil,
	} {
		s.Run(append([]string{"submit", "--each"}, args...)...).Expect(t, cli.CodeUsage, "", says)
	}
	if len(*taken) != 0 {
		t.Errorf("sent %+v", *taken)
	}
	lost := newSite(t)
	lost.Write("a.sh", "#!/bin/sh\ntrue\n")
	lost.Run("submit", "-b", "1", "--key", "k1", "--timeout", "1ms", "--each", lost.Path("a.sh")).
		Expect(t, cli.CodeUnavailable, "", "perhaps jobs were submitted: repeat the command with --key k1, which cannot submit them twice (Unavailable)")
}
