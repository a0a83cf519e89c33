package witness

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Each history in the tests below is either right, or wrong in exactly one answer.

// told is a request with its answer. Each request begins after the previous one has ended.
type told struct{ in, out any }

func history(all ...told) (h []porcupine.Operation) {
	for i, o := range all {
		h = append(h, porcupine.Operation{Input: o.in, Output: o.out, Call: int64(2 * i), Return: int64(2*i + 1)})
	}
	return h
}

func TestModels(t *testing.T) {
	pay := func(amount messages.Credits) moneyAsk { return moneyAsk{kind: "pay", from: 0, to: 1, amount: amount} }
	balance := func(of int, is messages.Credits) told {
		return told{moneyAsk{kind: "balance", to: of}, moneyTold{outcome: read, balance: is}}
	}
	done, no := moneyTold{outcome: acknowledged}, moneyTold{outcome: refused}
	submit := func(job messages.JobID) told {
		return told{jobAsk{"k", "submit"}, jobTold{outcome: acknowledged, job: job}}
	}
	show := func(state job.State) told {
		return told{jobAsk{"k", "show"}, jobTold{outcome: acknowledged, state: state}}
	}
	cancel := told{jobAsk{"k", "cancel"}, jobTold{outcome: acknowledged}}
	ended := told{jobAsk{"k", "cancel"}, jobTold{outcome: refused}}
	apply := func(n messages.Duration, at, then uint64) told {
		return told{marketAsk{n, at}, marketTold{acknowledged, markets{version: then}}}
	}
	limit := func(n messages.Duration, version uint64) told {
		return told{marketAsk{}, marketTold{read, markets{n, version}}}
	}
	another := told{marketAsk{9, 2}, marketTold{outcome: refused}}
	money, market := moneyModel(purses{10, 0, 0}), marketModel(markets{1, 1})
	for name, c := range map[string]struct {
		model porcupine.Model
		fits  bool
		h     []porcupine.Operation
	}{
		"a payment":                     {money, true, history(told{pay(4), done}, balance(0, 6), balance(1, 4))},
		"a payment that is lost":        {money, false, history(told{pay(4), done}, balance(0, 10))},
		"a payment done twice":          {money, false, history(told{pay(4), done}, balance(1, 8))},
		"a microcredit too many":        {money, false, history(told{pay(4), done}, balance(1, 5))},
		"a payment beyond the balance":  {money, false, history(told{pay(11), done})},
		"a refusal":                     {money, true, history(told{pay(11), no}, balance(0, 10))},
		"a refusal without reason":      {money, false, history(told{pay(4), no})},
		"a grant":                       {money, true, history(told{moneyAsk{kind: "grant", to: 2, amount: 3}, done}, balance(2, 3))},
		"a job that completes":          {jobModel, true, history(submit(7), show(job.Running), show(job.Completed), ended)},
		"a submission with two numbers": {jobModel, false, history(submit(7), submit(8))},
		"a job that is gone":            {jobModel, false, history(submit(7), told{jobAsk{"k", "show"}, jobTold{outcome: refused, missing: true}})},
		"a job that comes back":         {jobModel, false, history(submit(7), show(job.Completed), show(job.Running))},
		"a cancelled job":               {jobModel, true, history(submit(7), cancel, ended, show(job.Settling), show(job.Cancelled))},
		"a cancellation that is lost":   {jobModel, false, history(submit(7), cancel, show(job.Completed))},
		"a cancellation done twice":     {jobModel, false, history(submit(7), cancel, cancel)},
		"markets":                       {market, true, history(limit(1, 1), apply(5, 0, 2), limit(5, 2), apply(5, 2, 2), apply(6, 2, 3), limit(6, 3))},
		"markets of another version":    {market, true, history(another, apply(5, 1, 2))},
		"markets applied out of turn":   {market, false, history(apply(5, 0, 2), apply(6, 1, 3))},
		"markets refused in turn":       {market, false, history(apply(5, 0, 2), another)},
		"markets applied twice":         {market, false, history(apply(5, 0, 2), limit(5, 3))},
		"markets of before":             {market, false, history(apply(5, 0, 2), limit(1, 1))},
	} {
		if got := porcupine.CheckOperationsTimeout(c.model, c.h, time.Minute); got == porcupine.Ok != c.fits {
			t.Errorf("%s: %v, want that it fits: %v", name, got, c.fits)
		}
	}
}
