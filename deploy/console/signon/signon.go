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

// back is the last part of the console's address to which the sign-on provider sends the browser after a sign-on.
const back = "back"

const (
	// beginsWithin is how long a person may take at the provider.
	beginsWithin = 15 * time.Minute
	// answersWithin is how long the provider may take to answer a request. mostAtOnce is how many requests may be open
	// at a time. silentFor is how long the console waits after a request without an answer, before it sends another
	// one.
	answersWithin = 10 * time.Second
	mostAtOnce    = 16
	silentFor     = 2 * time.Second
)

// Config configures a [SignOn]. All fields but Log and Now are needed.
type Config struct {
	Rules     *Rules
	Site      messages.Name
	Operators []messages.Name
	// Lend makes temporary credentials for an account. If `operator` is true, these are an operator's credentials. All
	// lent credentials end after an hour.
	Lend func(account messages.Name, operator bool) (Loan, error)
	Log  *zap.Logger      // nil means that nothing is logged
	Now  func() time.Time // nil means the wall clock
}

// SignOn serves the requests below [console.SignOnPath].
type SignOn struct {
	Config
	secret   string
	client   *http.Client
	own      *http.CrossOriginProtection
	asking   chan struct{} // one place for each request to the provider that may be open at the same time
	sessions sessions

	mu       sync.Mutex
	provider *oidc.Provider // nil until the provider has answered
	failure  error          // why the provider has not answered
	asked    time.Time      // when the provider was asked last
}

// New makes a SignOn. It sends no request to the provider until the first person signs on.
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

// Serve answers a request. The argument `origin` is the address of the console in the browser, such as
// https://west.example:8470.
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
		http.Error(w, "the console has no such page; its first page is /", http.StatusNotFound)
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
	// Two tabs of a browser share their cookies. So a second tab continues the attempt that the first tab began;
	// otherwise the answer to the first tab would be refused.
	if cookie, err := r.Cookie(s.name(r, "try")); err == nil && len(cookie.Value) == len(t) {
		t = try(cookie.Value)
	}
	s.cookie(w, r, "try", string(t), beginsWithin, http.SameSiteLaxMode) // SameSite is Lax, because the browser comes back from the provider's page
	http.Redirect(w, r, s.flow(provider, origin).AuthCodeURL(t.part("state"), oidc.Nonce(t.part("nonce")), oauth2.S256ChallengeOption(t.part("verifier"))), http.StatusSeeOther)
	return nil
}

// try is the secret of one attempt to sign on. It is valid until the attempt ends. A cookie of the browser holds it.
type try string

// part returns a word that is computed from the secret. Only somebody who knows the secret can compute the word, and
// the word does not reveal the secret.
func (t try) part(name string) string {
	digest := sha256.Sum256([]byte(name + " " + string(t)))
	return base64.RawURLEncoding.EncodeToString(digest[:])
}

// back reads the provider's answer from the browser's request, and begins a session.
func (s *SignOn) back(w http.ResponseWriter, r *http.Request, origin string) error {
	q := r.URL.Query()
	cookie, err := r.Cookie(s.name(r, "try"))
	if err != nil || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(try(cookie.Value).part("state"))) != 1 {
		return messages.Errorf(messages.PermissionDenied, "this answer of %s was used already, or does not belong to a sign-on that this browser began in the last %d minutes: go back to the console, and sign in again if it asks you to", s.Host(), int(beginsWithin.Minutes()))
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
	// Some providers give a person's claims, such as groups, only at their userinfo endpoint. Claims that are already
	// in the token are not replaced.
	info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return claims, nil // Rules.account then reports which claim is missing
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

// credentials answers with the temporary credentials (the loan) of the person who has signed on in this browser. If
// nobody has signed on, it answers with the status 204.
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
	_ = json.NewEncoder(w).Encode(loan) // an error means that the browser has gone away, and needs no answer
}

// leave ends a session at the console. The session at the provider continues.
func (s *SignOn) leave(w http.ResponseWriter, r *http.Request) {
	if secret, own := s.session(w, r); own {
		s.sessions.end(secret)
		s.cookie(w, r, "session", "", -1, http.SameSiteStrictMode)
		w.WriteHeader(http.StatusNoContent)
	}
}

// session returns the secret of the browser's session, or "". The result `own` is false if the request does not come
// from a page of the console; such a request is refused.
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

// place lets at most mostAtOnce callers send requests to the provider at a time, and returns an error to further
// callers at once. A caller must call the returned function after its last request.
func (s *SignOn) place(ctx context.Context) (context.Context, func(), error) {
	select {
	case s.asking <- struct{}{}:
	default:
		return nil, nil, messages.Errorf(messages.Unavailable, "many people sign in at this moment: try again in a few seconds")
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.WithoutCancel(ctx), s.client), answersWithin)
	return ctx, func() { cancel(); <-s.asking }, nil
}

// found returns the provider of identities with its endpoints. It asks the provider for the endpoints until one answer
// has come.
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

// name returns the name of a cookie. With the prefix __Host-, browsers do not let other hosts of the domain set or read
// it.
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
