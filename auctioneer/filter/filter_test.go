package filter

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

func job() *jobmsg.JobSpec {
	return &jobmsg.JobSpec{Name: "sort", Budget: messages.Credit, Market: "main",
		Stages: []jobmsg.Stage{{Name: "a", Class: "cpu", Tasks: 2, Script: "#!/bin/sh\nsort <in >out && echo \"é\"\n", Licenses: jobmsg.Licenses{{Name: "matlab", Count: 1}}}}}
}

func writes(t *testing.T, script string, mode os.FileMode) *Filter {
	t.Helper()
	path := filepath.Join(t.TempDir(), "filter")
	if err := os.WriteFile(path, []byte(script), mode); err != nil {
		t.Fatal(err)
	}
	return New("west", path)
}

// A program (the filter) is asked about each submitted job. Here it gives each kind of answer. After an invalid answer,
// the job must be refused, and the error must say what is wrong with the program.
func TestAskTakesEachAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		script, err string
		mode        os.FileMode
		changes     []string
	}{
		"says nothing":       {script: "#!/bin/sh\nexit 0\n"},
		"repeats the job":    {script: "#!/bin/sh\ncat\n"},
		"changes the job":    {script: "#!/bin/sh\nsed -e 's/\"market\":\"main\"/\"market\":\"gpu\"/' -e 's/\"tasks\":2/\"tasks\":1,\"cpus\":4/'\n", changes: []string{"market: main → gpu", "stages[0].cpus: none → 4", "stages[0].tasks: 2 → 1"}},
		"knows the account":  {script: "#!/bin/sh\necho \"{\\\"refuse\\\": \\\"$CANDOR_ACCOUNT at $CANDOR_SITE\\\"}\"\n", err: "the site's rules for jobs: alice at west"},
		"refuses nothing":    {script: "#!/bin/sh\necho '{\"refuse\": \"\"}'\n", err: "where refuse must be a sentence"},
		"fails":              {script: "#!/bin/sh\necho boom >&2\nexit 3\n", err: "ended with exit status 3 and wrote \"boom\""},
		"writes no JSON":     {script: "#!/bin/sh\necho hello\n", err: "wrote \"hello\", which is no JSON object"},
		"writes no job":      {script: "#!/bin/sh\necho '{\"colour\": 1}'\n", err: "wrote no job: json: unknown field"},
		"writes too much":    {script: "#!/bin/sh\nhead -c 5000000 /dev/zero\n", err: "wrote more than 4 MiB"},
		"is no program":      {script: "#!/bin/sh\n", mode: 0o644, err: "may not be executed"},
		"has no interpreter": {script: "#!/no/such/shell\n", err: "is not there, or its interpreter"},
	} {
		if c.mode == 0 {
			c.mode = 0o755
		}
		spec := job()
		got, changes, err := writes(t, c.script, c.mode).Ask(t.Context(), "alice", "", spec)
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) || !slices.Equal(changes, c.changes) {
			t.Errorf("a program that %s: %v, %v, want %v, %s", name, changes, err, c.changes, c.err)
		}
		if err == nil && got.Stages[0].Script != job().Stages[0].Script {
			t.Errorf("a program that %s: script %q", name, got.Stages[0].Script)
		}
	}
	if _, _, err := New("west", "/no/such/program").Ask(t.Context(), "alice", "", job()); err == nil || !strings.Contains(err.Error(), "is not there") || messages.KindOf(err).Retriable() {
		t.Errorf("a program that is not there: %v", err)
	}
	if New("west", "") != nil {
		t.Error("a site without a program has a filter")
	}
}

// A program that hangs is ended with all processes that it started. Submissions that wait too long must be told to try
// again. Only a limited number may wait.
func TestAHangingProgramEnds(t *testing.T) {
	f := writes(t, "#!/bin/sh\nsleep 60 &\nsleep 60\n", 0o755)
	f.within = 300 * time.Millisecond
	began := time.Now()
	var asked sync.WaitGroup
	var mu sync.Mutex
	kinds := map[messages.Kind]int{}
	for i := range mostAsked + 10 {
		asked.Go(func() {
			_, _, err := f.Ask(context.Background(), "alice", strconv.Itoa(i), job())
			mu.Lock()
			defer mu.Unlock()
			kinds[messages.KindOf(err)]++
		})
	}
	asked.Wait()
	if kinds[messages.Internal] < mostAtOnce || kinds[messages.Unavailable] < 10 || kinds[messages.Internal]+kinds[messages.Unavailable] != mostAsked+10 {
		t.Errorf("%v", kinds)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

// Clients repeat a submission while the filter program runs. The program must run only once, and each repetition must
// get its answer, with a separate copy of the job. If the program fails, a repetition that comes later must get the
// error at once.
func TestARepeatedSubmissionIsAskedAboutOnce(t *testing.T) {
	dir := t.TempDir()
	f := writes(t, "#!/bin/sh\necho run >> "+dir+"/runs\nwhile [ ! -e "+dir+"/go ]; do sleep 0.01; done\nsed 's/sort/other/'\n", 0o755)
	var asked sync.WaitGroup
	var got [4]*jobmsg.JobSpec
	for i := range got {
		asked.Go(func() {
			var err error
			if got[i], _, err = f.Ask(t.Context(), "alice", "a", job()); err != nil || got[i].Name != "other" {
				t.Errorf("%+v, %v", got[i], err)
			}
		})
	}
	await.Until(t, "the program runs", func() bool { return len(runs(dir)) > 0 })
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	asked.Wait()
	if n := len(runs(dir)); n >= len(got) { // a repetition that came after the end asks again
		t.Errorf("the program ran %d times", n)
	}
	if got[0] != nil && got[1] != nil && &got[0].Stages[0] == &got[1].Stages[0] {
		t.Error("two repetitions have the same stages")
	}
	f.within = 100 * time.Millisecond
	if err := os.Remove(filepath.Join(dir, "go")); err != nil {
		t.Fatal(err)
	}
	before := len(runs(dir))
	for range 2 {
		if _, _, err := f.Ask(t.Context(), "alice", "b", job()); err == nil || !strings.Contains(err.Error(), "did not end within") {
			t.Errorf("%v", err)
		}
	}
	if n := len(runs(dir)) - before; n != 1 {
		t.Errorf("the program that hangs ran %d times", n)
	}
}

// TestAnAccountLeavesTheFilterToOthers lets an account submit more jobs at once than the filter takes, while the program
// is slow. The account's further jobs must wait, and must be refused only if they wait too long. A job of another
// account must be asked about meanwhile.
func TestAnAccountLeavesTheFilterToOthers(t *testing.T) {
	dir := t.TempDir()
	f := writes(t, "#!/bin/sh\nwhile [ ! -e "+dir+"/go ]; do sleep 0.01; done\n", 0o755)
	f.within = await.Patience
	var flood sync.WaitGroup
	var refused atomic.Int64
	for i := range mostAskedOf + mostWaitOf + 6 {
		flood.Go(func() {
			if _, _, err := f.Ask(t.Context(), "bob", strconv.Itoa(i), job()); err != nil {
				refused.Add(1)
			}
		})
	}
	await.Until(t, "bob's jobs have their places, and only the last jobs are refused", func() bool {
		return refused.Load() == 6 && len(f.asked) == mostAskedOf
	})
	answered := make(chan error, 1)
	go func() {
		_, _, err := f.Ask(t.Context(), "alice", "a", job())
		answered <- err
	}()
	await.Until(t, "alice's job is asked about or refused", func() bool {
		return len(f.asked) == mostAskedOf+1 || len(answered) > 0
	})
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	flood.Wait()
	if refused.Load() != 6 || len(f.of) > 0 || len(f.asked) > 0 {
		t.Errorf("%d jobs were refused; %v, %d are still counted", refused.Load(), f.of, len(f.asked))
	}
}

// TestASubmissionWaitsForItsAccount submits one job more than the filter takes of an account. The job must wait and be
// answered. If its wait is too long, the refusal must say why.
func TestASubmissionWaitsForItsAccount(t *testing.T) {
	dir := t.TempDir()
	f := writes(t, "#!/bin/sh\nwhile [ ! -e "+dir+"/go ]; do sleep 0.01; done\n", 0o755)
	f.within = await.Patience
	ask := func(id string) <-chan error {
		answered := make(chan error, 1)
		go func() {
			_, _, err := f.Ask(t.Context(), "alice", id, job())
			answered <- err
		}()
		return answered
	}
	var all []<-chan error
	for i := range mostAskedOf {
		all = append(all, ask(strconv.Itoa(i)))
	}
	await.Until(t, "the account's places are taken", func() bool { return len(f.asked) == mostAskedOf })
	all = append(all, ask("waits"))
	select {
	case err := <-all[mostAskedOf]:
		t.Fatalf("the job did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	f.mu.Lock()
	places := f.of["alice"]
	f.mu.Unlock()
	brief := &Filter{within: 50 * time.Millisecond}
	if _, err := brief.run(t.Context(), places, "alice", nil); messages.KindOf(err) != messages.Unavailable || !strings.Contains(err.Error(), "16 other jobs of account alice for 25ms") {
		t.Errorf("after a long wait: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for i, answered := range all {
		if err := <-answered; err != nil {
			t.Errorf("job %d: %v", i, err)
		}
	}
}

func runs(dir string) []string {
	text, _ := os.ReadFile(filepath.Join(dir, "runs"))
	return strings.Fields(string(text))
}
