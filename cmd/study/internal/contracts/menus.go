package contracts

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/cmd/study/internal/study"
	"github.com/candor-grid/candor/messages"
)

const menusName = "contracts-menus"

// Menus is the study of figures 4 and 5.
var Menus = study.Study{
	Name:  menusName,
	About: "figures 4 and 5: the menus of four jobs, and what each contract leaves its user",
	Run:   menus,
}

// shownJobs is how many jobs are shown a menu. The paper does not say how many
// others there are nor what they do: ours are so many, with so much work on
// average, that the last completes when most deadlines have passed.
const (
	shownJobs   = 4
	otherJobs   = 30
	workSeconds = 130
)

// offered is a contract and what it leaves the user of the menu.
type offered struct {
	Completion float64 `json:"completion"` // seconds
	Price      float64 `json:"price"`
	Utility    float64 `json:"utility"` // of the user's own type, at that completion
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

func menus(o study.Options) (*study.Report, error) {
	r := rand.New(rand.NewPCG(o.Seed, 4))
	class, err := trainings[0].train(r)
	if err != nil {
		return nil, err
	}
	draw := contract.Valid(normal(1))
	var c cluster
	for range otherJobs {
		t, err := draw(r)
		if err != nil {
			return nil, err
		}
		if _, err := c.join(t, workSeconds*r.ExpFloat64()); err != nil {
			return nil, err
		}
	}
	var numbers []menu
	for range shownJobs {
		t, err := draw(r)
		if err != nil {
			return nil, err
		}
		m, err := c.menu(t, workSeconds, class, r.Uint64())
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, *m)
	}
	figures, err := menuFigures(numbers)
	return &study.Report{Numbers: numbers, Page: menusPage(numbers), Figures: figures}, err
}

// menu is what a job would be offered; it does not stay.
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
