package signon

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"crypto/rand"
	"crypto/rsa"

	"github.com/candor-grid/candor/deploy/console"
	"github.com/candor-grid/candor/messages"
)

type desk struct {
	*testing.T
	*httptest.Server
	*provider
	clock time.Time
	rules *Rules
}

func newDesk(t *testing.T, serve func(http.Handler) *httptest.Server) *desk {
	t.Helper()
	d := &desk{T: t, provider: newProvider(t), clock: time.Now()}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(clientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.rules = &Rules{Issuer: d.provider.URL, Client: clientName, SecretFile: file, OperatorGroup: "candor-operators"}
	if err := d.rules.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Rules: d.rules, Site: "west", Operators: []messages.Name{"operator"}, Now: func() time.Time { return d.clock },
		Lend: func(account messages.Name, operator bool) (Loan, error) {
			creds := "credentials of " + account
			if operator {
				creds += ", an operator"
			}
			return Loan{creds, messages.TimeOf(d.clock.Add(time.Hour))}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := console.Handler(console.Config{Site: "west", WebSocket: "ws://:8471", Names: []string{"127.0.0.1"}, SignOn: s})
	if err != nil {
		t.Fatal(err)
	}
	d.Server = serve(h)
	t.Cleanup(d.Server.Close)
	return d
}

// browser keeps cookies, and follows no redirect by itself.
type browser struct {
	*desk
	client http.Client
}

func (d *desk) browser() *browser {
	jar, _ := cookiejar.New(nil) // cookiejar.New never fails
	b := &browser{d, *d.Server.Client()}
	b.client.Jar = jar
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return b
}

func (b *browser) get(address string) (r *http.Response, body string) {
	b.T.Helper()
	r, err := b.client.Get(address)
	if err != nil {
		b.T.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return r, string(text)
}

// post sends a request like a script on a page of the console.
func (b *browser) post(path string, header ...string) (status int, body string) {
	b.T.Helper()
	r, _ := http.NewRequest("POST", b.desk.Server.URL+console.SignOnPath+path, nil)
	r.Header.Set("Origin", b.desk.Server.URL)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i+1] == "" {
			r.Header.Del(header[i])
		}
	}
	reply, err := b.client.Do(r)
	if err != nil {
		b.T.Fatal(err)
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(reply.Body)
	return reply.StatusCode, string(text)
}

// begin signs the person in at the provider. It returns the address to which the provider sends the browser back.
func (b *browser) begin() (back string) {
	b.T.Helper()
	r, body := b.get(b.desk.Server.URL + console.SignOnPath + "begin")
	if r.StatusCode != http.StatusSeeOther {
		b.T.Fatalf("%s: %s", r.Status, body)
	}
	return b.authorize(r.Header.Get("Location"))
}

func (b *browser) signOn() {
	b.T.Helper()
	if r, body := b.get(b.begin()); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/" {
		b.T.Fatalf("%s to %q: %s", r.Status, r.Header.Get("Location"), body)
	}
}

// creds returns the credentials that the page gets, or "".
func (b *browser) creds() string {
	b.T.Helper()
	status, body := b.post("credentials")
	if status == http.StatusNoContent {
		return ""
	}
	var loan Loan
	if err := json.Unmarshal([]byte(body), &loan); err != nil || status != http.StatusOK {
		b.T.Fatalf("%d %s (%v)", status, body, err)
	}
	return loan.Creds
}

// refused brings the provider's answer to the console. The console must refuse it, show the reason, and sign nobody on.
func (b *browser) refused(back, why string) {
	b.T.Helper()
	r, body := b.get(back)
	if r.StatusCode < 400 || !strings.Contains(body, why) {
		b.T.Errorf("%s, not %q: %s", r.Status, why, body)
	}
	if creds := b.creds(); creds != "" {
		b.T.Errorf("refused, and has %s", creds)
	}
}

// TestAPersonSignsOn signs a person on. The claim must name the account. The session must last an hour, like its
// credentials, or until the person leaves.
func TestAPersonSignsOn(t *testing.T) {
	d := newDesk(t, httptest.NewServer)
	b := d.browser()
	if creds := b.creds(); creds != "" {
		t.Errorf("before: %s", creds)
	}
	b.signOn()
	if creds := b.creds(); creds != "credentials of alice" {
		t.Errorf("the page gets %q", creds)
	}
	if creds := d.browser().creds(); creds != "" {
		t.Errorf("another browser gets %q", creds)
	}
	if status, _ := b.post("leave"); status != http.StatusNoContent || b.creds() != "" {
		t.Errorf("after leaving (%d): %q", status, b.creds())
	}
	b.signOn()
	d.clock = d.clock.Add(time.Hour)
	if creds := b.creds(); creds != "" {
		t.Errorf("after an hour: %q", creds)
	}
	if _, told := b.get(d.Server.URL + "/site.json"); !strings.Contains(told, `"sign_on":"127.0.0.1:`) {
		t.Errorf("the page is told %s", told)
	}
}

func TestClaimsNameAccounts(t *testing.T) {
	d := newDesk(t, httptest.NewServer)
	d.rules.Accounts = map[string]messages.Name{"ada@example.org": "ada", "boss": "operator"}
	operators := []any{"users", "candor-operators"}
	for _, c := range []struct {
		claim  any
		groups any
		want   string
	}{
		{"alice", nil, "credentials of alice"},
		{"ada@example.org", nil, "credentials of ada"},
		{"operator", operators, "credentials of operator, an operator"},
		{"boss", operators, "credentials of operator, an operator"},
		{"alice", operators, "credentials of alice"}, // the site does not name alice as an operator
		{"operator", nil, "is an operator, and 127.0.0.1"},
		{"operator", []any{"users"}, "does not list you in the group"},
		{"operator", "candor-operators", "does not list you in the group"},
		{"boss", []any{map[string]any{}, 7}, "does not list you in the group"},
		{"../alice", nil, "cannot be an account"},
		{"alice bob", nil, "cannot be an account"},
		{"alice\nbob", nil, "cannot be an account"},
		{"Alice", nil, "cannot be an account"},
		{" alice", nil, "cannot be an account"},
		{"alice.>", nil, "cannot be an account"},
		{"$bank", nil, "cannot be an account"},
		{"аlice", nil, "cannot be an account"}, // the first letter is Cyrillic
		{"<script>", nil, "calls you &#34;&lt;script&gt;&#34;"},
		{strings.Repeat("a", 64), nil, "cannot be an account"},
		{"", nil, "does not say who you are"},
		{nil, nil, "does not say who you are"},
		{7, nil, "does not say who you are"},
		{[]any{"alice"}, nil, "does not say who you are"},
	} {
		d.person = map[string]any{"preferred_username": c.claim, "groups": c.groups}
		b := d.browser()
		if !strings.HasPrefix(c.want, "credentials") {
			b.refused(b.begin(), c.want)
			continue
		}
		b.signOn()
		if creds := b.creds(); creds != c.want {
			t.Errorf("%v in %v gets %q, not %q", c.claim, c.groups, creds, c.want)
		}
	}
	d.rules.OperatorGroup = ""
	d.person = map[string]any{"preferred_username": "operator", "groups": operators}
	b := d.browser()
	b.refused(b.begin(), "operators do not sign on here")
}

// An e-mail address must count only if the provider has verified it. At some providers, people can type any address.
func TestOnlyVerifiedAddressesAreAccounts(t *testing.T) {
	d := newDesk(t, httptest.NewServer)
	d.rules.Claim, d.rules.Accounts = "email", map[string]messages.Name{"ada@example.org": "ada"}
	for _, verified := range []any{nil, false, "false", 1} {
		d.person = map[string]any{"email": "ada@example.org", "email_verified": verified}
		b := d.browser()
		b.refused(b.begin(), "has not verified your address")
	}
	d.person = map[string]any{"email": "ada@example.org", "email_verified": true}
	b := d.browser()
	b.signOn()
	if creds := b.creds(); creds != "credentials of ada" {
		t.Error(creds)
	}
}

// TestClaimsOfUserinfo signs on at a provider that has claims only at its userinfo endpoint. If the token and the
// endpoint have the same claim, the claim of the token must count. Claims about another person must be refused.
func TestClaimsOfUserinfo(t *testing.T) {
	d := newDesk(t, httptest.NewServer)
	d.person = nil
	d.info = map[string]any{"sub": "person-1", "preferred_username": "ada"}
	b := d.browser()
	b.signOn()
	if creds := b.creds(); creds != "credentials of ada" {
		t.Error(creds)
	}
	d.person = map[string]any{"preferred_username": "bob"}
	b.signOn()
	if creds := b.creds(); creds != "credentials of bob" {
		t.Error(creds)
	}
	d.person, d.info["sub"] = nil, "person-2"
	b = d.browser()
	b.refused(b.begin(), "answers about another person")
}

// A token that differs from a good one in one property must be refused.
func TestForgedTokensAreRefused(t *testing.T) {
	d := newDesk(t, httptest.NewServer)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		lie  func(map[string]any)
		sign func(string) string
	}{
		"of another issuer":              {lie: func(c map[string]any) { c["iss"] = "https://evil.example" }},
		"for another client":             {lie: func(c map[string]any) { c["aud"] = "wiki" }},
		"for other clients":              {lie: func(c map[string]any) { c["aud"] = []string{"wiki", "mail"} }},
		"for nobody":                     {lie: func(c map[string]any) { delete(c, "aud") }},
		"out of date":                    {lie: func(c map[string]any) { c["exp"] = time.Now().Add(-time.Minute).Unix() }},
		"without an end":                 {lie: func(c map[string]any) { delete(c, "exp") }},
		"of another sign-on":             {lie: func(c map[string]any) { c["nonce"] = "another" }},
		"without a nonce":                {lie: func(c map[string]any) { delete(c, "nonce") }},
		"not signed":                     {sign: unsigned},
		"signed with the client secret":  {sign: func(body string) string { return signedBySecret([]byte(clientSecret), body) }},
		"signed with the provider's key": {sign: func(body string) string { return signedBySecret(d.key.N.Bytes(), body) }},
		"signed by somebody else":        {sign: func(body string) string { return signed(other, body) }},
		"altered": {sign: func(body string) string {
			parts := strings.Split(signed(d.key, body), ".")
			return parts[0] + "." + word([]byte(strings.Replace(body, "alice", "bob", 1))) + "." + parts[2]
		}},
		"missing": {sign: func(string) string { return "" }},
	} {
		t.Run(name, func(t *testing.T) {
			d.lie, d.sign = c.lie, c.sign
			b := d.browser()
			b.refused(b.begin(), "the token of 127.0.0.1")
		})
	}
	d.lie, d.sign = nil, nil
	d.browser().signOn()
}

// An answer of the provider must be good only once, and only in the browser that asked.
func TestAnswersBelongToOneBrowser(t *testing.T) {
	d := newDesk(t, httptest.NewServer)
	const another = "does not belong to a sign-on that this browser began"
	thief, victim := d.browser(), d.browser()

	// A thief starts a sign-on, and makes the victim's browser finish it. The victim would then be signed on as the
	// thief.
	victim.refused(thief.begin(), another)
	victim.begin()
	victim.refused(thief.begin(), another)
	victim.refused(d.Server.URL+console.SignOnPath+"back?code=x", another)
	victim.refused(d.Server.URL+console.SignOnPath+"back?code=x&state=", another)

	// The thief has read the code that the provider made for the victim. The thief sends this code with the state of
	// the thief's own sign-on.
	theirs, _ := url.Parse(victim.begin())
	own, _ := url.Parse(thief.begin())
	q := own.Query()
	q.Set("code", theirs.Query().Get("code"))
	own.RawQuery = q.Encode()
	thief.refused(own.String(), "does not take the code of this sign-on (invalid_grant)")

	// The thief presents a code that the provider made for another client.
	back := thief.begin()
	for c, of := range d.codes {
		of.client = "wiki"
		d.codes[c] = of
	}
	thief.refused(back, "does not take the code")

	// The browser signs in with an answer of the provider, and then brings the same answer two more times. The first
	// time, the browser has lost the cookie that belongs to this answer. The second time, it has the cookie again. Both
	// times the console must refuse.
	b := d.browser()
	back = b.begin()
	u, _ := url.Parse(d.Server.URL)
	kept := b.client.Jar.Cookies(u)
	if r, _ := b.get(back); r.StatusCode != http.StatusSeeOther {
		t.Fatal(r.Status)
	}
	b.post("leave")
	b.refused(back, another)
	b.client.Jar.SetCookies(u, kept)
	b.refused(back, "does not take the code")
}

// A person may begin in two tabs of one browser, and finish in any of them.
func TestTwoTabsOfABrowser(t *testing.T) {
	d := newDesk(t, httptest.NewServer)
	b := d.browser()
	first, second := b.begin(), b.begin()
	if r, body := b.get(first); r.StatusCode != http.StatusSeeOther || b.creds() == "" {
		t.Errorf("the first tab: %s: %s", r.Status, body)
	}
	if _, body := b.get(second); !strings.Contains(body, "was used already") || b.creds() == "" {
		t.Errorf("the second tab: %s", body)
	}
	if third, _ := url.Parse(b.begin()); strings.Contains(first, third.Query().Get("state")) {
		t.Error("a later attempt has the state of an attempt that ended")
	}
}

// The console must show the provider's refusal as text, and not as HTML.
func TestTheProviderRefuses(t *testing.T) {
	d := newDesk(t, httptest.NewServer)
	b := d.browser()
	u, _ := url.Parse(b.begin())
	q := u.Query()
	q.Del("code")
	q.Set("error", "access_denied")
	q.Set("error_description", `<img src=x onerror="alert(1)"> your account is locked`)
	u.RawQuery = q.Encode()
	r, body := b.get(u.String())
	if r.StatusCode != http.StatusForbidden || !strings.Contains(body, "did not sign you in: &lt;img") || strings.Contains(body, "<img") {
		t.Errorf("%s: %s", r.Status, body)
	}
	if policy := r.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self'") {
		t.Errorf("the policy of the page: %q", policy)
	}
}

// The identity provider does not answer. The person must read what to do, and the console must ask the provider again
// later.
func TestAProviderThatIsDown(t *testing.T) {
	d := newDesk(t, httptest.NewServer)
	d.broken = true
	b := d.browser()
	for range 2 {
		r, body := b.get(d.Server.URL + console.SignOnPath + "begin")
		if r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "does not answer: try again later, or give the console your file of credentials") {
			t.Errorf("%s: %s", r.Status, body)
		}
	}
	d.broken = false
	d.clock = d.clock.Add(silentFor)
	b.signOn()
	back := b.begin()
	d.provider.Close()
	r, body := b.get(back)
	if r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "does not answer") {
		t.Errorf("%s: %s", r.Status, body)
	}
}

// No part of a request may choose the page to which the browser is sent.
func TestTheBrowserIsSentNowhereElse(t *testing.T) {
	d := newDesk(t, httptest.NewServer)
	b := d.browser()
	const evil = "?to=https://evil.example&redirect_uri=https://evil.example&next=//evil.example"
	r, _ := b.get(d.Server.URL + console.SignOnPath + "begin" + evil)
	at, err := url.Parse(r.Header.Get("Location"))
	if err != nil || at.Query().Get("redirect_uri") != d.Server.URL+"/sign-on/back" || strings.Contains(r.Header.Get("Location"), "evil") {
		t.Errorf("to %v", at)
	}
	if r, _ := b.get(d.authorize(r.Header.Get("Location")) + "&" + evil[1:]); r.Header.Get("Location") != "/" {
		t.Errorf("at last to %q", r.Header.Get("Location"))
	}
	other, _ := http.NewRequest("GET", d.Server.URL+console.SignOnPath+"begin", nil)
	other.Host = "evil.example"
	reply, err := b.client.Do(other)
	if err != nil || reply.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("under another name: %v %v", reply, err)
	}
}

// No script may read the cookies. Requests from pages of other sites must not have the session's cookie. With TLS, no
// plaintext request may have a cookie.
func TestCookies(t *testing.T) {
	for _, serve := range []func(http.Handler) *httptest.Server{httptest.NewServer, httptest.NewTLSServer} {
		d := newDesk(t, serve)
		secure := strings.HasPrefix(d.Server.URL, "https")
		b := d.browser()
		r, _ := b.get(d.Server.URL + console.SignOnPath + "begin")
		begun := r.Cookies()
		r, _ = b.get(d.authorize(r.Header.Get("Location")))
		ended := r.Cookies()
		if len(begun) != 1 || len(ended) != 2 {
			t.Fatalf("cookies %v and %v", begun, ended)
		}
		for i, c := range append(begun, ended...) {
			same := []http.SameSite{http.SameSiteLaxMode, http.SameSiteLaxMode, http.SameSiteStrictMode}[i]
			if !c.HttpOnly || c.Secure != secure || c.SameSite != same || c.Domain != "" || c.Path != "/" || strings.HasPrefix(c.Name, "__Host-") != secure {
				t.Errorf("cookie %v, want secure %v and the same-site rule %v", c, secure, same)
			}
		}
		if begun[0].MaxAge > 900 || ended[0].MaxAge >= 0 || ended[1].MaxAge > 3600 || ended[1].MaxAge < 3500 {
			t.Errorf("the cookies last %d, %d, %d s", begun[0].MaxAge, ended[0].MaxAge, ended[1].MaxAge)
		}
		if creds := b.creds(); creds != "credentials of alice" {
			t.Error(creds)
		}
	}
}

// A page of another origin must get no credentials, and must not end a session.
func TestOnlyThePageGetsCredentials(t *testing.T) {
	d := newDesk(t, httptest.NewServer)
	b := d.browser()
	b.signOn()
	for _, path := range []string{"credentials", "leave"} {
		for _, header := range [][]string{
			{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, {"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"},
			{"Sec-Fetch-Site", "", "Origin", "https://evil.example"}, {"Sec-Fetch-Site", "", "Origin", "null"}, {"Sec-Fetch-Site", "", "Origin", ""},
		} {
			if status, body := b.post(path, header...); status != http.StatusForbidden {
				t.Errorf("%s with %q: %d %s", path, header, status, body)
			}
		}
		if r, _ := b.get(d.Server.URL + console.SignOnPath + path); r.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %s", path, r.Status)
		}
	}
	if creds := b.creds(); creds != "credentials of alice" {
		t.Error(creds)
	}
}

// When an account has too many sessions, its oldest session must end. The sessions of other accounts must stay.
func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	now := time.Now()
	loan := func(i int) Loan {
		return Loan{Expires: messages.TimeOf(now.Add(time.Hour + time.Duration(i)*time.Second))}
	}
	bob := s.begin("bob", loan(0), now)
	first := s.begin("alice", loan(0), now)
	for i := range mostOfAccount {
		s.begin("alice", loan(i+1), now)
	}
	if _, ok := s.loan(first, now); ok || len(s.held) != mostOfAccount+1 {
		t.Errorf("%d sessions, the oldest of them %v", len(s.held), ok)
	}
	if _, ok := s.loan(bob, now); !ok {
		t.Error("bob's session ended with alice's")
	}
	s.begin("carol", loan(7200), now.Add(2*time.Hour))
	if len(s.held) != 1 {
		t.Errorf("%d sessions are kept after their end", len(s.held))
	}
}

func TestRulesSayWhatIsWrong(t *testing.T) {
	good := Rules{Issuer: "https://login.example.org/realms/hpc", Client: "candor", SecretFile: "/etc/candor/sign-on.secret"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Rules){
		"issuer: \"http://login":                    func(r *Rules) { r.Issuer = "http://login.example.org" },
		"issuer: \"login":                           func(r *Rules) { r.Issuer = "login.example.org" },
		"issuer: \"https://a:b@login.example.org\"": func(r *Rules) { r.Issuer = "https://a:b@login.example.org" },
		"client: is missing":                        func(r *Rules) { r.Client = "" },
		"secret_file: is missing":                   func(r *Rules) { r.SecretFile = "" },
		"accounts: the account \"Ada\"":             func(r *Rules) { r.Accounts = map[string]messages.Name{"x": "Ada"} },
	} {
		r := good
		change(&r)
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	dir := t.TempDir()
	for text, mode := range map[string]os.FileMode{"open": 0o644, "": 0o600, "two\nlines": 0o600} {
		r := good
		r.SecretFile = filepath.Join(dir, "secret"+text)
		if err := os.WriteFile(r.SecretFile, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{Rules: &r}); err == nil || !strings.Contains(err.Error(), "sign_on.secret_file") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
