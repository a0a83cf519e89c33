package market

import (
	"fmt"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// Charge returns the transfer that charges an ended job. If the job owes nothing, the transfer only frees the hold.
func Charge(j *book.Job) money.Transfer {
	t := money.Transfer{ID: j.Hold + "/charge", Kind: money.Post, Pending: j.HoldID(), Debit: j.Payer, Credit: money.SiteAccount,
		Amount: j.Owed, Job: j.ID, Reason: j.Spec.Labels.Labelled(Used(j), maxReason)}
	if j.Owed == 0 {
		t.Kind, t.Debit, t.Credit = money.Void, "", ""
	}
	return t
}

// Release returns the transfer that frees the hold of a refused submission.
func Release(hold string) money.Transfer {
	return money.Transfer{ID: hold + "/refused", Kind: money.Void, Pending: hold, Reason: "the submission was refused"}
}

// maxReason is the maximum length of a reason that a bank accepts, in bytes.
const maxReason = 512

// Used returns the text of a job's charge in a statement: the reason, what ended the job or attempts, and what its
// tasks used. The text is cut to the length that a bank accepts.
func Used(j *book.Job) string {
	text := j.Why
	if j.Cause != "" {
		text += "; " + j.Cause
	}
	whole := text
	if lost := j.Setbacks(j.Ended, func(uint32) messages.Name { return "its node" }); lost != "" {
		whole += "; " + lost
	}
	for _, longer := range []string{whole + usage(j), whole, text + usage(j), text, j.Why + usage(j)} {
		if len(longer) <= maxReason {
			return longer
		}
	}
	return j.Why
}

// usage describes the time and memory that the job's tasks used. It has the slot time only if a task takes several
// slots: otherwise slot time equals run time.
func usage(j *book.Job) string {
	var cpu, slots messages.Duration
	var memory int64
	width := 1
	for i := range j.Stages {
		slots, width = slots+j.Stages[i].SlotTime, max(width, j.Spec.Stages[i].Slots())
		cpu += j.Stages[i].CPU
		memory = max(memory, j.Stages[i].MaxRSS)
	}
	text := "; used "
	if width > 1 {
		text += fmt.Sprintf("%v of slot time (a task takes up to %d slots, and is charged for slots that are kept for it), ", slots.Std().Round(time.Millisecond), width)
	}
	text += fmt.Sprintf("%v of processor time", cpu.Std().Round(time.Millisecond))
	if memory >= 1<<20 {
		text += fmt.Sprintf(" and %d MiB at most", memory>>20)
	}
	if cpu == 0 && memory == 0 {
		return ""
	}
	return text
}

// Raise returns the transfers that raise a budget, as one linked set. They free the job's present hold, and make a hold
// of the whole new budget. The new hold ends at the time `expires`.
func Raise(j *book.Job, expires messages.Time) (out []money.Transfer) {
	hold, amount := j.RaisedTo()
	if old := j.HoldID(); old != "" {
		out = append(out, money.Transfer{ID: hold + "/frees", Kind: money.Void, Pending: old, Job: j.ID, Reason: "the budget is raised", Linked: true})
	}
	return append(out, money.Transfer{ID: hold, Kind: money.Hold, Debit: j.Payer, Credit: money.SiteAccount, Amount: amount,
		Member: j.Account, Expires: expires, Job: j.ID, Reason: "raised budget of " + j.Spec.Title() + " (market " + j.Spec.Market + ")"})
}

// Round returns the transfers for payments between jobs, as one linked set. Each payment is taken from the hold of the
// paying job. What is left of a hold becomes a new hold, which expires at the time `expires`. The receiving jobs are
// paid through the site's account. Amounts that are due later stay in the site's account.
func Round(b *book.Book, e *book.Effect, expires messages.Time) (out []money.Transfer) {
	due, gain := map[messages.JobID]messages.Credits{}, map[messages.JobID]messages.Credits{}
	// by job: the reason of the first payment that the job makes or gets
	pays, gets := map[messages.JobID]string{}, map[messages.JobID]string{}
	var payers, payees []messages.JobID
	for _, leg := range e.Legs {
		if due[leg.From] == 0 && leg.From != 0 {
			payers, pays[leg.From] = append(payers, leg.From), leg.Reason
		}
		if due[leg.From] += leg.Amount; leg.To == 0 || leg.Later {
			continue
		}
		if gain[leg.To] == 0 {
			payees, gets[leg.To] = append(payees, leg.To), leg.Reason
		}
		gain[leg.To] += leg.Amount
	}
	reason := func(j *book.Job, of map[messages.JobID]string) string {
		return j.Spec.Labels.Labelled(of[j.ID], maxReason)
	}
	for _, id := range payers {
		j := b.Job(id)
		out = append(out, money.Transfer{ID: fmt.Sprintf("%s/pays/%d", j.Hold, e.ID), Kind: money.Post, Pending: j.HoldID(), Debit: j.Payer,
			Credit: money.SiteAccount, Amount: due[id], Job: id, Reason: reason(j, pays), Linked: true})
		if rest := j.Held - j.Drawn - due[id]; rest > 0 {
			out = append(out, money.Transfer{ID: j.RestID(e.ID), Kind: money.Hold, Debit: j.Payer, Credit: money.SiteAccount, Amount: rest,
				Member: j.Account, Expires: expires, Job: id, Reason: "what is left of its budget", Linked: true})
		}
	}
	for _, id := range payees {
		j := b.Job(id)
		out = append(out, money.Transfer{ID: fmt.Sprintf("%s/gets/%d", j.Hold, e.ID), Kind: money.Posted, Debit: money.SiteAccount,
			Credit: j.Payer, Amount: gain[id], Job: id, Reason: reason(j, gets), Linked: true})
	}
	out[len(out)-1].Linked = false
	return out
}
