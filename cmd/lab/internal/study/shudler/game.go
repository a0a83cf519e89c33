package shudler

import (
	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
)

// These are the strategies of both players. The designer chooses an algorithm and a price. The aggressive users choose
// the number β.
var (
	algorithms = []highestbid.Algorithm{highestbid.HB, highestbid.NPHB, highestbid.WSPT}
	prices     = []highestbid.Price{highestbid.First, highestbid.Kth}
	betas      = []float64{0.05, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9}
)

// matrix has a payoff for every cell: by price, algorithm and β.
type matrix [2][3][7]float64

// game has the payoffs for one seed. It has the designer's payoffs over all jobs, the designer's payoffs for each of
// the groups A, B and C, and the users' payoffs for each group.
type game struct {
	designer      matrix
	designerGroup [3]matrix
	users         [3]matrix
}

// play runs the market for each combination of bids, algorithm and price. Each price needs a separate run, because
// payments are recorded during the run.
func play(p *population, nodes int) (*game, error) {
	g := &game{}
	for b, beta := range betas {
		p.bid(beta)
		for a, algorithm := range algorithms {
			for s, price := range prices {
				out, err := highestbid.Run(&highestbid.Problem{Nodes: nodes, Reserve: highestbid.Reserve, Jobs: p.jobs,
					Rule: highestbid.Rule{Algorithm: algorithm, Price: price, Capped: algorithm == highestbid.WSPT && price == highestbid.Kth}})
				if err != nil {
					return nil, err
				}
				g.designer[s][a][b] = out.Payoff()
				for k, group := range p.groups {
					g.designerGroup[k][s][a][b], g.users[k][s][a][b] = p.payoffs(out, group)
				}
			}
		}
	}
	g.normalise()
	return g, nil
}

// payoffs returns two numbers for a group of jobs. The designer's payoff is the revenue divided by the sum of each
// job's value times its flow time. The users' payoff is the mean utility of the aggressive jobs in the group (see
// population).
func (p *population) payoffs(out *highestbid.Outcome, group []int) (designer, users float64) {
	revenue, weighted, n := 0.0, 0.0, 0
	for _, i := range group {
		revenue += out.Payment[i]
		weighted += p.jobs[i].Value * out.Flow[i]
		if p.aggressive[i] {
			users += out.Utility[i]
			n++
		}
	}
	return revenue / weighted, users / float64(n)
}

// normalise scales the payoffs so that the best one of each player is 1.
func (g *game) normalise() {
	g.designer.scale(true)
	for k := range g.users {
		g.designerGroup[k].scale(true)
		g.users[k].scale(false)
	}
}

// If `positive` is true, scale divides each payoff by the largest one. Otherwise the payoffs are negative, and scale
// replaces each payoff by the largest one divided by it. In both cases the best payoff becomes 1.
func (m *matrix) scale(positive bool) {
	best := m[0][0][0]
	eachCell(func(s, a, b int) { best = max(best, m[s][a][b]) })
	eachCell(func(s, a, b int) {
		if positive {
			m[s][a][b] /= best
		} else {
			m[s][a][b] = best / m[s][a][b]
		}
	})
}

func eachCell(do func(s, a, b int)) {
	for s := range prices {
		for a := range algorithms {
			for b := range betas {
				do(s, a, b)
			}
		}
	}
}
