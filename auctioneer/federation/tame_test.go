package federation

import (
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// A hostile peer reports a job with impossible numbers, impossible times and endless texts. Tame must make all of them
// harmless. No text may contain characters that move a terminal's cursor.
func TestTame(t *testing.T) {
	said := &job.JobDetail{
		JobSummary: job.JobSummary{Started: -5, Ended: math.MaxInt64, Charged: math.MinInt64},
		Shares:     []job.ClassShare{{Class: "a\x1b]0;x\a", Allocated: math.NaN(), Received: math.Inf(1)}},
		Stages:     []job.StageStatus{{Name: "\x1b[2J\u202e", Class: strings.Repeat("c", 10_000), Running: -7, Done: math.MaxInt, SlotTime: math.MinInt64, Started: math.MaxInt64}},
	}
	Tame(said)
	stage, share := said.Stages[0], said.Shares[0]
	switch {
	case strings.ContainsAny(stage.Name+share.Class, "\x1b\a\u202e"), len(stage.Class) > job.MaxForeignText:
		t.Errorf("texts are %q, %q and %d bytes", stage.Name, share.Class, len(stage.Class))
	case said.Started != 0, said.Ended != lastTime, stage.Started != lastTime, said.Charged < -messages.MaxCredits:
		t.Errorf("started %v, ended %v, charged %v", said.Started, said.Ended, said.Charged)
	case share.Allocated != 0, share.Received > largest, stage.Running < -1, stage.Done > largest, stage.SlotTime < 0:
		t.Errorf("%+v, %+v", share, stage)
	}
	if _, err := wire.Marshal(said, wire.JSON); err != nil {
		t.Error(err)
	}
	log := agent.LogsReply{Data: []byte("\x1b[31mred")}
	if Tame(&log); string(log.Data) != "\x1b[31mred" {
		t.Errorf("the bytes of a log became %q", log.Data)
	}
	if err := job.Tamed(messages.Errorf(messages.Expired, "\x1b[2Jlate")); messages.KindOf(err) != messages.Expired || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("an error is %q", err)
	}
}
