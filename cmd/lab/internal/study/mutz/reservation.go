package mutz

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const reservationName = "mutz-reservation"

// Reservation is the study of figures 5.5 to 5.14.
var Reservation = study.Study{
	Name:  reservationName,
	About: "figures 5.5-5.14: reservations of the whole machine: incentives, time of schedules and payments",
	Run:   reserve,
}

type reservationSize struct {
	pools     int   // pools of competitors, in figures 5.5 to 5.7
	bids      []int // numbers of bids in figures 5.8 and 5.9
	mostTable int   // with more bids, the time of payments by the thesis' table is not measured
	brute     []int // numbers of bids in figure 5.10
	days      []int // numbers of days in figures 5.11 and 5.12
}

var (
	fullReservation = reservationSize{pools: 400, bids: []int{50, 100, 200, 400, 800, 1600}, mostTable: 1600,
		brute: []int{4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44}, days: []int{1, 2, 4, 7, 14, 21, 28}}
	quickReservation = reservationSize{pools: 20, bids: []int{25, 50, 100}, mostTable: 100, brute: []int{4, 8, 12}, days: []int{1, 2, 4}}
)

// These numbers are from the thesis, for figures 5.5 to 5.7: the number of competitors, the number of units in a
// period, and the largest worth of a bid.
const (
	competitors = 20
	units       = 100
	mostWorth   = 1000
)

// reserved is the bid of the participant in the thesis.
var reserved = reservation.Bid{Length: 5, Deadline: 90, Value: 950}

// pool draws bids: lengths from 0 to longest, deadlines within the horizon, and values from 1 to mostWorth. Widths are
// drawn from 1 to `nodes`, unless `nodes` is 0.
func pool(r *rand.Rand, bids, nodes, horizon, longest int) *reservation.Problem {
	p := &reservation.Problem{Nodes: nodes, Horizon: horizon}
	for range bids {
		b := reservation.Bid{Length: r.IntN(longest + 1), Deadline: r.IntN(horizon + 1), Value: float64(1 + r.IntN(mostWorth))}
		if nodes > 0 {
			b.Width = 1 + r.IntN(nodes)
		}
		p.Bids = append(p.Bids, b)
	}
	return p
}

// reservationNumbers has the results of the study. Each series has the times that the thesis gives, and our times. Our
// method computes the payments together with the schedule. So our times for schedules include the payments.
type reservationNumbers struct {
	Payoffs         []*sweep   `json:"payoffs"`           // figures 5.5 to 5.7
	One             []*sweep   `json:"payoffs_of_a_pool"` // the same with the same competitors in each dot
	SchedulesByBids *series    `json:"schedules_by_bids"` // figure 5.8
	PaymentsByBids  *series    `json:"payments_by_bids"`  // figure 5.9
	OursByBids      *series    `json:"ours_by_bids"`
	BruteForce      [3]*series `json:"brute_force"`  // figure 5.10: brute force, the table, ours
	ByPeriod        [3]*series `json:"by_period"`    // figures 5.11 and 5.12: schedules, payments, ours
	ByGranule       [3]*series `json:"by_granule"`   // figures 5.13 and 5.14
	Violations      int        `json:"violations"`   // payments below 0 or above the value
	Disagreements   int        `json:"disagreement"` // number of our payments that differ from the table's

	size reservationSize
	failure
}

func reserve(o study.Options) (*study.Report, error) {
	n := &reservationNumbers{size: study.Sized(o, fullReservation, quickReservation)}
	for _, part := range []func(uint64){n.payoffs, n.byBids, n.bruteForce, n.byPeriod, n.byGranule} {
		part(o.Seed)
	}
	if n.err != nil {
		return nil, n.err
	}
	return &study.Report{Numbers: n, Page: n.page(), Figures: n.figures()}, nil
}

// reservationDeclaration describes one figure: the payoff of a bidder, by the number that the bidder declares.
type reservationDeclaration struct {
	sweep
	at      []float64
	declare func(b *reservation.Bid, x float64)
}

func (d *reservationDeclaration) told(bid reservation.Bid, x float64) reservation.Bid {
	d.declare(&bid, x)
	return bid
}

// Each function below changes one number of a bid that a bidder declares.
func value(b *reservation.Bid, x float64)    { b.Value = x }
func deadline(b *reservation.Bid, x float64) { b.Deadline = int(x) }
func length(b *reservation.Bid, x float64)   { b.Length = int(x) }
func breadth(b *reservation.Bid, x float64)  { b.Width = int(x) }

// payoffs computes figures 5.5 to 5.7. It does not declare a length below the true length, or a deadline after the true
// deadline, because a job gains nothing from the results of such a bid.
func (n *reservationNumbers) payoffs(seed uint64) {
	for _, d := range []reservationDeclaration{
		{sweep{Figure: "5.5", Declares: "d", Truth: float64(reserved.Deadline)}, steps(0, float64(reserved.Deadline), 46), deadline},
		{sweep{Figure: "5.6", Declares: "l", Truth: float64(reserved.Length)}, steps(float64(reserved.Length), units, 20), length},
		{sweep{Figure: "5.7", Declares: "v", Truth: reserved.Value}, steps(0, 2*mostWorth, 41), value},
	} {
		payoff := func(pools int) func(float64, int) (float64, error) {
			return func(x float64, dot int) (float64, error) {
				p := pool(rand.New(rand.NewPCG(seed, uint64(dot%pools))), competitors, 0, units, units)
				p.Bids = append(p.Bids, d.told(reserved, x))
				return n.payoff(p)
			}
		}
		n.Payoffs = append(n.Payoffs, n.explore(d.sweep, d.at, n.size.pools, payoff(n.size.pools)))
		n.One = append(n.One, n.explore(d.sweep, d.at, 4, payoff(1)))
	}
}

// payoff returns the payoff of the participant, whose bid is the last one of the problem.
func (n *reservationNumbers) payoff(p *reservation.Problem) (float64, error) {
	o, err := reservation.Solve(p)
	if err != nil {
		return 0, err
	}
	for i, b := range p.Bids {
		if !(o.Payments[i] >= 0 && o.Payments[i] <= b.Value) {
			n.Violations++
		}
	}
	last := len(p.Bids) - 1
	if o.Start[last] == reservation.Lost {
		return 0, nil
	}
	return reserved.Value - o.Payments[last], nil
}
