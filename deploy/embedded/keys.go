package embedded

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/natsserver"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/beat"
)

// rekeyEvery is how often a running site looks whether its keys have changed.
const rekeyEvery = 500 * time.Millisecond

// renewEvery is how often a running site looks whether credentials in its state directory
// are about to end.
const renewEvery = time.Hour

// watchKeys follows the keys directory while the site runs: what is rotated or
// revoked there is in force within moments, without a start.
func (s *share) watchKeys(o *server.Options) {
	late, told := false, "" // what was read is not in force, and why
	renewed := time.Now()
	unknown := false // to the bank, of peers that have joined
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(beat.Until(rekeyEvery)):
		}
		changed, err := s.authority.Changed()
		if err == nil && (changed || late) {
			err = s.rekey(o)
			late = err != nil
		} else if err == nil && time.Since(renewed) > renewEvery {
			renewed, err = time.Now(), writeCredentials(&s.config, s.authority)
		}
		if err == nil {
			unknown, err = s.followPeers(o, unknown)
		}
		switch {
		case err == nil:
			told = ""
		case err.Error() != told: // once, however often it is tried
			told = err.Error()
			s.log.Warn("a change of the keys or of the peers cannot be used yet; what was before stays in force", zap.Error(err))
		}
	}
}

// followPeers takes over the peers that the configuration adds, and has the bank know them:
// again and again, while it does not (unknown).
func (s *share) followPeers(o *server.Options, unknown bool) (bool, error) {
	if s.options.Changed == nil {
		return false, nil
	}
	changed, err := s.options.Changed()
	if err != nil {
		return unknown, err
	}
	if changed != nil {
		before := len(s.peers())
		if err := s.enlist(o, changed); err != nil {
			return unknown, err
		}
		unknown = unknown || len(s.peers()) > before
	}
	if unknown {
		err = s.introduce()
	}
	return unknown && err != nil, err
}

// rekey takes the keys over as they are now: first into the server, so that what is
// issued next is admitted.
func (s *share) rekey(o *server.Options) error {
	if err := s.authority.Reload(); err != nil {
		return err
	}
	if err := natsserver.Refresh(s.server, o, s.authority, namesOf(s.peers())...); err != nil {
		return err
	}
	s.log.Info("the keys have changed; the new keys are in force")
	return writeCredentials(&s.config, s.authority)
}

// renewing gives credentials of a part of the site each time that it connects: those
// from before may be signed with a key that is gone.
func (s *share) renewing(role identity.Role, name messages.Name) func() (token, seed string, err error) {
	return func() (string, string, error) {
		creds, err := s.authority.Credentials(role, name)
		return creds.Token, creds.Seed, err
	}
}
