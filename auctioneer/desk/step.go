package desk

// Step handles the inputs and returns the actions. Markets that were applied take effect after the step, with a
// [Reconfigured] event.
func (d *Desk) Step(now Instant, in ...Input) Actions {
	d.now, d.out = now, Actions{Next: -1}
	for _, i := range in {
		switch i := i.(type) {
		case Heard:
			d.nodes.hear(i.Node, i.At)
		case Done:
			if then := d.asked[i.ID]; then != nil {
				delete(d.asked, i.ID)
				then(i.Result, i.Err)
			}
		}
	}
	if now.Leap > 0 { // the book must learn first that the clock has jumped ahead, because it counts slot time
		d.delays.leap()
		d.wakeIn(soon)
		return d.take()
	}
	effects, notices := d.follow()
	d.settlements.step()
	d.trading.step()
	d.nodes.step()
	d.payments.step(effects)
	d.observations.step(effects)
	d.notices.step(notices)
	d.holds.step()
	d.errands.step()
	d.delays.step()
	if d.Estimator {
		d.lessons.step()
	}
	if d.Idle > 0 {
		d.wakeIn(d.Idle)
	}
	return d.take()
}

// take returns the actions of this step. The list of actions is empty afterwards.
func (d *Desk) take() Actions {
	out := d.out
	d.out = Actions{}
	return out
}
