package signon

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// Loan has the text of an account's file of credentials, and the time when these credentials expire.
type Loan struct {
	Creds   string        `json:"creds"`
	Expires messages.Time `json:"expires"`
}

// mostOfAccount is how many sessions an account may have at a time. If one more session begins, the oldest session
// ends.
const mostOfAccount = 8

// sessions keeps the loans of people who have signed on. The key of the map `held` is the digest of the secret in the
// browser's cookie.
type sessions struct {
	mu   sync.Mutex
	held map[[32]byte]session
}

type session struct {
	account messages.Name
	loan    Loan
}

// begin stores the credentials that were lent for an account. It returns a new secret. With this secret, the session is
// found again.
func (s *sessions) begin(account messages.Name, loan Loan, now time.Time) (secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[[32]byte]session{}
	}
	own, oldest := 0, [32]byte{}
	for key, one := range s.held {
		if !one.loan.Expires.Std().After(now) {
			delete(s.held, key)
			continue
		}
		if one.account == account {
			if own++; own == 1 || one.loan.Expires < s.held[oldest].loan.Expires {
				oldest = key
			}
		}
	}
	if own >= mostOfAccount {
		delete(s.held, oldest)
	}
	secret = rand.Text()
	s.held[sha256.Sum256([]byte(secret))] = session{account, loan}
	return secret
}

func (s *sessions) loan(secret string, now time.Time) (Loan, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.held[sha256.Sum256([]byte(secret))]
	if !ok || !one.loan.Expires.Std().After(now) {
		return Loan{}, false
	}
	return one.loan, true
}

func (s *sessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, sha256.Sum256([]byte(secret)))
}
