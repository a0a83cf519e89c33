package book

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// variousJobs returns waiting jobs for a test of storage. They have texts of different lengths, and different fields
// are set.
func variousJobs() (out []*Job) {
	for i, n := range []int{0, 1, 5, 31, 32, 200, 255, 256, 3000} {
		for k, hold := range []string{"job/site/A/K", "A/K", "K", "", "job/A/A/K/rest"} {
			key, account := strings.Repeat("k", n), strings.Repeat("a", 1+min(n, 60))
			spec := &job.JobSpec{Name: fmt.Sprint("name", i), Market: "main", Budget: messages.Credits(n), Stages: []job.Stage{{Name: "one", Class: "map", Command: slices.Repeat([]string{"x"}, k)}}}
			if k%2 == 1 {
				spec.Utility = &job.Utility{Form: job.Linear, Weights: job.Weights{{Class: "map", Weight: float64(1 + n)}, {Class: "reduce", Weight: 2}}}
				spec.Stages = append(spec.Stages, job.Stage{Name: "two", Class: "reduce", Script: "echo", After: []messages.Name{"one"}})
			}
			if k == 3 {
				spec.Valuation = &job.Valuation{Points: []job.ValuationPoint{{At: float64(n), Part: 1}}}
			}
			j := newJob(&Submit{Account: account, Key: key, Digest: []byte(key), Payer: account, Spec: spec, Held: spec.Budget}, messages.JobID(len(out)+1), messages.Time(n))
			j.Hold = strings.NewReplacer("A", account, "K", key).Replace(hold)
			out = append(out, j)
		}
	}
	for _, key := range []string{"a/a", "a/a/a/", "x\xa1a/", "a/x\xc4"} { // keys that look like the bytes that follow them
		j := newJob(&Submit{Account: "a", Key: key, Digest: []byte("a/" + key), Payer: "a", Spec: out[0].Spec, Hold: "job/site/a/" + key}, messages.JobID(len(out)+1), 0)
		out = append(out, j)
	}
	return out
}

// A packed job must have the same record as the unpacked job. The index must find it by its account and its key. A
// short key must be in memory only once.
func TestPackedRecords(t *testing.T) {
	keys := map[string]bool{}
	for i, j := range variousJobs() {
		packed := j.pack()
		want, err := wire.Marshal(j, wire.Msgpack)
		if err != nil {
			t.Fatal(err)
		}
		if packed == "" {
			if len(want) <= mostPacked {
				t.Errorf("job %d, of %d bytes, is not packed", i, len(want))
			}
			continue
		}
		if got := appendRecord(nil, packed); string(got) != string(want) {
			t.Errorf("job %d: %q\nwant  %q", i, got, want)
		}
		key := keyOf(packed, j.Account, j.Key)
		if key != owned(j.Account, j.Key) {
			t.Errorf("job %d: key %q", i, key)
		}
		keys[key] = true
	}
	if len(keys) < 7 {
		t.Errorf("%d different keys", len(keys))
	}
	if a, b := owned("a", "b/c"), owned("a/b", "c"); a == b {
		t.Errorf("%q is of two jobs", a)
	}
}

func TestGlance(t *testing.T) {
	s := table{chunks: map[messages.JobID]*chunk{}}
	jobs := variousJobs()
	for _, j := range jobs {
		s.put(j)
		s.warm[j.ID%warmJobs].Store(nil)
	}
	var spare Spare
	for _, step := range []int{1, 7, 11} {
		for i := range jobs {
			want := jobs[i*step%len(jobs)]
			if packed := want.pack(); packed != "" {
				want = unpack(packed)
			}
			if got := s.glance(want.ID, &spare); !reflect.DeepEqual(got, want) {
				t.Fatalf("job %d: %+v, want %+v", want.ID, got, want)
			}
		}
	}
	if s.glance(9999, &spare) != nil {
		t.Error("there is no such job")
	}
}
