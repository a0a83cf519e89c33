//go:build browser

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/candor-grid/candor/deploy/console/signon"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

// TestTheHourOfASignOnEnds opens a page with lent credentials that are valid for a minute. Then the site must close the
// connection, and the page must ask the user to sign in again.
func TestTheHourOfASignOnEnds(t *testing.T) {
	chromium(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, func(c *embedded.Config) {
		c.CredentialsFor = messages.Duration(time.Minute)
		c.SignOn = &signon.Rules{Issuer: "http://127.0.0.1:1", Client: "candor", SecretFile: secret}
	})
	loan, err := json.Marshal(signon.Loan{Creds: s.creds("alice"), Expires: messages.TimeOf(time.Now().Add(time.Minute))})
	if err != nil {
		t.Fatal(err)
	}
	w := browse(t)
	// This script answers in place of the console's server. Only the first request gets credentials.
	answers := fmt.Sprintf(`{const ask = window.fetch; let lent = false; window.fetch = (at, options) => at === "sign-on/credentials"
		? Promise.resolve(lent ? new Response(null, { status: 204 }) : (lent = true, new Response(%s))) : ask(at, options);}`, quoted(string(loan)))
	w.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(answers).Do(ctx)
		return err
	}), chromedp.Navigate(s.Info().Console))
	w.shows("2 of 2 nodes up")
	w.shows("Your hour is over. Sign in again to go on.")
	w.until(`document.getElementById("sign-on") !== null && document.querySelector("nav") === null`)
}
