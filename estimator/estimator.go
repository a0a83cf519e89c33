package estimator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/estimator/memory"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// Estimator is one running estimator of a site.
type Estimator struct {
	config  Config
	metrics *metrics
	service bus.Subscription
	cancel  context.CancelFunc
	done    chan struct{}

	// doubt gets a signal if the number of the first message shows that the stream may not be the one that this
	// estimator has read before. The estimator then opens the stream again.
	doubt chan struct{}

	mu       sync.Mutex
	memory   *memory.Memory
	sequence uint64 // number of the last message that the memory has read
	saved    uint64 // value of sequence in the last snapshot
	resuming bool   // a snapshot was loaded, and no message was read since
}

// Start runs an estimator until ctx ends or Close is called. It answers requests at once, with what it has read so
// far.
func Start(ctx context.Context, c Config) (*Estimator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.defaults()
	e := &Estimator{config: c, done: make(chan struct{}), doubt: make(chan struct{}, 1)}
	var err error
	if e.memory, err = memory.New(c.Profiles); err != nil {
		return nil, fmt.Errorf("estimator: %w", err)
	}
	e.metrics = newMetrics(e)
	if err := c.Metrics.Register(e.metrics.all); err != nil {
		return nil, fmt.Errorf("estimator: metrics: %w", err)
	}
	e.load()
	if e.service, err = c.Bus.Serve(e.queries()); err != nil {
		e.config.Metrics.Unregister(e.metrics.all)
		return nil, fmt.Errorf("estimator: serving: %w", err)
	}
	ctx, e.cancel = context.WithCancel(ctx)
	go e.follow(ctx)
	return e, nil
}

// Close stops the estimator, and writes a snapshot.
func (e *Estimator) Close() error {
	e.cancel()
	<-e.done
	e.config.Metrics.Unregister(e.metrics.all)
	return nil
}

// Kinds returns the number of kinds of job in the memory.
func (e *Estimator) Kinds() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.memory.Kinds()
}

// resumeWithin is how long the estimator waits, after a restart, until it finds in the stream the last message that its
// snapshot includes. If this message does not come, the stream has been replaced since the snapshot. The estimator then
// reads the new stream from its beginning.
const resumeWithin = 5 * time.Second

// follow reads the stream until ctx ends, and saves snapshots.
func (e *Estimator) follow(ctx context.Context) {
	defer close(e.done)
	from := uint64(0)
	var overdue <-chan time.Time
	if e.sequence > 0 {
		from, e.resuming, overdue = e.sequence-1, true, time.After(resumeWithin)
	}
	reading := e.open(ctx, from)
	tick := time.NewTicker(e.config.Every)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			e.save()
		case <-overdue:
			overdue = nil
			if e.stillResuming() {
				reading = e.again(ctx, reading)
			}
		case <-e.doubt:
			reading = e.again(ctx, reading)
		}
	}
	e.stop(e.service, reading)
	e.save()
}

func (e *Estimator) stillResuming() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.resuming
}

// The method named again closes the subscription, and opens a new one that reads the stream from its beginning.
func (e *Estimator) again(ctx context.Context, reading bus.Subscription) bus.Subscription {
	e.config.Log.Warn("the snapshot was made from another stream; reading the present stream from its beginning")
	e.stop(reading)
	e.mu.Lock()
	e.resuming, e.sequence = false, 0
	e.mu.Unlock()
	return e.open(ctx, 0)
}

func (e *Estimator) stop(subscriptions ...bus.Subscription) {
	for _, s := range subscriptions {
		if s == nil {
			continue
		}
		if err := s.Stop(); err != nil {
			e.config.Log.Warn("a subscription did not stop in time", zap.Error(err))
		}
	}
}

// A site's servers start one after another, so the first attempts to open the stream may fail. Only failures after
// startTries attempts are logged as warnings.
const startTries = 5

// open begins to read the stream after a sequence number. It tries again until it succeeds, and returns nil if ctx has
// ended.
func (e *Estimator) open(ctx context.Context, after uint64) bus.Subscription {
	for tries := 1; ; tries++ {
		reading, err := e.consume(ctx, after)
		if err == nil {
			return reading
		}
		if ctx.Err() != nil {
			return nil
		}
		log := e.config.Log.Warn
		if tries <= startTries {
			log = e.config.Log.Info
		}
		log("cannot read observations yet; will try again", zap.Error(err))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryInterval):
		}
	}
}

func (e *Estimator) consume(ctx context.Context, after uint64) (bus.Subscription, error) {
	site := e.config.Site
	stream, err := e.config.Bus.Stream(ctx, messages.ObservationStream(site), []string{messages.ObservationSubject(site)})
	if err != nil {
		return nil, err
	}
	return stream.Consume(ctx, after, e.observe)
}

// observe learns from one message of the stream. It skips malformed messages, because they would be malformed at every
// start.
func (e *Estimator) observe(seq uint64, _ string, payload []byte) {
	var o job.Observation
	err := wire.UnmarshalReply(payload, &o)
	e.mu.Lock()
	fresh := false
	if err == nil {
		fresh, err = e.memory.Observe(&o)
	}
	e.advance(seq, fresh)
	e.mu.Unlock()
	switch {
	case err != nil:
		e.metrics.malformed.Inc()
		e.config.Log.Warn("skipped an observation", zap.Uint64("sequence", seq), zap.Error(err))
	case fresh:
		e.metrics.kept.Inc()
	default:
		e.metrics.repeated.Inc()
	}
}

// advance records that the stream was read up to the message with the number `seq`. After a restart from a snapshot,
// the first message that is read must be the snapshot's last message. If the stream no longer has that message, the
// first message must be a later one. In any other case the stream is not the one from which the snapshot was made.
func (e *Estimator) advance(seq uint64, fresh bool) {
	if e.resuming {
		e.resuming = false
		if seq < e.sequence || seq == e.sequence && fresh {
			select {
			case e.doubt <- struct{}{}:
			default:
			}
		}
	}
	e.sequence = seq
}
