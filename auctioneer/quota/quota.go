package quota

import (
	"cmp"
	"errors"
	"math"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Rules are a site's limits for each account; the zero value has no limits.
type Rules struct {
	// PerSecond is the maximum rate of an account's submissions in the long run. 0 means no limit.
	PerSecond float64 `json:"submissions_per_second,omitempty"`
	// Burst is the maximum number of submissions that an account can make at the same time. It is at least 1. The
	// default is 10 times PerSecond.
	Burst int `json:"burst,omitempty"`
	// PendingJobs is the maximum number of an account's active jobs. 0 means that only the site's limit for all jobs
	// applies.
	PendingJobs int `json:"pending_jobs,omitempty"`
	// Deposit is held for each job in addition to its budget, and kept if the owner cancels the job within
	// DepositWindow, before it was started. 0 means no deposit.
	Deposit messages.Credits `json:"deposit,omitempty"`
	// DepositWindow is how long after its submission a cancelled job loses its Deposit. 0 means 10 minutes.
	DepositWindow messages.Duration `json:"deposit_window,omitempty"`
	// Connections is the maximum of an account's open connections to NATS; an operator may have four times as many. 0
	// means DefaultConnections.
	Connections int `json:"connections,omitempty"`
}

// These are the limits and defaults of the fields of Rules.
const (
	minPerSecond  = 0.001
	maxPerSecond  = 1e6
	maxBurst      = 1_000_000
	maxDeposit    = 1_000_000 * messages.Credit
	defaultWindow = messages.Duration(10 * time.Minute)
	maxWindow     = messages.Duration(30 * 24 * time.Hour)

	// DefaultConnections is the default number of connections that one account may have. It is enough for a shell loop
	// that starts a hundred commands at once.
	DefaultConnections = 128
	minConnections     = 4
	maxConnections     = 1_000_000
)

// Validate returns joined errors for the rules that cannot work. Each message begins with the name of a rule.
func (r *Rules) Validate() error {
	var found []error
	addf := func(format string, args ...any) {
		found = append(found, messages.Errorf(messages.Invalid, format, args...))
	}
	if r.PerSecond != 0 && !(r.PerSecond >= minPerSecond && r.PerSecond <= maxPerSecond) {
		addf("submissions_per_second: %v is out of range; use %v to %v, or 0 for no limit", r.PerSecond, minPerSecond, maxPerSecond)
	}
	if r.Burst < 0 || r.Burst > maxBurst {
		addf("burst: %d is out of range; use 1 to %d", r.Burst, maxBurst)
	}
	if r.Burst > 0 && r.PerSecond == 0 {
		addf("burst: has no use without submissions_per_second")
	}
	if r.PendingJobs < 0 {
		addf("pending_jobs: %d is negative; use 0 for no limit", r.PendingJobs)
	}
	if r.Deposit < 0 || r.Deposit > maxDeposit {
		addf("deposit: %v is out of range; use 0 to %v", r.Deposit, maxDeposit)
	}
	if r.DepositWindow < 0 || r.DepositWindow > maxWindow {
		addf("deposit_window: %v is out of range; use up to %v", r.DepositWindow, maxWindow)
	}
	if r.Connections != 0 && (r.Connections < minConnections || r.Connections > maxConnections) {
		addf("connections: %d is out of range; use %d to %d", r.Connections, minConnections, maxConnections)
	}
	return errors.Join(found...)
}

// An owner who cancels a job within a certain time after its submission, before it has started, loses the deposit.
// Window returns this time.
func (r *Rules) Window() messages.Duration { return cmp.Or(r.DepositWindow, defaultWindow) }

func (r *Rules) burst() int64 {
	if r.Burst > 0 {
		return int64(r.Burst)
	}
	return max(1, int64(math.Ceil(10*r.PerSecond)))
}

// Buckets stores, for each account, the time when its bucket will be full again. The zero value is ready to use. It
// is not safe for concurrent use.
type Buckets struct {
	full map[messages.Name]messages.Time
	next int // number of accounts at which sweep runs next
}

// An account with a full bucket is treated like an unknown account, so its bucket can be removed from memory. Full
// buckets are removed when the number of accounts reaches sweepFrom. They are removed again each time that this number
// has doubled since the last removal.
const sweepFrom = 1024

// A submission costs one token. An account earns tokens over time, up to the burst. Take takes a token of an account at
// the time `now`. If there is no token, the result `again` is the time when there will be one. If `now` is before the
// time of an earlier call, Take uses the time of that call.
func (b *Buckets) Take(r *Rules, now messages.Time, account messages.Name) (ok bool, again messages.Time) {
	if r.PerSecond == 0 {
		return true, 0
	}
	interval := messages.Time(max(1, math.Round(1e6/r.PerSecond))) // an account earns one token in each interval
	full := max(b.full[account], now)
	if earliest := full - messages.Time(r.burst()-1)*interval; earliest > now {
		return false, earliest
	}
	if b.full == nil {
		b.full, b.next = map[messages.Name]messages.Time{}, sweepFrom
	}
	b.full[account] = full + interval
	b.sweep(now)
	return true, 0
}

func (b *Buckets) sweep(now messages.Time) {
	if len(b.full) < b.next {
		return
	}
	for account, full := range b.full {
		if full <= now {
			delete(b.full, account)
		}
	}
	b.next = max(sweepFrom, 2*len(b.full))
}
