package auctioneer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// laden returns a job that makes an answer large: its stages share an environment of about 740 kB.
func laden(stages int) job.JobSpec {
	s := job.JobSpec{Name: "laden", Budget: 10 * messages.Credit}
	for i := range 180 {
		s.Env = append(s.Env, job.Variable{Name: fmt.Sprintf("V%03d", i), Value: strings.Repeat("x", job.MaxTextField)})
	}
	for i := range stages {
		s.Stages = append(s.Stages, job.Stage{Name: fmt.Sprintf("s%d", i), Command: []string{"true"}})
	}
	return s
}

// Tasks of large jobs are claimed. The answer must have only as many tasks as fit into it. A later exchange must claim
// the tasks that did not fit.
func TestOneExchangeIsNeverTooLarge(t *testing.T) {
	for _, able := range []bool{true, false} {
		t.Run(fmt.Sprintf("able=%v", able), func(t *testing.T) {
			f := start(t)
			const stages = 12
			id := f.submit("alice", "k", laden(stages)).Job
			r := agent.RegisterRequest{Session: 7, Slots: []job.ClassSlots{{Class: "map", Slots: stages}}}
			if able {
				r.Abilities = []messages.Name{agent.AbilitySharedEnv}
			}
			must[agent.RegisterReply](f, "n1", messages.VerbRegister, r)
			granted := 0
			for seq := uint64(1); granted < stages; seq++ {
				if seq > stages {
					t.Fatalf("%d of %d tasks were granted by %d exchanges", granted, stages, seq)
				}
				g := f.claim("n1", seq, id, stages)
				agent.ShareEnv(g.Programs)
				for _, grant := range g.Grants {
					ran := false
					for _, p := range g.Programs {
						ran = ran || p.Job == id && p.Stage == grant.Attempt.Task.Stage && len(p.Env) == 180
					}
					if !ran {
						t.Fatalf("stage %d was granted without its program and environment", grant.Attempt.Task.Stage)
					}
				}
				if able && len(g.Grants) != stages {
					t.Fatalf("%d of %d were granted", len(g.Grants), stages)
				}
				granted += len(g.Grants)
			}
		})
	}
}

// An exchange has a claim for a removed market. Its other claims and its finished tasks must be carried out.
func TestAClaimForAMarketThatIsGoneIsDropped(t *testing.T) {
	f := start(t)
	id := f.submit("alice", "k", oneStage(2)).Job
	f.register("n1", 2)
	g := f.claim("n1", 1, id, 1)
	reply := must[agent.ExchangeReply](f, "n1", messages.VerbExchange, agent.Exchange{Session: 7, Seq: 2,
		Finished: []agent.Finished{{Attempt: g.Grants[0].Attempt}},
		Claims: []agent.Claim{{Market: "gone", Class: "map", Job: id, Slots: 1}, {Market: "main", Class: "gone", Job: id, Slots: 1},
			{Market: "main", Class: "map", Job: id, Slots: -1}, {Market: "main", Class: "map", Job: id, Slots: 1}}})
	if len(reply.Grants) != 1 {
		t.Fatalf("granted %+v", reply.Grants)
	}
}
