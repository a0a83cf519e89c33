package market

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

// heavy returns a job with stages of one class: the largest possible job, or a small one.
func heavy(rng *rand.Rand) *job.JobSpec {
	s := &job.JobSpec{Market: "main", Budget: 1}
	text := func(most int) string { return strings.Repeat("x", 1+rng.IntN(most)) }
	for room := job.MaxProgram; len(s.Stages) < 1+rng.IntN(job.MaxStages); {
		stage := job.Stage{Name: fmt.Sprintf("s%d", len(s.Stages)), Class: "cpu", Tasks: 1 + rng.IntN(3), Script: text(min(room, 100_000))}
		if room -= len(stage.Script); room < 10_000 {
			break
		}
		s.Stages = append(s.Stages, stage)
	}
	if rng.IntN(2) == 0 {
		for i := range rng.IntN(150) {
			s.Env = append(s.Env, job.Variable{Name: fmt.Sprintf("V%03d", i), Value: text(job.MaxTextField)})
		}
	}
	if len(s.Stages) == 0 {
		s.Stages = []job.Stage{{Name: "s", Class: "cpu", Tasks: 5000, Script: "true"}}
	}
	return s
}

// Claims are cut so that the answer is not too large for a message. Whichever tasks are granted after that, the answer
// must contain all their programs and must not be too large. At least one task must be granted.
func TestWhatFitsCanBeAnswered(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := book.New()
		for i := range 20 {
			if r, ok := b.Apply(&book.Command{Submit: &book.Submit{Account: "alice", Key: fmt.Sprint(i), Payer: "alice", Spec: heavy(rng)}}).(book.Receipt); !ok {
				t.Fatalf("seed %d: %v", seed, r)
			}
		}
		register := &book.Register{Node: "n1", Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 40_000}}}
		if seed%2 == 0 {
			register.Abilities = []messages.Name{agentmsg.AbilitySharedEnv}
		}
		b.Apply(&book.Command{Register: register})
		for seq := range uint64(5) {
			var claims []book.Claim
			for range 1 + rng.IntN(5) {
				c := book.Claim{Class: "cpu", Slots: 1 + rng.IntN(20_000)}
				for range 1 + rng.IntN(4) {
					c.Jobs, c.Most = append(c.Jobs, messages.JobID(1+rng.IntN(20))), append(c.Most, 1<<20)
				}
				claims = append(claims, c)
			}
			grants := b.Apply(&book.Command{Exchange: &book.Exchange{Node: "n1", Session: 1, Seq: seq + 1, Claims: CutToReply(b, "n1", claims)}}).([]agentmsg.Grant)
			if seq == 0 && len(grants) == 0 {
				t.Fatalf("seed %d: nothing was granted", seed)
			}
			reply := agentmsg.ExchangeReply{Grants: grants, Programs: Programs(b, "n1", grants)}
			data, err := wire.Marshal(&reply, wire.Msgpack)
			if err != nil || len(data) > wire.MaxPayload/2 {
				t.Fatalf("seed %d: %d bytes, %v", seed, len(data), err)
			}
			for _, g := range grants {
				if !slices.ContainsFunc(reply.Programs, func(p agentmsg.Program) bool { return p.Job == g.Attempt.Task.Job && p.Stage == g.Attempt.Task.Stage }) {
					t.Fatalf("seed %d: %v has no program", seed, g)
				}
			}
		}
	}
}

// Two markets have the same class of slots, and a job of the other market waits. A claim for this market must not get
// that job. This must hold even if the market's mechanism does not choose the jobs for claims itself.
func TestClaimsStayInTheirMarket(t *testing.T) {
	b := book.New()
	b.Apply(&book.Command{Submit: &book.Submit{Account: "alice", Key: "k", Spec: &job.JobSpec{Market: "other", Budget: 1,
		Stages: []job.Stage{{Name: "s", Class: "cpu", Script: "true"}}}}})
	m := New(mechanism.Manner{}, market.Market{Name: "main", Classes: []messages.Name{"cpu"}}, nil)
	c := m.ReserveClaim(b, "n1", &agentmsg.Claim{Market: "main", Class: "cpu", Job: 1, Slots: 1}, 0, rand.New(rand.NewPCG(1, 1)))
	if len(c.Jobs) != 0 {
		t.Errorf("claims %v", c.Jobs)
	}
}
