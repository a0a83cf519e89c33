package clearing

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// ringSeeds is the number of seeds of TestRing, from 1 on; CANDOR_SEEDS overrides it.
const ringSeeds = 25

// ringSteps is the number of steps in which the network loses messages.
const ringSteps = 400

func seeds(t *testing.T) uint64 {
	text := os.Getenv("CANDOR_SEEDS")
	if text == "" {
		return ringSeeds
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("CANDOR_SEEDS=%q is no number of seeds", text)
	}
	return n
}

// TestRing: three banks in a ring trade while messages are lost, repeated, reordered and delayed, banks crash, and
// clocks differ by an hour. When all faults end, the books must agree to the last microcredit.
func TestRing(t *testing.T) {
	for seed := uint64(1); seed <= seeds(t); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			if err := runRing(seed, sound, checkers...); err != nil {
				t.Fatalf("%v\nreplay: CANDOR_SEEDS=%d go test ./bank/clearing -run 'TestRing/seed=%d$'", err, seed, seed)
			}
		})
	}
}

// TestRingFindsPlantedBugs checks that TestRing finds each inserted bug. The map `finders` names, for each checker, the
// bugs that it must find. The checker must find each of these bugs even if all other checkers are off.
func TestRingFindsPlantedBugs(t *testing.T) {
	const within = 40
	finders := map[string][]bug{
		"holds":    {refundTimeout},
		"accounts": {noDedupe, refundTimeout, skippedSync},
		"mirrors":  {skippedSync},
		"wealth":   {noDedupe, refundTimeout, skippedSync},
		"observer": {noDedupe, skippedSync},
	}
	for _, c := range checkers {
		for _, planted := range finders[c.name] {
			t.Run(fmt.Sprintf("%s/%s", c.name, planted), func(t *testing.T) {
				for seed := uint64(1); seed <= within; seed++ {
					if err := runRing(seed, planted, c); err != nil {
						t.Logf("found with seed %d: %v", seed, err)
						return
					}
				}
				t.Errorf("not found within %d seeds", within)
			})
		}
	}
}

// runRing runs one seed until a check fails. If no bug is inserted, it then ends all faults of the network and checks
// the result. An inserted bug must be found earlier, while the network is bad.
func runRing(seed uint64, planted bug, under ...checker) error {
	w := newWorld(seed, planted, under...)
	for step := range ringSteps {
		err := w.step()
		if err == nil {
			err = w.check()
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	if planted != sound {
		return nil
	}
	if err := w.heal(); err != nil {
		return fmt.Errorf("after healing: %w", err)
	}
	return nil
}

// heal ends all faults, lets every message arrive, and checks the result.
func (w *world) heal() error {
	late := w.network
	for _, b := range w.banks {
		b.offset = 0
	}
	if err := w.settleDown(); err != nil {
		return err
	}
	w.time += 40 * day // every authorisation ends, is released, or lapses
	w.cycle++
	for _, b := range w.banks {
		w.catchUp(b)
	}
	if err := w.settleDown(); err != nil {
		return err
	}
	if err := w.checkEnd(); err != nil {
		return err
	}
	for _, p := range late { // these messages are too late to have an effect
		w.arrive(p)
	}
	return w.checkEnd()
}

// settleDown exchanges messages without loss until nothing waits for an answer. Then it exchanges messages once more.
func (w *world) settleDown() error {
	for waits, rounds := true, 0; waits; rounds++ {
		waits = w.waits()
		if rounds > 50 {
			return fmt.Errorf("instructions still wait after %d rounds without a fault", rounds)
		}
		for _, b := range w.banks {
			w.exchange(b)
			w.time += second
		}
		if err := w.check(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) waits() bool {
	for _, b := range w.banks {
		for _, p := range b.state.peers.byName {
			if len(p.outbox) > 0 {
				return true
			}
		}
	}
	return false
}

func (w *world) exchange(b *bank) {
	for i := range w.banks {
		if site(i) == b.site {
			continue
		}
		m, _ := b.state.Outgoing(site(i), b.now(w.time))
		w.dispatch(b, i, m)
	}
	for _, p := range b.sync() {
		w.seen.hear(&p)
		w.arrive(p)
	}
	for _, other := range w.banks {
		for _, p := range other.sync() {
			w.seen.hear(&p)
			w.arrive(p)
		}
	}
}

func (w *world) checkEnd() error {
	positions := []clearing.Position{}
	for _, b := range w.banks {
		if held := b.ledger.Totals().Held; held != 0 {
			return fmt.Errorf("%s: %v is still held", b.site, held)
		}
		for _, user := range append(ringUsers[:], moneymsg.SiteAccount) {
			a, _ := b.ledger.Account(user)
			if want := w.expected(b, user); a.Balance != want {
				return fmt.Errorf("%s: %s has %v, and by all that was said should have %v", b.site, user, a.Balance, want)
			}
		}
		if err := derives(b.state, b.ledger); err != nil {
			return fmt.Errorf("%s: %w", b.site, err)
		}
		if audit := b.ledger.Capture().Audit(); !audit.Balanced {
			return fmt.Errorf("%s: %s", b.site, audit.Message)
		}
		p, err := b.state.Position(w.cycle)
		if err != nil {
			return err
		}
		positions = append(positions, *p)
	}
	if report := Net(w.cycle, positions); !report.Balanced {
		return fmt.Errorf("cycle %d does not net to zero: %+v", w.cycle, report)
	}
	return w.reconcile()
}

func (w *world) reconcile() error {
	for _, x := range w.banks {
		for _, y := range w.banks {
			if x == y {
				continue
			}
			r := clearing.LinesRequest{Sender: x.site, From: 1}
			ours, err := x.state.Lines(y.site, r)
			if err != nil {
				return err
			}
			theirs, err := y.state.Lines(x.site, r)
			if err != nil {
				return err
			}
			if d := Compare(ours.List, theirs.List); d != nil || ours.Last != theirs.Last {
				return fmt.Errorf("%s and %s: %v", x.site, y.site, d)
			}
		}
	}
	return nil
}
