package shudler

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/deploy/simulated/workload"
)

const tablesName = "shudler-tables"

// Tables is the study of tables II and III.
var Tables = study.Study{
	Name:  tablesName,
	About: "tables II and III: payoffs of the designer and of aggressive users, by algorithm, price and β (needs --traces)",
	Run:   tables,
}

// These are the paper's tables. Their three indices are the price rule, the algorithm and the paper's parameter β.
// paperDesigner has the payoffs of the market's designer, and paperUsers has the payoffs of the users.
var (
	paperDesigner = matrix{
		{{1.000, 0.990, 0.976, 0.970, 0.963, 0.955, 0.945}, {0.862, 0.853, 0.841, 0.836, 0.831, 0.824, 0.816}, {0.904, 0.895, 0.883, 0.878, 0.873, 0.868, 0.863}},
		{{0.306, 0.303, 0.296, 0.292, 0.287, 0.281, 0.274}, {0.636, 0.629, 0.619, 0.614, 0.609, 0.603, 0.597}, {0.774, 0.765, 0.755, 0.751, 0.746, 0.741, 0.736}},
	}
	paperUsers = matrix{
		{{0.833, 0.842, 0.845, 0.838, 0.824, 0.802, 0.777}, {0.801, 0.810, 0.813, 0.809, 0.799, 0.785, 0.767}, {0.827, 0.842, 0.860, 0.863, 0.863, 0.867, 0.861}},
		{{1.000, 0.988, 0.961, 0.940, 0.913, 0.882, 0.846}, {0.854, 0.858, 0.847, 0.839, 0.827, 0.810, 0.790}, {0.855, 0.869, 0.879, 0.884, 0.886, 0.881, 0.879}},
	}
)

const (
	seeds      = 12
	quickSeeds = 2
	quickJobs  = 2000
)

// estimates has the mean payoff of every cell of a table, with its interval. The mean is over the seeds.
type estimates [2][3][7]study.Estimate

type results struct {
	jobs, seeds int
	designer    estimates
	users       [3]estimates
}

func tables(o study.Options) (*study.Report, error) {
	r, err := simulate(lpc, o)
	if err != nil {
		return nil, err
	}
	return &study.Report{Numbers: r.numbers(), Page: r.page(tablesName), Figures: []*study.Figure{
		payoffPlot(tablesName+"-users", usersLabel, &r.users[groupC], &paperUsers),
		payoffPlot(tablesName+"-designer", designerLabel, &r.designer, &paperDesigner),
	}}, nil
}

// load reads a log, and keeps the jobs of its busiest part. The result `runs` is the number of simulations of these
// jobs, each with another seed.
func (m machine) load(o study.Options) (w *workload.Workload, runs int, err error) {
	if w, err = m.read(o); err != nil {
		return nil, 0, err
	}
	w.Jobs = busiest(w.Jobs, study.Sized(o, len(w.Jobs), quickJobs))
	return w, study.Sized(o, seeds, quickSeeds), nil
}

// busiest returns the n consecutive jobs with the most work per unit of time. The time goes from the arrival of the
// first of these jobs to the arrival of the last. Busy jobs are needed, because all payoffs are 1 if jobs hardly
// overlap.
func busiest(jobs []workload.Job, n int) []workload.Job {
	if n >= len(jobs) {
		return jobs
	}
	best, most, work := 0, 0.0, 0.0
	for i := range jobs {
		work += jobs[i].Work()
		if from := i + 1 - n; from >= 0 {
			if load := work / max(1, jobs[i].Submit-jobs[from].Submit); load > most {
				best, most = from, load
			}
			work -= jobs[from].Work()
		}
	}
	return jobs[best : best+n]
}

func simulate(m machine, o study.Options) (*results, error) {
	w, runs, err := m.load(o)
	if err != nil {
		return nil, err
	}
	games, failed := make([]*game, runs), make([]error, runs)
	var group sync.WaitGroup
	var told sync.Mutex
	done := 0
	workers := runtime.GOMAXPROCS(0)
	for at := range min(runs, workers) {
		group.Go(func() {
			for k := at; k < runs; k += workers {
				if games[k], failed[k] = play(draw(w, o.Seed+uint64(k)), m.nodes); failed[k] != nil {
					continue
				}
				told.Lock()
				done++
				o.Tell(done, runs, "%s, seed %d: at first price HB with β = 50 %% pays the aggressive %.3f", m.file, o.Seed+uint64(k), games[k].users[groupC][0][0][2])
				told.Unlock()
			}
		})
	}
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	r := &results{jobs: serial(w), seeds: runs}
	r.designer = estimate(games, func(g *game) *matrix { return &g.designer })
	for k := range r.users {
		r.users[k] = estimate(games, func(g *game) *matrix { return &g.users[k] })
	}
	return r, nil
}

func estimate(games []*game, of func(*game) *matrix) (out estimates) {
	values := make([]float64, len(games))
	eachCell(func(s, a, b int) {
		for k, g := range games {
			values[k] = of(g)[s][a][b]
		}
		out[s][a][b] = study.Estimated(values)
	})
	return out
}

type payoffs struct {
	Designer []float64 `json:"designer"`
	Users    []float64 `json:"user"`
}

// numbers returns, by price and algorithm, the mean payoffs of the designer and of the users of group C.
func (r *results) numbers() map[string]map[string]payoffs {
	out, designer, users := map[string]map[string]payoffs{}, r.designer.means(), r.users[groupC].means()
	for s, price := range prices {
		rows := map[string]payoffs{}
		for a, algorithm := range algorithms {
			rows[string(algorithm)] = payoffs{designer[s][a][:], users[s][a][:]}
		}
		out[string(price)] = rows
	}
	return out
}

// near is the largest difference with which an estimate of ours and the paper's value count as equal. For comparison:
// in a row of the table, the largest and the smallest payoff of a user differ by 0.05 to 0.2.
const near = 0.01

// compare compares our estimates with the cells of the paper. `within` counts the cells whose confidence interval
// contains the paper's number, and `same` counts the cells that differ by at most 0.01. `worst` is the largest
// difference.
func (e *estimates) compare(paper *matrix) (within, same int, worst float64) {
	eachCell(func(s, a, b int) {
		x, theirs := e[s][a][b], paper[s][a][b]
		d := x.Mean - theirs
		if x.Holds(theirs, 0.0005) {
			within++
		}
		if math.Abs(d) <= near {
			same++
		}
		if math.Abs(d) > math.Abs(worst) {
			worst = d
		}
	})
	return within, same, worst
}

// cell is a cell of a table of payoffs, which has a cell for each algorithm and each β. A cell is a possible choice of
// both players. The program looks for the cells that are pure Nash equilibria.
type cell struct{ algorithm, beta int }

// equilibria returns the cells that are equilibria. Such a cell has the best payoff for the users in its row, and the
// best payoff for the designer in its column. Payoffs are compared as they are printed, with three decimals.
func equilibria(designer, users *[3][7]float64) (out []cell) {
	for a := range users {
		for b := range betas {
			best := true
			for k := range betas {
				best = best && rounded(users[a][k]) <= rounded(users[a][b])
			}
			for k := range designer {
				best = best && rounded(designer[k][b]) <= rounded(designer[a][b])
			}
			if best {
				out = append(out, cell{a, b})
			}
		}
	}
	return out
}

func rounded(x float64) float64 { return math.Round(1000 * x) }

func (e *estimates) means() (m matrix) {
	eachCell(func(s, a, b int) { m[s][a][b] = e[s][a][b].Mean })
	return m
}

const (
	usersLabel    = "payoff of aggressive users, group C"
	designerLabel = "payoff of the designer"
)

// payoffPlot draws a figure of payoffs for each β. Our payoffs are lines. The payoffs of the paper, if there are any,
// are points.
func payoffPlot(name, label string, ours *estimates, paper *matrix) *study.Figure {
	p := study.NewFigure(name, "β of the aggressive", label)
	for s, price := range prices {
		for a, algorithm := range algorithms {
			name := fmt.Sprintf("%s, %s", algorithm, price)
			p.Estimates(name, a+3*s, betas, ours[s][a][:])
			if paper != nil {
				p.Points(name+", the paper's", a+3*s, betas, paper[s][a][:])
			}
		}
	}
	return p
}
