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
		"refuses nothing":    {script: "#!/bin/sh\necho '{\"refuse\": \"\"}'\n", err: "its value must be a sentence"},
		"fails":              {script: "#!/bin/sh\necho boom >&2\nexit 3\n", err: "ended with exit status 3 and wrote \"boom\""},
		"writes no JSON":     {script: "#!/bin/sh\necho hello\n", err: "wrote \"hello\", which is not a JSON object"},
		"writes no job":      {script: "#!/bin/sh\necho '{\"colour\": 1}'\n", err: "wrote no job: json: unknown field"},
		"writes too much":    {script: "#!/bin/sh\nhead -c 5000000 /dev/zero\n", err: "wrote more than 4 MiB"},
		"is no program":      {script: "#!/bin/sh\n", mode: 0o644, err: "may not be executed"},
		"has no interpreter": {script: "#!/no/such/shell\n", err: "does not exist, or its interpreter"},
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
	if _, _, err := New("west", "/no/such/program").Ask(t.Context(), "alice", "", job()); err == nil || !strings.Contains(err.Error(), "does not exist") || messages.KindOf(err).Retriable() {
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
	if kinds[messages.Internal] < mostAtOnce || kinds[messages.Unavailable] < mostAsked+10-mostAskedOf || kinds[messages.Internal]+kinds[messages.Unavailable] != mostAsked+10 {
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
	// a repetition that came after the end of the program starts the program again
	if n := len(runs(dir)); n >= len(got) {
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

// TestAnAccountLeavesTheFilterToOthers lets an account, or the users of another site, submit more jobs at once than the
// filter takes. Only the jobs above the bound must be refused. When a running program ends, the filter must next be
// asked about a job of another account, although this job came later.
func TestAnAccountLeavesTheFilterToOthers(t *testing.T) {
	for name, account := range map[string]func(i int) messages.Name{
		"an account":                func(int) messages.Name { return "bob" },
		"the users of another site": func(i int) messages.Name { return messages.VisitorName("u"+strconv.Itoa(i%8), "east") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := writes(t, "#!/bin/sh\necho $CANDOR_ACCOUNT >> "+dir+"/runs\n[ $CANDOR_ACCOUNT = alice ] && exit\n"+
				"while [ ! -e "+dir+"/go ] && ! rmdir "+dir+"/one; do sleep 0.01; done\n", 0o755)
			f.within = await.Patience
			var flood sync.WaitGroup
			var refused, answered atomic.Int64
			for i := range mostAskedOf + 6 {
				flood.Go(func() {
					if _, _, err := f.Ask(t.Context(), account(i), strconv.Itoa(i), job()); err != nil {
						refused.Add(1)
					}
					answered.Add(1)
				})
			}
			await.Until(t, "programs run, and only the last jobs are refused", func() bool { return refused.Load() == 6 && len(runs(dir)) == mostAtOnce })
			asked := make(chan error, 1)
			go func() {
				_, _, err := f.Ask(t.Context(), "alice", "a", job())
				asked <- err
			}()
			await.Until(t, "alice's job waits", func() bool {
				f.mu.Lock()
				defer f.mu.Unlock()
				return f.asked == mostAskedOf+1
			})
			if err := os.Mkdir(filepath.Join(dir, "one"), 0o755); err != nil {
				t.Fatal(err)
			}
			await.Until(t, "alice's program ends", func() bool { return len(asked) > 0 })
			if err := <-asked; err != nil {
				t.Error(err)
			}
			if all := runs(dir); all[mostAtOnce] != "alice" || answered.Load() > 7 {
				t.Errorf("the programs were about jobs of %v", all)
			}
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			flood.Wait()
			if refused.Load() != 6 || len(f.of) > 0 || f.asked > 0 || f.running > 0 {
				t.Errorf("%d jobs were refused; %v, %d, %d are still counted", refused.Load(), f.of, f.asked, f.running)
			}
		})
	}
}

// TestManyAccountsLeaveTheFilterToOthers lets accounts submit as many jobs as they may, so that the filter program is
// busy. Jobs of other accounts must still be accepted.
func TestManyAccountsLeaveTheFilterToOthers(t *testing.T) {
	f := New("west", "/no/such/program")
	enter := func(account messages.Name) (n int) {
		for {
			if _, err := f.enter(account); err != nil {
				if messages.KindOf(err) != messages.Unavailable {
					t.Fatal(err)
				}
				return n
			}
			n++
		}
	}
	for i, want := range []int{mostAskedOf, mostAskedOf, alwaysOf, alwaysOf} {
		if n := enter(messages.Name("account" + strconv.Itoa(i))); n != want {
			t.Errorf("account %d: %d jobs, want %d", i, n, want)
		}
	}
	for i := range mostAsked {
		enter(messages.Name("more" + strconv.Itoa(i)))
	}
	if f.asked != mostAsked {
		t.Errorf("%d jobs, want %d", f.asked, mostAsked)
	}
}

// TestASubmissionWaitsForItsTurn submits more jobs than programs may run at the same time, namely one job more. The
// last job must wait and be answered. If its wait is too long, the refusal must say why.
func TestASubmissionWaitsForItsTurn(t *testing.T) {
	dir := t.TempDir()
	f := writes(t, "#!/bin/sh\necho run >> "+dir+"/runs\nwhile [ ! -e "+dir+"/go ]; do sleep 0.01; done\n", 0o755)
	f.within = await.Patience
	var all sync.WaitGroup
	ask := func(id string) {
		if _, _, err := f.Ask(t.Context(), "alice", id, job()); err != nil {
			t.Errorf("job %s: %v", id, err)
		}
	}
	for i := range mostAtOnce {
		all.Go(func() { ask(strconv.Itoa(i)) })
	}
	await.Until(t, "programs run", func() bool { return len(runs(dir)) == mostAtOnce })
	f.within = 50 * time.Millisecond
	if _, _, err := f.Ask(t.Context(), "alice", "too long", job()); messages.KindOf(err) != messages.Unavailable || !strings.Contains(err.Error(), "busy with other jobs for 30ms") {
		t.Errorf("after a long wait: %v", err)
	}
	f.within = await.Patience
	all.Go(func() { ask("waits") })
	await.Until(t, "a job waits", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.waiting) == 1
	})
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	all.Wait()
}

func runs(dir string) []string {
	text, _ := os.ReadFile(filepath.Join(dir, "runs"))
	return strings.Fields(string(text))
}
