package slurm

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
)

// TestARefusedStepReadsTheReason sends a large request to an agent that refuses it without reading it.
func TestARefusedStepReadsTheReason(t *testing.T) {
	l, err := net.Listen("unix", "@"+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_ = json.NewEncoder(conn).Encode(agent.StepAnswer{Kind: messages.NotLeader, Error: "too many"})
			_ = conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	b := &stepsBus{name: t.Name(), user: os.Getuid()}
	if _, err := b.call(ctx, &agent.StreamRequest{Input: make([]byte, 4<<20)}); messages.KindOf(err) != messages.NotLeader || messages.Detail(err) != "too many" {
		t.Error(err)
	}
}

// ranksAway starts ranks as an srun on another node does. It returns the frames to them and from them.
func ranksAway(t *testing.T, plan awayPlan) (to *json.Encoder, from func() frame) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], ranksOfStep)
	cmd.Env = append(os.Environ(), asSrun+"=yes")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(await.Patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = in.Close()
		_ = cmd.Wait()
	})
	to, frames := json.NewEncoder(in), json.NewDecoder(out)
	plan.Node, plan.Total = "node2", len(plan.Ranks)
	if err := to.Encode(plan); err != nil {
		t.Fatal(err)
	}
	return to, func() (f frame) {
		if err := frames.Decode(&f); err != nil {
			t.Fatal(err)
		}
		return f
	}
}

// Signals must reach a rank on another node that does not read its input.
func TestASignalOvertakesInputOnAnotherNode(t *testing.T) {
	to, from := ranksAway(t, awayPlan{Path: "/bin/sleep", Argv: []string{"sleep", "600"}, Ranks: []int{0}, Hears: []bool{true}})
	for range 20 {
		if err := to.Encode(frame{In: make([]byte, 32<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Encode(frame{Signal: int(syscall.SIGKILL)}); err != nil {
		t.Fatal(err)
	}
	for f := from(); !f.Over || f.Fatal != int(syscall.SIGKILL); f = from() {
		if f.Over {
			t.Fatalf("%+v", f)
		}
	}
}

// The ranks on another node ask for more input after all of them have read some. A rank that has ended reads all of it.
func TestRanksOnAnotherNodeAskForInput(t *testing.T) {
	to, from := ranksAway(t, awayPlan{Path: "/bin/sh", Argv: []string{"sh", "-c", "if [ $SLURM_PROCID = 0 ]; then exit; fi; wc -c"}, Ranks: []int{0, 1}, Hears: []bool{true, true}})
	const sent = 3 << 20
	room, left, out := 0, sent, ""
	for ends := 0; ends < 2; {
		f := from()
		for room += f.Room; room > 0 && left > 0; {
			n := min(left, 32<<10)
			room, left = room-n, left-n
			if err := to.Encode(frame{In: make([]byte, n)}); err != nil {
				t.Fatal(err)
			}
			if left == 0 {
				_ = to.Encode(frame{InOver: true})
			}
		}
		if out += string(f.Out); f.Over {
			ends++
		}
	}
	if out != "3145728\n" {
		t.Errorf("the rank has read %q", out)
	}
}

// A rank on another node that does not read the answers of PMI ends the step, also if the rank never began PMI.
func TestADeafRankOnAnotherNodeEndsItsStep(t *testing.T) {
	to, from := ranksAway(t, awayPlan{Path: "/bin/sleep", Argv: []string{"sleep", "600"}, Ranks: []int{0}, Hears: []bool{false}, PMI: "7.0"})
	if err := to.Encode(frame{PMI: make([]byte, 4<<20)}); err != nil {
		t.Fatal(err)
	}
	f := from()
	s := &ranks{pmi: newPMI([]int{0}, "7.0"), ends: make(chan rankEnd, 1)}
	r, w := io.Pipe()
	go func() {
		_ = json.NewEncoder(w).Encode(f)
		_ = w.Close()
	}()
	s.hear(&remote{p: &place{ranks: []int{0}}, frames: newFrameQueue()}, r, nil)
	select {
	case a := <-s.pmi.aborted:
		if a.why != deafRank || a.code != 1 {
			t.Errorf("%+v", a)
		}
	default:
		t.Errorf("the frame %+v does not end the step", f)
	}
	if f := from(); !f.Over || f.Fatal != int(syscall.SIGKILL) { // an earlier release of srun sends no signal
		t.Errorf("%+v", f)
	}
}

// After the ranks on another node have ended, input for them takes no memory.
func TestAnEndedQueueTakesNothing(t *testing.T) {
	r := &remote{frames: newFrameQueue()}
	input := remoteInput{r}
	r.frames.grant(4)
	for range 3 {
		_, _ = input.Write([]byte("data")) // waits for room the second time
		r.frames.end()
	}
	if text, _ := io.ReadAll(r.frames); string(text) != "{\"in\":\"ZGF0YQ==\"}\n" {
		t.Errorf("%s", text)
	}
}
