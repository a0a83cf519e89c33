package contracts

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/messages"
)

const menusName = "contracts-menus"

// Menus is the study of figures 4 and 5.
var Menus = study.Study{
	Name:  menusName,
	About: "figures 4 and 5: the menus of four jobs, and what each contract leaves its user",
	Run:   menus,
}

// shownJobs is how many jobs are shown a menu.
const shownJobs = 4

// The paper does not say how many other jobs there are, nor their work. Ours have this much work on
// average: with few of them, all work is done about when the typical job's value begins to fall;
// with many, well after the value is gone.
const workSeconds = 130

var crowds = []int{15, 30}

// offered is a contract and the utility that it leaves to the user of the menu.
type offered struct {
	Completion float64 `json:"completion"` // seconds
	Price      float64 `json:"price"`
	Utility    float64 `json:"utility"` // utility of the user's own type, at that completion
}

// menu is one job's, in the order of completion.
type menu struct {
	Mu        float64   `json:"mu"`
	Delta     float64   `json:"delta"`
	Contracts []offered `json:"contracts"`
	Best      int       `json:"best"`     // contract of the largest utility
	Declared  int       `json:"declared"` // contract of the user's type
	Free      int       `json:"earliest_free"`
}

// competition has the menus of the four jobs among a number of other jobs.
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

// compete draws the four jobs, which do not depend on the number of others, and the others.
func compete(others int, seed uint64) (*competition, error) {
	r := rand.New(rand.NewPCG(seed, 4))
	class, err := trainings[0].train(r)
	if err != nil {
		return nil, err
	}
	draw := contract.Valid(normal(1))
	var shown [shownJobs]messages.Valuation
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

// menu returns the menu that a job would be offered. The job is not added.
func (c *cluster) menu(t messages.Valuation, work float64, class contract.Sampler, seed uint64) (*menu, error) {
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
