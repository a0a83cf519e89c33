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

// rekeyEvery is the time between two checks whether the site's keys have changed.
const rekeyEvery = 500 * time.Millisecond

// renewEvery is the time between two checks whether credentials in the state directory will expire soon.
const renewEvery = time.Hour

// watchKeys watches the keys directory. Rotated and revoked keys take effect within moments, without a restart.
func (s *share) watchKeys(o *server.Options) {
	late, told := false, "" // late: the new keys cannot be used yet; told: the error that was logged last
	renewed := time.Now()
	unknown := false // the bank does not know the peers that have joined yet
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
		case err.Error() != told: // log an error only once, although it is tried again
			told = err.Error()
			s.log.Warn("a change of the keys or of the peers cannot be used yet; the earlier keys and peers stay in force", zap.Error(err))
		}
	}
}

// followPeers adds the new peers of a changed configuration, and tells the bank about them. If the bank has not
// accepted them yet, the result is true. The caller must then call followPeers again with `unknown` true.
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

// rekey starts to use changed keys. It first refreshes the NATS server, and then writes new credentials, because the
// server must already accept the new credentials when they are written.
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

// renewing returns a function that makes new credentials for each connection, because a key that signed earlier
// credentials may have been removed.
func (s *share) renewing(role identity.Role, name messages.Name) func() (token, seed string, err error) {
	return func() (string, string, error) {
		creds, err := s.authority.Credentials(role, name)
		return creds.Token, creds.Seed, err
	}
}
