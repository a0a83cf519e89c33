package client

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// TestLogsSayWhatIsMissing reads logs that lack a part, because the node did not keep it. A separate line must say what
// is missing. If lines begin with the name of the task, this line must begin with it too.
func TestLogsSayWhatIsMissing(t *testing.T) {
	s := newSite(t)
	serveAt(s, messages.LogsSubject("west", "n1", "*"), "logs", func(r agent.LogsRequest) (agent.LogsReply, error) {
		if r.Offset == 0 {
			return agent.LogsReply{Data: []byte("first\nhal"), Next: 9}, nil
		}
		return agent.LogsReply{Data: []byte("f\nlast\n"), Next: 1016, Missing: 1000, End: true}, nil
	})
	n := 1
	withTasks(s, func() []job.TaskStatus {
		return []job.TaskStatus{task(attempt(0, 0, 1), "n1"), task(attempt(0, 1, 1), "n1")}[:n]
	})
	reply(s, messages.Auctioneer, messages.VerbJob, twoStages(job.Completed, 2, 0))
	const line = "[candor: 1,000 bytes of the output are missing here: the site limits the size of an output]\n"
	one := []string{"logs", "5", "--stage", "map", "--task", "0"}
	s.run(one...).expect(t, cli.CodeOK, "first\nhal\n"+line+"f\nlast\n", "")
	s.run(append(one, "-f")...).expect(t, cli.CodeOK, "first\nhal\n"+line+"f\nlast\n", "")
	s.run(append(one, "--json")...).expect(t, cli.CodeOK, `"missing":1000`, "")
	n = 2
	if got := s.run("logs", "5"); strings.Count(got.out, " | "+line) != 2 {
		t.Errorf("%q", got.out)
	}
}
