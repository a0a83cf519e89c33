package signon

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"go.uber.org/zap"
	"golang.org/x/oauth2"

	"github.com/candor-grid/candor/deploy/console"
	"github.com/candor-grid/candor/messages"
)

// back is the end of the address to which the provider sends the browser.
const back = "back"

const (
	// beginsWithin is how long a person may take at the provider.
	beginsWithin = 15 * time.Minute
	// answersWithin bounds a question to the provider, and mostAtOnce the questions at a time. silentFor is how long a
	// provider that did not answer is not asked again.
	answersWithin = 10 * time.Second
	mostAtOnce    = 16
	silentFor     = 2 * time.Second
)

// Config configures a [SignOn]. All but Log and Now are needed.
type Config struct {
	Rules     *Rules
	Site      messages.Name
	Operators []messages.Name
	// Lend makes credentials of an account that end after an hour. An operator has those of an operator.
	Lend func(account messages.Name, operator bool) (Loan, error)
	Log  *zap.Logger      // nil: nothing is logged
	Now  func() time.Time // nil: the wall clock
}

// SignOn serves the requests below [console.SignOnPath].
type SignOn struct {
	Config
	secret   string
	client   *http.Client
	own      *http.CrossOriginProtection
	asking   chan struct{} // a place for each question to the provider
	sessions sessions

	mu       sync.Mutex
	provider *oidc.Provider // nil: it has not answered yet
	failure  error          // why it has not
	asked    time.Time      // when it was asked last
}

// New makes a SignOn. The provider is asked when the first person signs on.
func New(c Config) (*SignOn, error) {
	secret, err := c.Rules.secret()
	if err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &SignOn{Config: c, secret: secret, client: &http.Client{Timeout: answersWithin}, own: http.NewCrossOriginProtection(), asking: make(chan struct{}, mostAtOnce)}, nil
}

// Host returns the name of the provider's host, for people to read.
func (s *SignOn) Host() string { return s.Rules.host() }

// Serve answers a request. origin is the address of the console in the browser, such as https://west.example:8470.
func (s *SignOn) Serve(w http.ResponseWriter, r *http.Request, origin string) {
	w.Header().Set("Cache-Control", "no-store")
	var err error
	switch r.Method + " " + strings.TrimPrefix(r.URL.Path, console.SignOnPath) {
	case "GET begin":
		err = s.begin(w, r, origin)
	case "GET " + back:
		err = s.back(w, r, origin)
	case "POST credentials":
		s.credentials(w, r)
	case "POST leave":
		s.leave(w, r)
	default:
		http.Error(w, "the console has no such page; it begins at /", http.StatusNotFound)
	}
	if err != nil {
		s.Log.Info("a person could not sign on", zap.Error(err))
		refuse(w, err)
	}
}

// begin sends the browser to the provider.
func (s *SignOn) begin(w http.ResponseWriter, r *http.Request, origin string) error {
	ctx, done, err := s.place(r.Context())
	if err != nil {
		return err
	}
	defer done()
	provider, err := s.found(ctx)
	if err != nil {
		return err
	}
	t := try(rand.Text() + rand.Text())
	s.cookie(w, r, "try", string(t), beginsWithin, http.SameSiteLaxMode) // the provider's page leads back here
	http.Redirect(w, r, s.flow(provider, origin).AuthCodeURL(t.part("state"), oidc.Nonce(t.part("nonce")), oauth2.S256ChallengeOption(t.part("verifier"))), http.StatusSeeOther)
	return nil
}

// try is the secret of a sign-on that was begun, in a cookie of the browser.
type try string

// part returns a word that only who knows the secret can compute, and that does not reveal it.
func (t try) part(name string) string {
	digest := sha256.Sum256([]byte(name + " " + string(t)))
	return base64.RawURLEncoding.EncodeToString(digest[:])
}

// back takes the answer of the provider from the browser, and begins a session.
func (s *SignOn) back(w http.ResponseWriter, r *http.Request, origin string) error {
	q := r.URL.Query()
	cookie, err := r.Cookie(s.name(r, "try"))
	if err != nil || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(try(cookie.Value).part("state"))) != 1 {
		return messages.Errorf(messages.PermissionDenied, "this answer of %s does not belong to a sign-on that this browser began in the last %d minutes: sign in again", s.Host(), int(beginsWithin.Minutes()))
	}
	s.cookie(w, r, "try", "", -1, http.SameSiteLaxMode)
	if said := q.Get("error"); said != "" {
		return messages.Errorf(messages.PermissionDenied, "%s did not sign you in: %s", s.Host(), messages.Short(cmp.Or(q.Get("error_description"), said), 200))
	}
	ctx, done, err := s.place(r.Context())
	if err != nil {
		return err
	}
	defer done()
	claims, err := s.claims(ctx, origin, q.Get("code"), try(cookie.Value))
	if err != nil {
		return err
	}
	account, operator, err := s.Rules.account(claims, s.Operators)
	if err != nil {
		return err
	}
	loan, err := s.Lend(account, operator)
	if err != nil {
		return err
	}
	now := s.Now()
	s.cookie(w, r, "session", s.sessions.begin(account, loan, now), loan.Expires.Std().Sub(now), http.SameSiteStrictMode)
	s.Log.Info("a person signed on", zap.String("account", account), zap.Bool("operator", operator), zap.Any("subject", claims["sub"]))
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// claims returns what the provider says of the person for whom it gave a code.
func (s *SignOn) claims(ctx context.Context, origin, code string, t try) (map[string]any, error) {
	provider, err := s.found(ctx)
	if err != nil {
		return nil, err
	}
	token, err := s.flow(provider, origin).Exchange(ctx, code, oauth2.VerifierOption(t.part("verifier")))
	if err != nil {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response.StatusCode < 500 {
			return nil, messages.Errorf(messages.PermissionDenied, "%s does not take the code of this sign-on (%s): sign in again", s.Host(), messages.Short(cmp.Or(refused.ErrorCode, refused.Response.Status), 64))
		}
		return nil, s.silent(err)
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := provider.Verifier(&oidc.Config{ClientID: s.Rules.Client, Now: s.Now}).Verify(ctx, raw)
	if err != nil {
		return nil, messages.Errorf(messages.PermissionDenied, "the token of %s is not valid: %v", s.Host(), err)
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(t.part("nonce"))) != 1 {
		return nil, messages.Errorf(messages.PermissionDenied, "the token of %s belongs to another sign-on: sign in again", s.Host())
	}
	claims := map[string]any{}
	if err := verified.Claims(&claims); err != nil || !s.Rules.missing(claims) {
		return claims, err
	}
	// Some providers have these claims at their userinfo endpoint alone. What the token says is not replaced.
	info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return claims, nil // account says which claim is missing
	}
	if info.Subject != verified.Subject {
		return nil, messages.Errorf(messages.PermissionDenied, "%s answers about another person than the one who signed in", s.Host())
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return nil, err
	}
	for name, value := range more {
		if claims[name] == nil {
			claims[name] = value
		}
	}
	return claims, nil
}

// credentials gives the page of a person who has signed on what the person's account needs.
func (s *SignOn) credentials(w http.ResponseWriter, r *http.Request) {
	secret, own := s.session(w, r)
	if !own {
		return
	}
	loan, ok := s.sessions.loan(secret, s.Now())
	if !ok {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(loan) // a browser that went away needs no answer
}

// leave ends a session. The provider still knows the person.
func (s *SignOn) leave(w http.ResponseWriter, r *http.Request) {
	if secret, own := s.session(w, r); own {
		s.sessions.end(secret)
		s.cookie(w, r, "session", "", -1, http.SameSiteStrictMode)
		w.WriteHeader(http.StatusNoContent)
	}
}

// session returns the secret of the browser's session, or refuses a request that is not from a page of the console.
func (s *SignOn) session(w http.ResponseWriter, r *http.Request) (secret string, own bool) {
	if err := s.own.Check(r); err != nil || r.Header.Get("Origin") == "" {
		http.Error(w, "only a page of this console may ask for this", http.StatusForbidden)
		return "", false
	}
	if cookie, err := r.Cookie(s.name(r, "session")); err == nil {
		secret = cookie.Value
	}
	return secret, true
}

// place waits for nothing: it takes a place for a question to the provider, or says that there is none.
func (s *SignOn) place(ctx context.Context) (context.Context, func(), error) {
	select {
	case s.asking <- struct{}{}:
	default:
		return nil, nil, messages.Errorf(messages.Unavailable, "many people sign in at this moment: try again in a few seconds")
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.WithoutCancel(ctx), s.client), answersWithin)
	return ctx, func() { cancel(); <-s.asking }, nil
}

// found returns the provider, which is asked for its endpoints until it has answered once.
func (s *SignOn) found(ctx context.Context) (*oidc.Provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.provider != nil {
		return s.provider, nil
	}
	if s.failure != nil && s.Now().Sub(s.asked) < silentFor {
		return nil, s.failure
	}
	provider, err := oidc.NewProvider(ctx, s.Rules.Issuer)
	s.asked = s.Now()
	if err != nil {
		s.failure = s.silent(err)
		return nil, s.failure
	}
	s.provider = provider
	return provider, nil
}

func (s *SignOn) silent(err error) error {
	return messages.Errorf(messages.Unavailable, "%s, where people of this site sign in, does not answer: try again later, or give the console your file of credentials (%v)", s.Host(), messages.Short(err.Error(), 200))
}

func (s *SignOn) flow(p *oidc.Provider, origin string) *oauth2.Config {
	scopes := s.Rules.Scopes
	if len(scopes) == 0 {
		scopes = []string{"profile"}
	}
	return &oauth2.Config{ClientID: s.Rules.Client, ClientSecret: s.secret, Endpoint: p.Endpoint(), RedirectURL: origin + console.SignOnPath + back,
		Scopes: slices.Insert(slices.Clone(scopes), 0, oidc.ScopeOpenID)}
}

// name returns the name of a cookie. Browsers keep a cookie whose name begins with __Host- from other hosts of the domain.
func (s *SignOn) name(r *http.Request, what string) string {
	name := "candor-" + s.Site + "-" + what
	if r.TLS != nil {
		return "__Host-" + name
	}
	return name
}

func (s *SignOn) cookie(w http.ResponseWriter, r *http.Request, what, value string, lasts time.Duration, same http.SameSite) {
	c := &http.Cookie{Name: s.name(r, what), Value: value, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: same, MaxAge: -1}
	if lasts > 0 {
		c.MaxAge = int(lasts.Seconds())
	}
	http.SetCookie(w, c)
}

// refuse shows a person why the sign-on failed.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusForbidden
	if messages.KindOf(err) == messages.Unavailable {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Candor</title>
<link rel="stylesheet" href="/app.css">
<main class="login">
<h1>You are not signed in</h1>
<p class="failure">%s</p>
<p><a href="/">Back to the console</a></p>
</main>
</html>
`, html.EscapeString(messages.Detail(err)))
}
