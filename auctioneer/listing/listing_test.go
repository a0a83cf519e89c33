package listing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// jobs returns some jobs, newest first, as a site shows them.
func jobs() []job.JobSummary {
	return []job.JobSummary{
		{Job: 6, Name: "train-b", Market: "gpu", Payer: "lab", State: job.Running, Submitted: 60, Charged: 0, Labels: job.Labels{{Name: "run", Value: "8"}}},
		{Job: 5, Name: "train-a", Market: "gpu", Payer: "lab", State: job.Failed, Submitted: 50, Ended: 58, Charged: 7, Labels: job.Labels{{Name: "run", Value: "7"}, {Name: "user", Value: ""}}},
		{Job: 4, Name: "çount", Market: "main", Payer: "ada", State: job.Completed, Submitted: 40, Ended: 44, Charged: 9},
		{Job: 3, Name: "trail", Market: "main", Payer: "ada", State: job.Cancelled, Submitted: 30, Ended: 41, Charged: 7},
		{Job: 2, Name: "", Market: "main", Payer: "ada", State: job.Completed, Submitted: 20, Ended: 25, Charged: 1},
		{Job: 1, Name: "train", Market: "main", Payer: "ada", State: job.Waiting, Submitted: 10},
	}
}

func list(t *testing.T, all []job.JobSummary, r job.JobsRequest) job.JobsReply {
	t.Helper()
	p, err := New(&r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if p.Add(&all[i]) {
			break
		}
	}
	return p.Reply(func(id messages.JobID) (s job.JobSummary, ok bool) {
		i := slices.IndexFunc(all, func(j job.JobSummary) bool { return j.Job == id })
		if i < 0 {
			return s, false
		}
		return all[i], true
	})
}

func numbers(r job.JobsReply) (ids []int) {
	for _, j := range r.Jobs {
		ids = append(ids, int(j.Job))
	}
	return ids
}

// Archive files without any of the requested jobs are not read.
func TestNamedJobsAreLookedForWhereTheyCanBe(t *testing.T) {
	p, err := New(&job.JobsRequest{Jobs: []messages.JobID{7, 30}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		oldest, newest messages.JobID
		want           bool
	}{{1, 6, false}, {1, 7, true}, {8, 29, false}, {30, 40, true}, {31, 40, false}} {
		if got := p.Wants(c.oldest, c.newest, 0, 1); got != c.want {
			t.Errorf("jobs %d to %d are wanted: %v", c.oldest, c.newest, got)
		}
	}
	if p.Names(8) || !p.Names(30) {
		t.Error("8 is named, or 30 is not")
	}
}

func TestWhichJobsFit(t *testing.T) {
	for name, c := range map[string]struct {
		r    job.JobsRequest
		want []int
	}{
		"all":                   {job.JobsRequest{}, []int{6, 5, 4, 3, 2, 1}},
		"active":                {job.JobsRequest{Active: true}, []int{6, 1}},
		"numbers":               {job.JobsRequest{Jobs: []messages.JobID{2, 9, 5}}, []int{5, 2}},
		"before":                {job.JobsRequest{Before: 3}, []int{2, 1}},
		"states":                {job.JobsRequest{States: []string{"Failed", "Running"}}, []int{6, 5}},
		"name":                  {job.JobsRequest{Name: "train"}, []int{1}},
		"names":                 {job.JobsRequest{Name: "train*"}, []int{6, 5, 1}},
		"any character":         {job.JobsRequest{Name: "?ount"}, []int{4}},
		"ends":                  {job.JobsRequest{Name: "*-?"}, []int{6, 5}},
		"market":                {job.JobsRequest{Market: "gpu"}, []int{6, 5}},
		"project":               {job.JobsRequest{Project: "lab"}, []int{6, 5}},
		"label":                 {job.JobsRequest{Labels: []string{"run=7"}}, []int{5}},
		"label of any value":    {job.JobsRequest{Labels: []string{"run"}}, []int{6, 5}},
		"label without a value": {job.JobsRequest{Labels: []string{"run", "user="}}, []int{5}},
		"since: ended later":    {job.JobsRequest{Since: 44}, []int{6, 5, 4, 1}},
		"until: submitted":      {job.JobsRequest{Until: 30}, []int{2, 1}},
		"a time between":        {job.JobsRequest{Since: 42, Until: 50}, []int{4, 1}},
		"failed since":          {job.JobsRequest{States: []string{"Failed"}, Since: 59}, nil},
	} {
		if got := numbers(list(t, jobs(), c.r)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// All pages together have each job once, for every order and page size.
func TestPagesJoin(t *testing.T) {
	for _, by := range job.JobSortings {
		for _, sort := range []string{by, "-" + by} {
			whole := numbers(list(t, jobs(), job.JobsRequest{Sort: sort}))
			if len(whole) != 6 {
				t.Fatalf("%s: %v", sort, whole)
			}
			for limit := 1; limit <= 6; limit++ {
				var joined []int
				r := job.JobsRequest{Sort: sort, Limit: limit}
				for {
					page := list(t, jobs(), r)
					joined = append(joined, numbers(page)...)
					if r.After = page.Next; page.More != (page.Next != "") {
						t.Fatalf("%s: %+v", sort, page)
					}
					if !page.More {
						break
					}
				}
				if !slices.Equal(joined, whole) {
					t.Errorf("%s by %d: %v, want %v", sort, limit, joined, whole)
				}
			}
		}
	}
}

func TestOrder(t *testing.T) {
	for sort, want := range map[string][]int{
		"job": {1, 2, 3, 4, 5, 6}, "-charged": {4, 5, 3, 2, 6, 1}, "charged": {6, 1, 2, 5, 3, 4}, "name": {2, 3, 1, 5, 6, 4}, "-ended": {5, 4, 3, 2, 6, 1},
	} {
		if got := numbers(list(t, jobs(), job.JobsRequest{Sort: sort})); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", sort, got, want)
		}
	}
}

func TestAPageIsBounded(t *testing.T) {
	var many []job.JobSummary
	for i := range 20_000 {
		many = append(many, job.JobSummary{Job: messages.JobID(20_000 - i), Charged: messages.Credits(i * 7919 % 20_000), Name: strings.Repeat("n", job.MaxTextField)})
	}
	p, err := New(&job.JobsRequest{Sort: "-charged", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range many {
		if p.Add(&many[i]); len(p.found) > 4*p.limit+65 {
			t.Fatalf("%d jobs are kept for a page of 10", len(p.found))
		}
	}
	r := list(t, many, job.JobsRequest{Sort: "-charged", Limit: 3})
	if len(r.Jobs) != 3 || r.Jobs[0].Charged != 19_999 || r.Jobs[2].Charged != 19_997 {
		t.Errorf("%v", numbers(r))
	}
	if r := list(t, many, job.JobsRequest{Limit: MostLimit}); len(r.Jobs) > 300 || !r.More {
		t.Errorf("%d jobs with long names in one answer", len(r.Jobs))
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"*", "x/y", true}, {"a*b*c", "a--b--c", true}, {"a*b*c", "a--c--b", false}, {"ab*ba", "aba", false},
		{"a?c", "aäc", true}, {"a?c", "ac", false}, {"*?b?*", "xaby", true}, {"*?b?*", "b", false}, {"[ab]", "a", false}, {"a", "ab", false},
		{"*a*?", "ba", false}, {"*a*?", "bac", true},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("%q and %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestWhatCannotBeAsked(t *testing.T) {
	for want, r := range map[string]job.JobsRequest{
		`state "failed"`:                {States: []string{"failed"}},
		"limit: must be":                {Limit: MostLimit + 1},
		`cannot be sorted by "luck"`:    {Sort: "-luck"},
		"is not from an earlier answer": {After: "x"},
		"is not the name":               {Labels: []string{"=7"}},
		"is not the value":              {Labels: []string{"run=-"}},
		"is not after since":            {Since: 5, Until: 5},
		"name: the pattern has":         {Name: strings.Repeat("*", maxPattern+1)},
		"labels: 17":                    {Labels: make([]string, 17)},
	} {
		if _, err := New(&r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func BenchmarkSortedPage(b *testing.B) {
	all := make([]job.JobSummary, 20_000)
	for i := range all {
		all[i] = job.JobSummary{Job: messages.JobID(len(all) - i), Name: fmt.Sprint("train-", i), Charged: messages.Credits(i * 7919 % len(all))}
	}
	for b.Loop() {
		p, _ := New(&job.JobsRequest{Sort: "-charged", Name: "*train*"})
		for i := range all {
			p.Add(&all[i])
		}
		p.cut()
	}
}
