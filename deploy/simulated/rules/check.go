package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// check returns an error that begins with the path of a field with an impossible value.
func (m *Market) check() error {
	if !messages.ValidFreeName(m.Name) {
		return invalid("name", "%.64q is not a name: use letters, digits, . - and _", m.Name)
	}
	if err := choice("worth", m.Worth, ByDelay, ByDeadline, ByDecay, ByRun); err != nil {
		return err
	}
	if err := whole("nodes", m.Nodes, 0, workload.MostNodes); err != nil {
		return err
	}
	if err := m.Bids.Check(); err != nil {
		return messages.Errorf(messages.Invalid, "bids.%s", messages.Detail(err))
	}
	switch m.Mechanism {
	case HighestBid:
		return m.checkHighestBid()
	case Proportional:
		return cmp.Or(number("alpha", *m.Alpha, 1), number("slo", m.SLO, 1), choice("settle", m.Settle, "", market.SettleOnCompletion))
	case Deadline:
		return m.checkDeadline()
	case BatchQueue:
		return cmp.Or(choice("mode", m.Mode, "priority", "full"), choice("expectation", m.Expectation, "drawn", "exact"), whole("draws", m.Draws, 0, 1<<24), whole("N", m.N, 0, workload.MostNodes),
			choice("pricing", m.Pricing, "externality", "pivot"))
	case Reservation:
		return m.checkReservation()
	case Contract:
		return whole("M", m.M, 2, 4096)
	}
	return m.checkBaseline()
}

func (m *Market) checkHighestBid() error {
	price, ok := m.Price.(string)
	if !ok {
		return invalid("price", "must be first, kth or pivot, is %v", m.Price)
	}
	if m.Preemption != "" && m.Algorithm != "HB" {
		return invalid("preemption", "algorithm %s takes no slot from a running job: leave the field preemption out", m.Algorithm)
	}
	return cmp.Or(m.checkPreemption(), choice("algorithm", m.Algorithm, "HB", "NPHB", "WSPT", "WSEPT"), choice("price", price, "first", "kth", market.PricePivot),
		number("reserve", *m.Reserve, 1e9), m.checkPivot())
}

func (m *Market) checkPivot() error {
	switch {
	case m.Price != market.PricePivot && m.Horizon != 0:
		return invalid("horizon", "only price pivot uses the field horizon: leave it out")
	case m.Price != market.PricePivot:
		return nil
	case m.Horizon < 0:
		return invalid("horizon", "must not be negative, is %v", m.Horizon)
	case m.Algorithm != "HB":
		return invalid("price", "only algorithm HB can have price pivot, not %s", m.Algorithm)
	case m.Capped:
		return invalid("capped", "with price pivot a job does not pay for each second, so its bid cannot cap a price: leave the field out")
	case m.Preemption != "" && m.Preemption != market.PreemptSuspend:
		return invalid("preemption", "with price pivot jobs lose no work: leave the field preemption out")
	}
	return nil
}

func (m *Market) checkPreemption() error {
	if m.Preemption == "" {
		return nil
	}
	return choice("preemption", m.Preemption, market.PreemptSuspend, market.PreemptRequeue, market.PreemptCancel)
}

func (m *Market) checkDeadline() error {
	if m.Slot != 0 && m.Slot < messages.Duration(1e9) {
		return invalid("slot", "must be at least 1s, is %v", m.Slot)
	}
	return cmp.Or(m.checkPreemption(), whole("C", m.C, 0, workload.MostNodes), number("lambda", *m.Lambda, 1), choice("hand_over", m.HandOver, AtEnd, AtDeadline), choice("rule", m.Rule, "paper", "monotone"),
		number("scale", m.Scale, 1<<20), whole("groups", m.Groups, 1, 1<<20))
}

func (m *Market) checkReservation() error {
	if m.Granule < messages.Duration(1e9) {
		return invalid("granule", "must be at least 1s, is %v", m.Granule)
	}
	if span := float64(m.T) * m.Granule.Seconds(); span > 1e9 {
		return invalid("T", "%d granules of %v are %.3g s, above the limit of 1e+09 s", m.T, m.Granule, span)
	}
	return cmp.Or(whole("N", m.N, 0, workload.MostNodes), whole("T", m.T, 1, 1<<20), whole("search.orders", m.Search.Orders, 1, 1<<20),
		choice("pricing", m.Pricing, "exact", "thesis"), choice("mode", m.Mode, "search", market.ModeFixed), m.checkThesis())
}

// checkThesis returns an error if the market has the pricing "thesis" and fixed timetables, because they cannot be
// combined.
func (m *Market) checkThesis() error {
	if m.Pricing == "thesis" && m.Mode == market.ModeFixed {
		return invalid("mode", "mode fixed can be used only together with pricing exact: leave mode or pricing out")
	}
	return nil
}

// checkBaseline checks the parameters of a baseline. It converts a whole price to a float.
func (m *Market) checkBaseline() error {
	switch p := m.Price.(type) {
	case uint64:
		m.Price = float64(p)
	case int64:
		m.Price = float64(p)
	case float64:
	default:
		return invalid("price", "must be a number of credits for a slot-second, is %v", m.Price)
	}
	if err := number("price", m.Price.(float64), 1e9); err != nil {
		return err
	}
	switch m.Mechanism {
	case FairShare:
		if *m.HalfLife < 0 {
			return invalid("half_life", "must not be negative, is %v", *m.HalfLife)
		}
	case Karma:
		if m.Slot != 0 && m.Slot < messages.Duration(1e9) {
			return invalid("slot", "must be at least 1s, is %v", m.Slot)
		}
		return number("alpha", *m.Alpha, 1)
	case Backfill:
		return choice("variant", m.Variant, "easy", "conservative")
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return messages.Errorf(messages.Invalid, field+": "+format, args...)
}

func choice(field, is string, of ...string) error {
	if slices.Contains(of, is) {
		return nil
	}
	return invalid(field, "must be one of %s, is %.64q", strings.Join(of, ", "), is)
}

func number(field string, x, top float64) error {
	if !(x >= 0 && x <= top) {
		return invalid(field, "must be from 0 to %g, is %v", top, x)
	}
	return nil
}

func whole(field string, x, low, top int) error {
	if x < low || x > top {
		return invalid(field, "must be from %d to %d, is %d", low, top, x)
	}
	return nil
}
