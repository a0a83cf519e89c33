package mutz

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
)

// The thesis' figures about time use these sizes: six hours in granules of a quarter of an hour, and 20 bids. Each
// figure varies one of the three sizes, and keeps the other two.
const (
	periodSeconds  = 6 * 3600
	granuleSeconds = 900
	timedBids      = 20
)

// timedPool draws bids of up to six hours, for a period and granules in seconds.
func timedPool(seed uint64, bids, period, granule int) *reservation.Problem {
	return pool(rand.New(rand.NewPCG(seed, uint64(bids))), bids, 0, period/granule, periodSeconds/granule)
}

// timeProblem measures how long schedules and payments take to compute. It does so with the thesis' table and with our
// method.
func (n *reservationNumbers) timeProblem(p *reservation.Problem, at float64, schedules, payments, ours *series) {
	n.timeAll(schedules, at, func() { table(p, -1) })
	if len(p.Bids) <= n.size.mostTable {
		n.timeAll(payments, at, func() { solver(table).vickrey(p) })
	}
	n.time(ours, at, func() error { _, err := reservation.Solve(p); return err })
}

// byBids computes figures 5.8 and 5.9 of the thesis: the times to compute schedules and payments, by the number of
// bids.
func (n *reservationNumbers) byBids(seed uint64) {
	n.SchedulesByBids, n.PaymentsByBids, n.OursByBids = &series{Name: "table: schedule"}, &series{Name: "table: payments"}, &series{Name: "ours: both"}
	for _, bids := range n.size.bids {
		n.timeProblem(timedPool(seed, bids, periodSeconds, granuleSeconds), float64(bids), n.SchedulesByBids, n.PaymentsByBids, n.OursByBids)
	}
}

// bruteForce measures the times in figure 5.10. It computes all payments in three ways: by a search of all orders, with
// the table of the thesis, and with our method.
func (n *reservationNumbers) bruteForce(seed uint64) {
	n.BruteForce = [3]*series{{Name: "all orders"}, {Name: "table"}, {Name: "ours"}}
	for _, bids := range n.size.brute {
		p, at := timedPool(seed, bids, periodSeconds, granuleSeconds), float64(bids)
		var slow, fast, ours []float64
		n.timeAll(n.BruteForce[0], at, func() { slow = solver(brute).vickrey(p) })
		n.timeAll(n.BruteForce[1], at, func() { fast = solver(table).vickrey(p) })
		n.time(n.BruteForce[2], at, func() error {
			o, err := reservation.Solve(p)
			if err == nil {
				ours = o.Payments
			}
			return err
		})
		if n.err == nil {
			n.Disagreements += differing(slow, fast) + differing(slow, ours)
		}
	}
}

func differing(x, y []float64) (count int) {
	for i := range x {
		if x[i] != y[i] {
			count++
		}
	}
	return count
}

// byPeriod computes figures 5.11 and 5.12: times by the length of the period.
func (n *reservationNumbers) byPeriod(seed uint64) {
	n.ByPeriod = [3]*series{{Name: "table: schedule"}, {Name: "table: payments"}, {Name: "ours: both"}}
	for _, days := range n.size.days {
		p := timedPool(seed, timedBids, days*24*3600, granuleSeconds)
		n.timeProblem(p, float64(days), n.ByPeriod[0], n.ByPeriod[1], n.ByPeriod[2])
	}
}

// byGranule computes figures 5.13 and 5.14: times by the length of a granule.
func (n *reservationNumbers) byGranule(seed uint64) {
	n.ByGranule = [3]*series{{Name: "table: schedule"}, {Name: "table: payments"}, {Name: "ours: both"}}
	for _, granule := range []int{60, 120, 240, 450, 900} {
		p := timedPool(seed, timedBids, periodSeconds, granule)
		n.timeProblem(p, float64(granule), n.ByGranule[0], n.ByGranule[1], n.ByGranule[2])
	}
}
