package mailbox

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/beat"
)

// raiseAfter is how long all replicas must be able to work with a higher level before the leader raises the level.
// Until then, each host can go back to the release before.
const raiseAfter = 24 * time.Hour

// agreeOn records that the replicas agreed on a level; 0 means none yet.
func (a *applier) agreeOn(level int) error {
	if level == 0 {
		return nil
	}
	if err := messages.CheckAgreed(level, a.own); err != nil {
		return err
	}
	a.level.Store(int64(level))
	if m, ok := a.machine.(Agreeing); ok {
		m.Agreed(level)
	}
	return nil
}

// levels knows the level of each replica's release, and raises the agreed level while this replica leads. The level is
// in the log and in each snapshot. It never falls.
type levels struct {
	*engine
	leadership *leadership
	standing   *standing
	applier    *applier

	raising sync.Mutex
}

func (v *levels) agreed() int { return max(1, int(v.applier.level.Load())) }

// lowest returns the lowest level of all replicas' releases. `silent` lists the replicas that have not reported their
// level recently. `lower` lists the replicas whose level is below `wanted`.
func (v *levels) lowest(wanted int) (level int, silent, lower []string) {
	level = v.config.limits.level
	for _, s := range v.servers() {
		id, _ := splitAddress(s.Address)
		if id == v.config.ID {
			continue
		}
		told, has := v.standing.levelOf(id)
		if !has || time.Since(told.at) > lately {
			silent = append(silent, id)
			continue
		}
		level = min(level, max(told.Level, 1))
		if told.Level < wanted {
			lower = append(lower, id)
		}
	}
	return level, silent, lower
}

func (v *levels) refusal(needs int) error {
	_, silent, lower := v.lowest(needs)
	do := "all replicas can work with this level: type `candor upgrade finish`"
	if behind := append(lower, silent...); len(behind) > 0 {
		do = "upgrade " + strings.Join(behind, " and ")
	}
	return messages.Errorf(messages.Conflict, "the replicas of this site agree on level %d, and this request needs level %d: %s", v.agreed(), needs, do)
}

// begin makes a new group agree on a level before its first command. It returns false if leadership was lost.
func (v *levels) begin(o *tenure) bool {
	for v.config.limits.level > 1 && v.applier.level.Load() == 0 {
		level, _, _ := v.lowest(0)
		if await(v.raft.Apply(encodeMark(markEntry{Raise: level}), 0), o.lost) == nil {
			return true
		}
		select {
		case <-time.After(barrierRetry):
		case <-o.lost:
			return false
		}
	}
	return true
}

// watch raises the level if this replica leads, and if all replicas could work with a higher level for raiseAfter.
// After it has raised the level to n, it writes a snapshot on each replica. The snapshot replaces the old entries,
// which have level n−1. Otherwise these entries would stay in the files, and a release of level n+1 could not read
// them.
func (v *levels) watch() {
	var since time.Time // when all replicas could first work with a higher level; zero means that they cannot
	every := min(v.config.limits.raiseAfter, time.Second)
	for {
		select {
		case <-v.gone:
			return
		case <-time.After(beat.Until(every)):
		}
		if level := v.applier.level.Load(); level > 1 && v.applier.kept.Load() < level {
			_ = await(v.raft.Snapshot(), v.gone)
		}
		level, silent, _ := v.lowest(0)
		switch {
		case v.leadership.current.Load() == nil || len(silent) > 0 || level <= v.agreed():
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= v.config.limits.raiseAfter:
			if err := v.raise(level); err != nil {
				v.config.Log.Warn("the level of the replicas was not raised", zap.Int("level", level), zap.Error(err))
			}
		}
	}
}

func (v *levels) raise(level int) error {
	v.raising.Lock()
	defer v.raising.Unlock()
	if level <= v.agreed() {
		return nil
	}
	if err := await(v.raft.Apply(encodeMark(markEntry{Raise: level}), 0), v.gone); err != nil {
		return proposeError(err)
	}
	v.config.Log.Info("the replicas agree on a level", zap.Int("level", level))
	return nil
}

// Raise makes the replicas agree on the level of this release. Only the leader can do this; at another replica, Raise
// returns an error. It returns a Conflict if a replica cannot work with this level or does not answer.
func (v *levels) Raise(context.Context) error {
	if v.leadership.current.Load() == nil {
		return v.orClosed(ErrNotLeader)
	}
	level, silent, lower := v.lowest(v.config.limits.level)
	switch {
	case len(silent) > 0:
		return messages.Errorf(messages.Conflict, "replica %s does not answer: start it, or remove it from the group", strings.Join(silent, ", "))
	case len(lower) > 0:
		return messages.Errorf(messages.Conflict, "replica %s runs an earlier release, of level %d: upgrade it first", strings.Join(lower, ", "), level)
	}
	return v.raise(level)
}
