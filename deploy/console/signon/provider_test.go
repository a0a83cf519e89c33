package signon

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// provider is a provider of OpenID Connect that signs one person on. A test can make it lie.
type provider struct {
	*testing.T
	*httptest.Server
	key    *rsa.PrivateKey
	person map[string]any              // the claims about the person in the token
	lie    func(claims map[string]any) // changes the claims of a token; nil: the provider does not lie
	sign   func(body string) string    // makes a token; nil: signed with key, as RS256
	info   map[string]any              // the claims at the userinfo endpoint; nil: there is no such endpoint
	codes  map[string]code             // codes that nobody has used yet
	broken bool                        // the provider answers each request with an error
}

// A provider gives a code for each sign-on. A value of the type code has what the provider remembers about this
// sign-on, until somebody uses the code.
type code struct{ client, back, nonce, challenge string }

const clientName, clientSecret = "candor", "s3cret of the console"

func newProvider(t *testing.T) *provider {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{T: t, key: key, codes: map[string]code{}, person: map[string]any{"preferred_username": "alice"}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		if p.broken {
			http.Error(w, "out of order", http.StatusBadGateway)
			return
		}
		answer(w, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"userinfo_endpoint": p.URL + "/me", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig",
			"n": word(p.key.N.Bytes()), "e": word(big.NewInt(int64(p.key.E)).Bytes())}}})
	})
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /me", func(w http.ResponseWriter, _ *http.Request) {
		if p.info == nil {
			http.NotFound(w, nil)
			return
		}
		answer(w, p.info)
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func word(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// authorize plays the part of the page on which the person signs in. It returns the address to which this page sends
// the browser back.
func (p *provider) authorize(location string) string {
	p.Helper()
	u, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, p.URL+"/authorize?") {
		p.Fatalf("the browser is sent to %q (%v)", location, err)
	}
	q := u.Query()
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || !strings.Contains(q.Get("scope"), "openid") {
		p.Fatalf("the provider is asked %v", q)
	}
	c := rand.Text()
	p.codes[c] = code{q.Get("client_id"), q.Get("redirect_uri"), q.Get("nonce"), q.Get("code_challenge")}
	return q.Get("redirect_uri") + "?" + url.Values{"state": {q.Get("state")}, "code": {c}}.Encode()
}

// token exchanges a code for a token: once, and only for the client that asked for the code and knows the verifier.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	name, secret, _ := r.BasicAuth()
	name, _ = url.QueryUnescape(name)
	secret, _ = url.QueryUnescape(secret)
	c, ok := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || name != c.client || secret != clientSecret || r.FormValue("redirect_uri") != c.back || word(challenge[:]) != c.challenge {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	claims := map[string]any{"iss": p.URL, "aud": clientName, "sub": "person-1", "nonce": c.nonce, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	for name, value := range p.person {
		claims[name] = value
	}
	if p.lie != nil {
		p.lie(claims)
	}
	body, _ := json.Marshal(claims)
	sign := p.sign
	if sign == nil {
		sign = func(body string) string { return signed(p.key, body) }
	}
	answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": sign(string(body))})
}

func signed(key *rsa.PrivateKey, body string) string {
	text := word([]byte(`{"alg":"RS256","kid":"one"}`)) + "." + word([]byte(body))
	digest := sha256.Sum256([]byte(text))
	signature, _ := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:]) // fails only if the key is too small
	return text + "." + word(signature)
}

func unsigned(body string) string {
	return word([]byte(`{"alg":"none"}`)) + "." + word([]byte(body)) + "."
}

// signedBySecret returns a token that is signed by HMAC with a shared secret. Anybody who knows the secret can make
// such a token.
func signedBySecret(secret []byte, body string) string {
	text := word([]byte(`{"alg":"HS256","kid":"one"}`)) + "." + word([]byte(body))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + word(mac.Sum(nil))
}
