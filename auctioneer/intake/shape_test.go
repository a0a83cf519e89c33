package intake_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func TestAShapeIsRefusedWhereAClassHasNoUnit(t *testing.T) {
	for said, change := range map[string]func(*job.Stage){
		"cpus":                     func(s *job.Stage) { s.CPUs = 1 },
		"gpus":                     func(s *job.Stage) { s.Class, s.GPUs = "cpu", 1 },
		"disk":                     func(s *job.Stage) { s.Disk = 1 },
		"a whole node (exclusive)": func(s *job.Stage) { s.Exclusive = true },
		"all memory of a node":     func(s *job.Stage) { s.Memory = job.AllMemory },
		"":                         func(s *job.Stage) { s.Memory, s.Width = 1<<20, 9 }, // a stage may limit its memory
	} {
		r := rules()
		spec := &request("k").Spec
		change(&spec.Stages[0])
		err := r.Complete("alice", spec)
		switch {
		case said == "" && (err != nil || spec.Stages[0].Width != 0):
			t.Errorf("memory alone: %v, width %d", err, spec.Stages[0].Width)
		case said != "" && (err == nil || !strings.Contains(err.Error(), "asks for "+said+", but a slot")):
			t.Errorf("%s: %v", said, err)
		}
	}
}

// shaped returns rules with a class of a defined slot size, and a book with two nodes of this class.
func shaped(t *testing.T, mechanism messages.Name) (*intake.Rules, *book.Book) {
	t.Helper()
	r := rules()
	r.Configs = []market.Market{{Name: "share", Mechanism: mechanism, Classes: []messages.Name{"cpu", "gpu"}, Units: []job.ClassUnit{
		{Class: "cpu", Unit: job.Resources{CPUs: 1, Memory: 4 << 30}}, {Class: "gpu", Unit: job.Resources{GPUs: 1}}}}}
	b := book.New()
	for i, n := range []job.ClassSlots{{Class: "cpu", Slots: 4}, {Class: "cpu", Slots: 16}} {
		b.Apply(&book.Command{At: epoch, Register: &book.Register{Node: "n" + string(rune('1'+i)), Session: 1, Slots: []job.ClassSlots{n}, Labels: []messages.Name{"ib"}}})
	}
	b.Apply(&book.Command{At: epoch, Register: &book.Register{Node: "g1", Session: 1, Slots: []job.ClassSlots{{Class: "gpu", Slots: 4}},
		Resources: &job.Resources{CPUs: 8, GPUs: 4, GPUType: "v100"}}})
	return r, b
}

func TestAShapeHasAWidth(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*job.Stage)
		width  int
		needs  job.Resources
	}{
		{"nothing", func(*job.Stage) {}, 1, job.Resources{CPUs: 1, Memory: 4 << 30}},
		{"cpus", func(s *job.Stage) { s.CPUs = 3 }, 3, job.Resources{CPUs: 3, Memory: 12 << 30}},
		{"memory", func(s *job.Stage) { s.Memory = 9 << 30 }, 3, job.Resources{CPUs: 3, Memory: 9 << 30}},
		{"a node", func(s *job.Stage) { s.Exclusive = true }, 16, job.Resources{CPUs: 16, Memory: 64 << 30}},
		{"a node for 2 cpus", func(s *job.Stage) { s.CPUs, s.Memory, s.Exclusive = 2, 1<<30, true }, 16, job.Resources{CPUs: 16, Memory: 1 << 30}},
		{"a node for a GPU", func(s *job.Stage) { s.Class, s.GPUs, s.GPUType, s.Exclusive = "gpu", 1, "v100", true }, 4, job.Resources{GPUs: 4, GPUType: "v100"}},
		{"all memory", func(s *job.Stage) { s.CPUs, s.Memory = 2, job.AllMemory }, 16, job.Resources{CPUs: 2, Memory: 64 << 30}},
		{"GPUs of a type", func(s *job.Stage) { s.Class, s.GPUs, s.GPUType = "gpu", 2, "v100" }, 2, job.Resources{GPUs: 2, GPUType: "v100"}},
		{"a label", func(s *job.Stage) { s.Constraint = "v100|ib" }, 1, job.Resources{CPUs: 1, Memory: 4 << 30}},
	} {
		r, b := shaped(t, market.FIFO)
		q := request("k")
		c.change(&q.Spec.Stages[0])
		s, err := r.Prepare("alice", q)
		if err == nil {
			_, err = r.Known(b, s)
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := s.Spec.Stages[0]; got.Width != c.width || got.Needs() != c.needs {
			t.Errorf("%s: %d slots with %v, want %d with %v", c.name, got.Width, got.Needs(), c.width, c.needs)
		}
	}
}

func TestWhatNoNodeHoldsIsRefused(t *testing.T) {
	for said, change := range map[string]func(*job.Stage){
		"no node of class cpu has 1P of memory: the largest, n2, has 16 cpus, 64G of memory":                    func(s *job.Stage) { s.Memory = 1 << 50 },
		"no node of class cpu has 17 cpus: the largest, n2, has 16 cpus, 64G of memory; ask for less":           func(s *job.Stage) { s.CPUs = 17 },
		"no number of slots of class cpu has these resources: a slot has 1 cpu, 4G of memory; choose class gpu": func(s *job.Stage) { s.Class, s.GPUs = "cpu", 1 },
		"a slot has 1 cpu, 4G of memory; a task of a gang has one slot, and no slot of market share has them": func(s *job.Stage) {
			s.Class, s.GPUs, s.Gang, s.Tasks = "cpu", 2, true, 2
		},
		"no node of market share with slots of class cpu satisfies constraint v100":   func(s *job.Stage) { s.Constraint = "v100" },
		"no node of market share with slots of class gpu satisfies gpus of type a100": func(s *job.Stage) { s.Class, s.GPUs, s.GPUType = "gpu", 1, "a100" },
		"satisfies gpus of type a100 and exclude n9": func(s *job.Stage) {
			s.Class, s.GPUs, s.GPUType, s.Exclude = "gpu", 1, "a100", []messages.Name{"n9"}
		},
		"satisfies the list of nodes n9": func(s *job.Stage) { s.Nodes = []messages.Name{"n9"} },
		"the largest, n1, has 4 cpus":    func(s *job.Stage) { s.CPUs, s.Exclude = 5, []messages.Name{"n2"} },
		"a task of a gang has one slot":  func(s *job.Stage) { s.CPUs, s.Gang, s.Tasks = 2, true, 2 },
	} {
		r, b := shaped(t, market.Backfill)
		q := request("k")
		change(&q.Spec.Stages[0])
		s, err := r.Prepare("alice", q)
		if err == nil {
			_, err = r.Known(b, s)
		}
		if err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%v; want %s", err, said)
		}
	}
	for _, wide := range []messages.Name{market.Karma, market.BatchQueue, market.Reservation} {
		r, _ := shaped(t, wide)
		r.Configs[0].Classes, r.Configs[0].Units = r.Configs[0].Classes[:1], r.Configs[0].Units[:1]
		q := request("k")
		q.Spec.Stages[0].CPUs, q.Spec.Value, q.Spec.Length = 3, q.Spec.Budget, messages.Duration(1e9)
		if wide == market.Karma {
			q.Spec.Value, q.Spec.Length = 0, 0
		}
		if s, err := r.Prepare("alice", q); err != nil || s.Spec.Width() != 3 || s.Spec.Alone() != 3 {
			t.Errorf("%s: %v", wide, err)
		}
	}
	r, b := shaped(t, market.HighestBid)
	q := request("k")
	q.Spec.Rate, q.Spec.Stages[0].CPUs = messages.Credit, 2
	s, err := r.Prepare("alice", q)
	if err == nil {
		_, err = r.Known(b, s)
	}
	if err != nil || s.Spec.Alone() != 2 {
		t.Errorf("highest-bid: %v", err)
	}
	s.Spec.Stages = append(s.Spec.Stages, s.Spec.Stages[0])
	s.Spec.Stages[1].Width = 3
	if _, err = r.Known(b, s); err == nil || !strings.Contains(err.Error(), "stages[1]: a task takes 3 slots of class cpu, and a task of stages[0] takes 2") {
		t.Errorf("two widths: %v", err)
	}
	r.Configs[0].Price, q.Spec.Stages = market.PricePivot, q.Spec.Stages[:1]
	if _, err := r.Prepare("alice", q); err == nil || !strings.Contains(err.Error(), "market share (highest-bid, price pivot) sells single slots") {
		t.Errorf("a market of single slots: %v", err)
	}
}

// The job names no market and no class. Several classes fit its shape. It must get the one with the fewest GPUs.
func TestTheSmallestClassIsChosen(t *testing.T) {
	r := rules()
	r.Configs = []market.Market{
		{Name: "plain", Mechanism: market.Proportional, Classes: []messages.Name{"slot"}},
		{Name: "cpu", Mechanism: market.Proportional, Classes: []messages.Name{"node", "cpu"}, Units: []job.ClassUnit{
			{Class: "node", Unit: job.Resources{CPUs: 16, Memory: 64 << 30}}, {Class: "cpu", Unit: job.Resources{CPUs: 1, Memory: 4 << 30}}}},
		{Name: "gpu", Mechanism: market.FIFO, Classes: []messages.Name{"gpu"}, Units: []job.ClassUnit{{Class: "gpu", Unit: job.Resources{CPUs: 8, Memory: 60 << 30, GPUs: 1}}}},
	}
	for want, change := range map[string]func(*job.JobSpec, *job.Stage){
		"plain slot": func(*job.JobSpec, *job.Stage) {},
		"cpu cpu":    func(_ *job.JobSpec, s *job.Stage) { s.CPUs = 4 },
		"cpu node":   func(_ *job.JobSpec, s *job.Stage) { s.CPUs, s.Memory = 16, 64<<30 },
		"gpu gpu":    func(_ *job.JobSpec, s *job.Stage) { s.CPUs, s.GPUs = 4, 1 },
	} {
		spec := &request("k").Spec
		spec.Market, spec.Stages[0].Class = "", ""
		change(spec, &spec.Stages[0])
		if err := r.Complete("alice", spec); err != nil || spec.Market+" "+spec.Stages[0].Class != want {
			t.Errorf("%s %s, %v; want %s", spec.Market, spec.Stages[0].Class, err, want)
		}
	}
}

// A job that names no market must get the default budget of the first market with slots of its shape.
func TestTheDefaultBudgetIsThatOfTheMarket(t *testing.T) {
	r, _ := shaped(t, market.Proportional)
	gpu := r.Configs[0]
	gpu.Name, gpu.Classes, gpu.Units, gpu.DefaultBudget = "gpu", gpu.Classes[1:], gpu.Units[1:], 50*messages.Credit
	r.Configs[0].Classes, r.Configs[0].Units, r.Configs[0].DefaultBudget = r.Configs[0].Classes[:1], r.Configs[0].Units[:1], 10*messages.Credit
	r.Configs = append(r.Configs, gpu)
	for gpus, want := range map[int]messages.Credits{0: 10 * messages.Credit, 1: 50 * messages.Credit} {
		q := request("k")
		q.Spec.Market, q.Spec.Budget, q.Spec.Stages[0].Class, q.Spec.Stages[0].GPUs = "", 0, "", gpus
		if s, err := r.Prepare("alice", q); err != nil || s.Spec.Budget != want || gpus > 0 && s.Spec.Market != "gpu" {
			t.Errorf("%d GPUs: %v, want a budget of %v and market gpu; %v", gpus, s, want, err)
		}
	}
}

// A job is refused if it asks for licences that the site never has. It is also refused if it asks for any licences in a
// market that promises times.
func TestLicencesThatASiteNeverHasAreRefused(t *testing.T) {
	for want, c := range map[string]struct {
		has       job.Licenses
		mechanism messages.Name
		change    func(*job.Stage)
	}{
		"": {has: job.Licenses{{Name: "matlab", Count: 2}}},
		"the site has no licences; leave matlab out":                                            {},
		"the site has no licence matlab; it has abaqus, ansys":                                  {has: job.Licenses{{Name: "abaqus", Count: 9}, {Name: "ansys", Count: 9}}},
		"a task takes 2 of licence matlab, and the site has 1; ask for less":                    {has: job.Licenses{{Name: "matlab", Count: 1}}},
		"the tasks of the gang together take 4 of licence matlab, and the site has 3":           {has: job.Licenses{{Name: "matlab", Count: 3}}, change: func(s *job.Stage) { s.Tasks, s.Gang = 2, true }},
		"market share (reservation) promises times, and the licences may not be free then; use": {has: job.Licenses{{Name: "matlab", Count: 2}}, mechanism: market.Reservation},
	} {
		if c.mechanism == "" {
			c.mechanism = market.FIFO
		}
		_, b := shaped(t, c.mechanism)
		b.Apply(&book.Command{At: epoch, SetLicenses: &book.SetLicenses{Totals: c.has}})
		spec := &request("k").Spec
		spec.Stages[0].Licenses = job.Licenses{{Name: "matlab", Count: 2}}
		if c.change != nil {
			c.change(&spec.Stages[0])
		}
		m := market.Market{Name: "share", Mechanism: c.mechanism}
		if err := intake.Place(b, "alice", spec, &m); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A market can limit what the tasks of an account or a project take at the same time. A job must be refused if it needs
// more than this limit, because it would wait for ever.
func TestAJobThatNeedsMoreThanItsBoundIsRefused(t *testing.T) {
	for want, c := range map[string]struct {
		bounds  market.AtOnce
		project messages.Name
		change  func(*job.Stage)
	}{
		"": {bounds: market.AtOnce{Account: market.Bound{Slots: 1, Tasks: 1}, Project: market.Bound{Slots: 1}}, project: "physics"},
		"stages[0]: its tasks start together and take 4 slots, and account alice may have 3 at once in market share": {
			bounds: market.AtOnce{Account: market.Bound{Slots: 3}}, change: func(s *job.Stage) { s.Tasks, s.Gang = 4, true }},
		"its tasks start together and take 4 tasks, and project physics may have 2 at once in market share": {
			bounds:  market.AtOnce{Of: []market.OwnerBound{{Name: "physics", Tasks: 2}}},
			project: "physics", change: func(s *job.Stage) { s.Tasks, s.Gang = 4, true }},
		"a task takes 2 GPUs, and account alice may have 1 at once": {
			bounds: market.AtOnce{Account: market.Bound{GPUs: 1}}, change: func(s *job.Stage) { s.GPUs = 2 }},
	} {
		_, b := shaped(t, market.FIFO)
		spec := &request("k").Spec
		if spec.Project = c.project; c.change != nil {
			c.change(&spec.Stages[0])
		}
		m := market.Market{Name: "share", Mechanism: market.FIFO, AtOnce: c.bounds}
		if err := intake.Place(b, "alice", spec, &m); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A job on several nodes must be able to use all nodes that are large enough, also nodes that registered before the
// largest nodes.
func TestNodesOfAllSizesCount(t *testing.T) {
	for tasks, want := range map[int]string{2: "", 3: "the job asks for 3 nodes, but only 2 nodes of class cpu can run its tasks"} {
		r, b := shaped(t, market.Proportional)
		q := request("k")
		stage := &q.Spec.Stages[0]
		stage.CPUs, stage.Tasks, stage.Gang, stage.Allocation = 1, tasks, true, true
		s, err := r.Prepare("alice", q)
		if err == nil {
			_, err = r.Known(b, s)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d nodes: %v, want %q", tasks, err, want)
		}
	}
}

// A job may ask for several whole nodes. They need not be the largest ones, but they all have the same size.
func TestWholeNodesOfAJobAreAlike(t *testing.T) {
	for _, c := range []struct {
		tasks, cpus, width int
		nodes              []messages.Name
		said               string
	}{
		{2, 1, 4, []messages.Name{"n1", "n3"}, ""},
		{2, 5, 0, nil, "the job asks for 2 nodes, but only 1 nodes of class cpu can run its tasks"},
		{3, 1, 0, nil, "the job asks for 3 whole nodes, and these must have the same size"},
		{4, 1, 0, nil, "the job asks for 4 nodes"},
	} {
		r, b := shaped(t, market.Proportional)
		b.Apply(&book.Command{At: epoch, Register: &book.Register{Node: "n3", Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}}})
		q := request("k")
		stage := &q.Spec.Stages[0]
		stage.Exclusive, stage.CPUs, stage.Tasks, stage.Gang, stage.Allocation = true, c.cpus, c.tasks, true, true
		s, err := r.Prepare("alice", q)
		if err == nil {
			_, err = r.Known(b, s)
		}
		if (err == nil) != (c.said == "") || err != nil && !strings.Contains(err.Error(), c.said) {
			t.Errorf("%d nodes with %d cpus: %v, want %q", c.tasks, c.cpus, err, c.said)
		} else if got := s.Spec.Stages[0]; err == nil && (got.Width != c.width || got.CPUs != c.width || !slices.Equal(got.Nodes, c.nodes)) {
			t.Errorf("%d nodes with %d cpus: width %d, %d cpus, nodes %v, want %d on %v", c.tasks, c.cpus, got.Width, got.CPUs, got.Nodes, c.width, c.nodes)
		}
	}
}

// There are more nodes of one size than a stage may name. The job gets as many as it may name. It gets no nodes that
// take no tasks now.
func TestManyNodesOfOneSizeAreEnough(t *testing.T) {
	r, b := shaped(t, market.Proportional)
	for i := range job.MaxChosen + 10 {
		b.Apply(&book.Command{At: epoch, Register: &book.Register{Node: fmt.Sprint("m", i), Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}}})
	}
	for i := range 9 {
		b.Apply(&book.Command{At: epoch, Drain: &book.Drain{Node: fmt.Sprint("m", i), Until: book.ToTheirEnd}})
	}
	for _, tasks := range []int{4, job.MaxChosen} {
		q := request("k")
		stage := &q.Spec.Stages[0]
		stage.Exclusive, stage.CPUs, stage.Tasks, stage.Gang, stage.Allocation = true, 1, tasks, true, true
		s, err := r.Prepare("alice", q)
		if err == nil {
			_, err = r.Known(b, s)
		}
		if err != nil {
			t.Fatalf("%d nodes: %v", tasks, err)
		}
		if got := s.Spec.Stages[0]; got.Width != 4 || len(got.Nodes) != job.MaxChosen || slices.Contains(got.Nodes, "m8") || !slices.IsSorted(got.Nodes) {
			t.Errorf("%d nodes: width %d, %d names: %v", tasks, got.Width, len(got.Nodes), got.Nodes)
		}
	}
}

// A market cannot start the parts of a job together. The error names another market of the site that can.
func TestAnotherMarketGathersTheNodes(t *testing.T) {
	for _, c := range []struct {
		mechanism messages.Name
		stages    int
		want      string
	}{
		{market.DeadlineBid, 1, "cannot gather several nodes"},
		{market.HighestBid, 2, "a job on several nodes has no other stages"},
	} {
		r, _ := shaped(t, c.mechanism)
		other := r.Configs[0]
		other.Name, other.Mechanism = "queue", market.FIFO
		for _, want := range []string{c.want, c.want + "; market queue has what the job needs"} {
			q := request("k")
			q.Spec.Market, q.Spec.Together = "share", c.stages > 1
			q.Spec.Stages[0].CPUs, q.Spec.Stages[0].Tasks, q.Spec.Stages[0].Gang, q.Spec.Stages[0].Allocation = 1, 2, true, true
			if c.stages > 1 {
				q.Spec.Stages = append(q.Spec.Stages, q.Spec.Stages[0])
				q.Spec.Stages[1].Name = "other"
			}
			before, after, _ := strings.Cut(want, ";")
			if _, err := r.Prepare("alice", q); err == nil || !strings.Contains(err.Error(), before) || !strings.HasSuffix(messages.Detail(err), after) {
				t.Errorf("%s: %v, want %s", c.mechanism, err, want)
			}
			r.Configs = append(r.Configs, other)
		}
	}
}

// A task is too large for the nodes of its market, and a node of another market can hold it. The refusal must name that
// market, and must not name a market whose nodes are too small as well.
func TestARefusalNamesTheMarketWithALargerNode(t *testing.T) {
	r, b := shaped(t, market.Backfill)
	r.Configs[0].Nodes = []messages.Name{"n1"}
	other := r.Configs[0]
	other.Name, other.Nodes = "large", []messages.Name{"n2"}
	r.Configs = append(r.Configs, other)
	for cpus, want := range map[int]string{
		10: "the largest, n1, has 4 cpus, 16G of memory; ask for less; market large has what the job needs",
		17: "the largest, n1, has 4 cpus, 16G of memory; ask for less",
	} {
		q := request("k")
		q.Spec.Market, q.Spec.Stages[0].CPUs = "share", cpus
		s, err := r.Prepare("alice", q)
		if err == nil {
			_, err = r.Known(b, s)
		}
		if err == nil || !strings.HasSuffix(messages.Detail(err), want) {
			t.Errorf("%d cpus: %v; want %s", cpus, err, want)
		}
	}
}
