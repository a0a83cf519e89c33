package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/swf"
	"github.com/candor-grid/candor/messages"
)

// record returns a line of a log, for a job with these numbers.
func record(number, submit, run, processors, asked int) string {
	return fmt.Sprintf("%d %d -1 %d %d -1 -1 %d 100 -1 1 3 2 -1 1 -1 -1 -1\n", number, submit, run, processors, asked)
}

func read(t *testing.T, text string) *swf.Log {
	t.Helper()
	log, err := swf.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestRecordsBecomeJobs(t *testing.T) {
	log := read(t, "; MaxProcs: 16 (10, 6)\n"+record(1, 50, 10, -1, 4)+record(2, 20, 0, 1, -1)+record(3, -1, 10, 1, 1)+record(4, 30, -1, 1, 1)+record(5, 30, 10, -1, -1)+record(6, 90, 5, 2, 1))
	w, err := New(log, Options{Parallel: Gang, To: 80})
	if err != nil {
		t.Fatal(err)
	}
	if w.Nodes != 16 || len(w.Jobs) != 2 || w.Jobs[0].Number != 2 || w.Jobs[1].Width != 4 || w.Jobs[1].Asked != 100 || w.Jobs[1].Line != 2 {
		t.Errorf("%+v", w)
	}
	if want := (Skipped{Outside: 1, NoSubmit: 1, NoLength: 1, NoWidth: 1}); w.Skipped != want {
		t.Errorf("skipped %+v, want %+v", w.Skipped, want)
	}
	if w.Users[w.Jobs[0].User] != 3 || w.Groups[w.Jobs[0].Group] != 2 {
		t.Errorf("users %v, groups %v", w.Users, w.Groups)
	}
}

func TestLoadSqueezesTimes(t *testing.T) {
	w, err := New(read(t, record(1, 100, 10, 1, 1)+record(2, 400, 10, 1, 1)), Options{Nodes: 1, Parallel: Split, Load: 4})
	if err != nil || w.Jobs[0].Submit != 100 || w.Jobs[1].Submit != 175 || w.Jobs[1].Runtime != 10 {
		t.Errorf("%v: %+v", err, w)
	}
}

// The header of a log can give the number of slots of the machine. TestTheMachineIsFoundOrAskedFor checks which number
// is used if the header's number is missing, or is smaller than the widest job.
func TestTheMachineIsFoundOrAskedFor(t *testing.T) {
	wide := record(1, 0, 10, 8, 8)
	for _, c := range []struct {
		log   string
		nodes int
		want  int
		notes int
	}{{"; MaxProcs: 4\n" + wide, 0, 8, 1}, {"; MaxNodes: 70  (dual)\n" + wide, 0, 70, 1}, {wide, 0, 8, 1}, {"; MaxProcs: 4\n" + wide, 32, 32, 0}, {"; MaxProcs: none\n" + wide, 0, 8, 2}} {
		w, err := New(read(t, c.log), Options{Nodes: c.nodes, Parallel: Gang})
		if err != nil || w.Nodes != c.want || len(w.Notes) != c.notes {
			t.Errorf("%q: %v, %+v", c.log, err, w)
		}
	}
	if _, err := New(read(t, record(1, 0, 10, 1, 1)), Options{Parallel: Gang}); err == nil || !strings.Contains(err.Error(), "nodes: the log's header does not say") {
		t.Errorf("%v", err)
	}
}

// Each faulty record must either give an error that names its line, or be counted.
func TestUnsoundRecords(t *testing.T) {
	good := record(9, 5, 10, 1, 1)
	for name, c := range map[string]struct{ bad, want string }{
		"submitted before the beginning": {record(1, -7, 10, 1, 1), "line 2: job 1: submitted at -7 s"},
		"a negative length":              {record(1, 0, -9, 1, 1), "line 2: job 1: ran -9 s"},
		"wider than the machine":         {record(1, 0, 10, 65, 1), "line 2: job 1: needs 65 processors at the same time, but the machine has 64"},
		"too wide for any":               {record(1, 0, 10, 1<<31, 1), "line 2: job 1: has 2147483648 processors"},
		"negative processors":            {record(1, 0, 10, -5, -5), "line 2: job 1: has -5 processors"},
		"beyond all time":                {record(1, 1e15, 10, 1, 1), "line 2: job 1: submitted at"},
	} {
		log := read(t, good+c.bad)
		_, err := New(log, Options{Nodes: 64, Parallel: Gang})
		if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q", name, err, c.want)
		}
		w, err := New(log, Options{Nodes: 64, Parallel: Gang, SkipBad: true})
		if err != nil || len(w.Jobs) != 1 || w.Skipped.Bad != 1 || len(w.Notes) != 1 {
			t.Errorf("%s: skipped: %v, %+v", name, err, w)
		}
	}
}

// Each kind of wrong record must give one note. If the jobs contradict the header, there must be a further note.
func TestNotesSayWhatIsStrange(t *testing.T) {
	log, err := swf.ReadSkipping(strings.NewReader("; MaxProcs: 4\n1 2 3\n" + record(1, -5, 10, 1, 1) + record(2, -6, 10, 1, 1) + record(3, 0, 10, 8, 8)))
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(log, Options{Parallel: Split, SkipBad: true})
	want := []string{"lines with mistakes were left out: 1; the first one: line 2: the line has 3 fields, not 18",
		"the machine has 4 slots, as the header's MaxProcs says, though there are jobs of 8 processors",
		"records with mistakes were left out; the first one: line 3: job 1: submitted at -5 s: must be from 0 to 4e+09; -1 is unknown"}
	if err != nil || w.Skipped.Bad != 3 || !slices.Equal(w.Notes, want) {
		t.Errorf("%v: %d unsound, %q", err, w.Skipped.Bad, w.Notes)
	}
}

// There must be notes about repeated job numbers, jobs out of order, and an impossible machine size in the header.
func TestNotesSayWhatIsUnusual(t *testing.T) {
	two := record(1, 0, 10, 1, 1) + record(2, 5, 10, 2, 2)
	for log, want := range map[string][]string{
		"; MaxProcs: 2\n" + two: {"the machine has 2 slots, as the header's MaxProcs says"},
		"; MaxProcs: 2\n" + two + record(1, 6, 1, 1, 1) + record(2, 7, 1, 1, 1): {"the machine has 2 slots, as the header's MaxProcs says",
			"2 records have the job number of an earlier record, such as line 4 with number 1 of line 2: each record counts as a job of its own"},
		"; MaxProcs: 2\n" + two + record(3, 4, 1, 1, 1): {"the machine has 2 slots, as the header's MaxProcs says",
			"1 job was submitted earlier than the previous job of the file: the study orders jobs by their submission, not by the file"},
		"; MaxProcs: 16000000\n" + two: {"the machine has 16000000 slots, as the header's MaxProcs says, though all jobs of the log together need 3"},
		"; MaxProcs: 100000000\n" + two: {`the header's MaxProcs is ignored: "100000000" is not a number of processors from 1 to 16777216`,
			"the header does not say how many processors the machine has: the study assumes as many as the widest job has, 2"},
		"; MaxProcs: many\n; MaxNodes: 3 \n" + two: {`the header's MaxProcs is ignored: "many" is not a number of processors from 1 to 16777216`,
			"the machine has 3 slots, as the header's MaxNodes says"},
		"; MaxProcs: -1\n" + two: {"the header does not say how many processors the machine has: the study assumes as many as the widest job has, 2"},
	} {
		if w, err := New(read(t, log), Options{Parallel: Gang}); err != nil || !slices.Equal(w.Notes, want) {
			t.Errorf("%q: %v, %q", log, err, w.Notes)
		}
	}
}

func TestParallelJobsMayBeLeftOut(t *testing.T) {
	log := read(t, record(1, 0, 10, 8, 8)+record(2, 0, 10, 1, 1))
	w, err := New(log, Options{Nodes: 4, Parallel: Leave})
	if err != nil || len(w.Jobs) != 1 || w.Skipped.Parallel != 1 {
		t.Errorf("%v, %+v", err, w)
	}
	if w, err = New(log, Options{Nodes: 4, Parallel: Split}); err != nil || len(w.Jobs) != 2 { // as separate tasks, the jobs fit on the machine
		t.Errorf("%v, %+v", err, w)
	}
}

// Times of a study are limited. A log that covers a longer time must be refused.
func TestNoStudyLastsForEver(t *testing.T) {
	log := read(t, record(1, 0, 10, 1, 1)+record(2, 3e9, 10, 1, 1))
	if _, err := New(log, Options{Nodes: 1, Parallel: Gang, Load: 1e-4}); messages.KindOf(err) != messages.TooLarge {
		t.Errorf("%v", err)
	}
	var b strings.Builder
	for i := range 1200 {
		b.WriteString(record(i+1, 0, 3.9e9, 1, 1))
	}
	if _, err := New(read(t, b.String()), Options{Nodes: 1, Parallel: Gang}); messages.KindOf(err) != messages.TooLarge || !strings.Contains(err.Error(), "line 1026") {
		t.Errorf("%v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	log := read(t, record(1, 0, 10, 1, 1))
	for _, o := range []Options{{Nodes: -1, Parallel: Gang}, {Nodes: 1, Parallel: "both"}, {Nodes: 1, Parallel: Gang, Load: -1}, {Nodes: 1, Parallel: Gang, From: 10, To: 5}, {Nodes: 1, Parallel: Gang, From: 10}, {Nodes: MostNodes + 1, Parallel: Gang}} {
		if _, err := New(log, o); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func FuzzNew(f *testing.F) {
	f.Add(record(1, 0, 10, 8, 8), true)
	f.Fuzz(func(t *testing.T, text string, skip bool) {
		log, err := swf.ReadSkipping(strings.NewReader(text))
		if err != nil {
			return
		}
		if w, err := New(log, Options{Parallel: Gang, SkipBad: skip}); err == nil && (w.Nodes < 1 || len(w.Jobs)+w.Skipped.Total() != len(log.Jobs)+log.Bad.Lines) {
			t.Fatalf("%d jobs, %+v of %d records and %d bad lines", len(w.Jobs), w.Skipped, len(log.Jobs), log.Bad.Lines)
		}
	})
}
