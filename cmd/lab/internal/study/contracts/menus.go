package contracts

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

const menusName = "contracts-menus"

// Menus is the study of figures 4 and 5 of the paper on contracts.
var Menus = study.Study{
	Name:  menusName,
	About: "figures 4 and 5: the menus of four jobs, and what each contract leaves its user",
	Run:   menus,
}

const shownJobs = 4

// workSeconds is the mean work of the other jobs, in seconds. The paper does not say how much work the jobs have. This
// value gives two clearly different cases. With few other jobs (15), all work is done when the value of a typical job
// begins to fall. With many other jobs (30), the work is done long after the value has fallen to nothing.
const workSeconds = 130

var crowds = []int{15, 30}

type offered struct {
	Completion float64 `json:"completion"` // seconds
	Price      float64 `json:"price"`
	Utility    float64 `json:"utility"` // utility of the user's own type, at that completion
}

// menu has the contracts that one job is offered, in the order of completion.
type menu struct {
	Mu        float64   `json:"mu"`
	Delta     float64   `json:"delta"`
	Contracts []offered `json:"contracts"`
	Best      int       `json:"best"`     // contract with the largest utility
	Declared  int       `json:"declared"` // contract for the user's own type
	Free      int       `json:"earliest_free"`
}

// competition has the menus that four jobs get while they compete with a number of other jobs.
type competition struct {
	Others int    `json:"others"`
	Menus  []menu `json:"menus"`
}

func menus(o study.Options) (*study.Report, error) {
	var numbers []competition
	var figures []*study.Figure
	for _, others := range crowds {
		c, err := compete(others, o.Seed)
		if err != nil {
			return nil, err
		}
		numbers, figures = append(numbers, *c), append(figures, c.figures()...)
	}
	return &study.Report{Numbers: numbers, Page: menusPage(numbers), Figures: figures}, nil
}

// compete draws a competition: many jobs that run, and four further jobs whose menus of contracts are shown. The four
// jobs do not depend on the number of other jobs.
func compete(others int, seed uint64) (*competition, error) {
	r := rand.New(rand.NewPCG(seed, 4))
	class, err := trainings[0].train(r)
	if err != nil {
		return nil, err
	}
	draw := contract.Valid(normal(1))
	var shown [shownJobs]jobmsg.Valuation
	for k := range shown {
		if shown[k], err = draw(r); err != nil {
			return nil, err
		}
	}
	var c cluster
	for range others {
		t, err := draw(r)
		if err != nil {
			return nil, err
		}
		if _, err := c.join(t, workSeconds*r.ExpFloat64()); err != nil {
			return nil, err
		}
	}
	out := &competition{Others: others}
	for _, t := range shown {
		m, err := c.menu(t, workSeconds, class, r.Uint64())
		if err != nil {
			return nil, err
		}
		out.Menus = append(out.Menus, *m)
	}
	return out, nil
}

// menu returns the menu that a job would get. It does not add the job.
func (c *cluster) menu(t jobmsg.Valuation, work float64, class contract.Sampler, seed uint64) (*menu, error) {
	j, err := c.join(t, work)
	if err != nil {
		return nil, err
	}
	o, err := c.offer(t, class, seed)
	if err != nil {
		return nil, err
	}
	c.jobs = c.jobs[:len(c.jobs)-1]
	m := &menu{Mu: t.Mu, Delta: t.Delta, Free: -1}
	for i, k := range o.Menu {
		m.Contracts = append(m.Contracts, offered{k.Completion, k.Price, j.own.At(k.Completion) - k.Price})
		if m.Contracts[i].Utility > m.Contracts[m.Best].Utility {
			m.Best = i
		}
		if k.Declared {
			m.Declared = i
		}
		if k.Free && m.Free < 0 {
			m.Free = i
		}
	}
	return m, nil
}
