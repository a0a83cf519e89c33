package mutz

import (
	"slices"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

func (n *reservationNumbers) figures() (out []*study.Figure) {
	for k, s := range n.Payoffs {
		out = append(out, draw(reservationName+"-"+s.Declares, reservationAxes[s.Declares]+" declared",
			[]string{"mean", "one pool of competitors"}, s, n.One[k]))
	}
	return append(out,
		timePlot(reservationName+"-bids", "bids", true, n.SchedulesByBids, n.PaymentsByBids, n.OursByBids),
		timePlot(reservationName+"-brute", "bids", true, n.BruteForce[:]...),
		timePlot(reservationName+"-period", "period, days", true, n.ByPeriod[:]...),
		timePlot(reservationName+"-granule", "granule, seconds", true, n.ByGranule[:]...))
}

var reservationAxes = map[string]string{"v": "value", "l": "length", "d": "deadline", "n": "nodes"}

func (n *reservationNumbers) page() *study.Page {
	p := study.NewPage("Honesty in reservations of the whole machine (Mutz, figures 5.5 to 5.14)")
	p.Text("As in the thesis: %d competing bids for %d units of time, lengths and deadlines from U[0, %d], values from U[1, %d]; the participant takes %d units, is over by %d and worth %g. "+
		"Dots are of %d pools of competitors; the thesis has one, as the second line.",
		competitors, units, units, mostWorth, reserved.Length, reserved.Deadline, reserved.Value, n.size.pools)
	p.Section("Incentives (figures 5.5 to 5.7)")
	rows := sweepRows(append(slices.Clone(n.Payoffs), n.One...)...)
	for k := range n.One {
		rows[len(n.Payoffs)+k][0] += ", one pool"
	}
	p.Table(sweepHead, rows)
	for _, s := range n.Payoffs {
		p.Figure(reservationName+"-"+s.Declares, "Payoff by the "+reservationAxes[s.Declares]+" declared (figure "+s.Figure+")")
	}
	p.Section("Time (figures 5.8 to 5.14)")
	p.Text("Bids of up to six hours. The table is the thesis' program, whose cells hold lists of bids, and for payments is filled once more for each bid; ours finds the schedule and all payments together. "+
		"Where not varied, there are %d bids, six hours and granules of 15 minutes.", timedBids)
	timeTable(p, "bids", n.SchedulesByBids, n.PaymentsByBids, n.OursByBids)
	p.Figure(reservationName+"-bids", "Time against bids (figures 5.8 and 5.9)")
	timeTable(p, "bids", n.BruteForce[:]...)
	p.Figure(reservationName+"-brute", "Time of all payments against bids, with all orders tried (figure 5.10)")
	timeTable(p, "days", n.ByPeriod[:]...)
	p.Figure(reservationName+"-period", "Time against the period (figures 5.11 and 5.12)")
	timeTable(p, "granule, s", n.ByGranule[:]...)
	p.Figure(reservationName+"-granule", "Time against the granule (figures 5.13 and 5.14)")
	n.verdict(p)
	return p
}

func (n *reservationNumbers) verdict(p *study.Page) {
	p.Section("Same, better, different")
	for k, says := range []string{"Figure 5.5: no earlier deadline gains over the true one of 90.", "Figure 5.6: no greater length gains over the true one of 5.", "Figure 5.7: no value gains over the true one of 950."} {
		s := n.Payoffs[k]
		p.Claim(s.Lie.Most <= 0, says, "of %d lies in %d pools, the most that any gains in any is %.3g", len(s.Points)-1, n.size.pools, s.Lie.Most)
	}
	schedules, payments := n.SchedulesByBids.power(), n.PaymentsByBids.power()
	p.Claim(schedules > 1.7, "Figure 5.8: the time of a schedule grows with the square of the bids.", "the table's with power %.2f. Its cells would have to hold lists as long as the bids are many, "+
		"but no more fit into the %d granules of the period than there are: it is linear", schedules, periodSeconds/granuleSeconds)
	p.Claim(payments > 2.7, "Figure 5.9: that of the payments with the third power.", "the table's with power %.2f, one more than the schedule's, as the thesis has it", payments)
	last := len(n.BruteForce[0].At) - 1
	p.Claim(n.BruteForce[0].Millis[last] > 10*n.BruteForce[1].Millis[last], "Figure 5.10: to try all orders takes almost 8 minutes for 44 bids, the table under 6 seconds (from its text).",
		"for %g bids %.3g ms and %.3g ms, and ours %.3g ms. %d payments differ", n.BruteForce[0].At[last], n.BruteForce[0].Millis[last], n.BruteForce[1].Millis[last], n.BruteForce[2].Millis[last], n.Disagreements)
	p.Claim(near(n.ByPeriod[0].power(), 1) && near(n.ByPeriod[1].power(), 1), "Figures 5.11 and 5.12: time is proportional to the period.", "schedules with power %.2f, payments %.2f",
		n.ByPeriod[0].power(), n.ByPeriod[1].power())
	p.Claim(near(n.ByGranule[0].power(), -1) && near(n.ByGranule[1].power(), -1), "Figures 5.13 and 5.14: time goes as the reciprocal of the granule.", "schedules with power %.2f, payments %.2f",
		n.ByGranule[0].power(), n.ByGranule[1].power())
	most := n.PaymentsByBids.At[len(n.PaymentsByBids.At)-1]
	p.Text("- Better: all payments come from one pass of tables from the front and from the back: for %g bids %.3g ms instead of %.3g s. %d payments in figures 5.5 to 5.7 are below nothing or above the value.",
		most, n.OursByBids.at(most), n.PaymentsByBids.at(most)/1000, n.Violations)
}

// near reports whether a measured exponent of the growth differs from the expected exponent by less than 0.25. Measured
// times are not precise, so it need not be closer.
func near(power, want float64) bool { return power > want-0.25 && power < want+0.25 }
