package embedded

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/beat"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/messages/siteclock"
	"github.com/candor-grid/candor/messages/wire"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

func (s *share) openClock() {
	wall := s.options.Wall
	if wall == nil {
		wall = func() messages.Time { return messages.TimeOf(time.Now()) }
	}
	s.clock = siteclock.NewHost(max(1, len(s.config.Hosts)), wall, func() messages.Duration { return messages.Duration(boottime.Now()) })
	s.metrics.shared.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "candor_clock_ahead_seconds",
		Help: "Seconds by which the clock of this host is ahead of the site's time; negative if it is behind.",
	}, func() float64 { return s.clock.Ahead().Seconds() }))
}

// clockFile is the name of the file in which the site keeps what it knows about its clock; see keptClock.
const clockFile = "clock.json"

// keptClock is for the next start of the site. It has the difference between the site's time and the machine's time
// since boot. If the machine does not boot before the next start, the site can then compute by how much the machine's
// clock was changed between the two starts.
type keptClock struct {
	Boot   string            `json:"boot"` // identifies the machine's boot; the kernel gives it
	Offset messages.Duration `json:"offset"`
	Sum    string            `json:"sum"`
}

// sum returns a checksum of all fields but Sum.
func (k *keptClock) sum() string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE(fmt.Appendf(nil, "%s %d", k.Boot, int64(k.Offset))))
}

// leastDrift is the smallest change of the clock's offset for which the clock's file is written again.
const leastDrift = siteclock.Bound / 5

// keepClock continues with the clock that an earlier start stored. It watches and stores the clock until the site is
// closed.
func (s *share) keepClock() {
	path, boot, kept := filepath.Join(s.config.State, clockFile), boottime.Boot(), keptClock{}
	err := durable.ReadJSON(path, &kept)
	if err == nil && kept != (keptClock{}) && kept.Sum != kept.sum() {
		err = errors.New("the checksum of the file differs: the file is damaged")
	}
	if err != nil {
		s.log.Warn("it is not known whether a clock was set while the site was stopped", zap.String("file", path), zap.Error(err))
	}
	if err != nil || boot == "" || kept.Boot != boot {
		kept = keptClock{}
	} else {
		s.clock.Resume(kept.Offset)
	}
	watch := s.watchClock()
	s.watchers.Go(func() {
		each(s.ctx, siteclock.ReadEvery, func() {
			watch()
			offset, known := s.clock.Offset()
			if drift := offset - kept.Offset; boot == "" || !known || kept.Boot == boot && max(drift, -drift) < leastDrift {
				return
			}
			now := keptClock{Boot: boot, Offset: offset}
			now.Sum = now.sum()
			if replaceJSON(path, now) == nil { // after a failed write, the next try comes in a second
				kept = now
			}
		})
	})
}

// each calls f at once and after each interval, until ctx ends.
func each(ctx context.Context, interval messages.Duration, f func()) {
	for {
		f()
		select {
		case <-time.After(beat.Until(interval.Std())):
		case <-ctx.Done():
			return
		}
	}
}

// watchClock returns a function that logs when this host's clock becomes wrong, and when it is right again.
func (s *share) watchClock() func() {
	was := false
	return func() {
		ahead := s.clock.Ahead()
		switch off := max(ahead, -ahead) > siteclock.Bound; {
		case off && !was:
			was = true
			s.log.Warn("the clock of this host was changed, or is wrong: the site keeps its own time; correct the clock", zap.Duration("ahead", ahead.Std()))
		case was && !off:
			was = false
			s.log.Info("the clock of this host and the site's time agree again")
		}
	}
}

// tellClock exchanges clock readings with the other hosts of the site until ctx ends. It uses the connection of a
// replica.
func (s *share) tellClock(ctx context.Context, b bus.Bus) error {
	if s.host == nil || len(s.config.Hosts) == 1 {
		return nil
	}
	_, err := b.Subscribe(messages.ClockSubject(s.config.Site, "*"), func(subject string, payload []byte) {
		var r messages.ClockReading
		host := s.config.host(subject[strings.LastIndexByte(subject, '.')+1:])
		if wire.UnmarshalReply(payload, &r) == nil && host != nil && host != s.host {
			s.clock.Hear(host.Name, r.At)
		}
	})
	if err != nil {
		return err
	}
	go each(ctx, siteclock.ReadEvery, func() {
		if payload, err := wire.Marshal(messages.ClockReading{At: s.clock.Wall()}, wire.Msgpack); err == nil {
			_ = b.Publish(messages.ClockSubject(s.config.Site, s.host.Name), payload) // an error does not matter: another reading follows
		}
	})
	return nil
}
