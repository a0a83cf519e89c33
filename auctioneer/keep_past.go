package auctioneer

import (
	"bytes"
	"context"
	"errors"
	"os"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/market"
)

// copyPast copies new samples of the price histories from the leader at intervals. It does nothing while this replica
// is the leader.
func (a *site) copyPast(ctx context.Context) {
	for sleep(ctx, sampleEvery) {
		if s := a.box.Status(); s.Leader == s.ID {
			continue
		}
		if err := a.copyPastOnce(ctx); err != nil && ctx.Err() == nil {
			a.Log.Debug("the histories of markets are not copied yet", zap.Error(err)) // the next round copies them
		}
	}
}

func (a *site) copyPastOnce(ctx context.Context) error {
	subject := messages.Subject(a.Site, messages.Auctioneer, market.VerbPast, messages.ServiceIdentity(messages.Auctioneer))
	a.histories.mu.Lock()
	r := market.PastRequest{From: a.histories.last}
	a.histories.mu.Unlock()
	for {
		within, cancel := context.WithTimeout(ctx, 5*sampleEvery)
		reply, err := bus.Call[market.PastReply](within, a.Bus, subject, r)
		cancel()
		if err != nil {
			return err
		}
		a.histories.merge(&reply)
		if r.After = reply.Next; r.After == "" {
			return nil
		}
	}
}

// loadPast reads the histories from the file. If the file is damaged, it reads the part before the damage.
func (a *site) loadPast() {
	f := &a.pastFile
	f.path, f.rewrites = a.Past, true
	if f.path == "" {
		return
	}
	data, err := readPast(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	rest, is := bytes.CutPrefix(data, []byte(pastMagic))
	for err == nil && is && len(rest) > 0 {
		var one market.PastReply
		if rest, err = nextPast(rest, &one); err == nil {
			a.histories.merge(&one)
			f.saved = one.Now
		}
	}
	if err != nil || !is {
		a.Log.Warn("a part of the histories of markets cannot be read, and is left out", zap.String("file", f.path), zap.Error(err))
		return
	}
	f.rewrites, f.whole = false, int64(len(data))
}

// keepPast saves the histories at intervals, and once more at the end.
func (a *site) keepPast(ctx context.Context) {
	if a.pastFile.path == "" {
		return
	}
	for on := true; on; {
		on = sleep(ctx, saveEvery)
		err := a.pastFile.save(&a.histories)
		if failed := err != nil; failed != a.pastFile.failing {
			if a.pastFile.failing = failed; failed {
				a.Log.Warn("the histories of markets cannot be kept in the file; these histories are only in memory", zap.String("file", a.pastFile.path), zap.Error(err))
			}
		}
	}
}
