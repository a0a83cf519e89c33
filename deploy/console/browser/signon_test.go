//go:build browser

package browser

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/candor-grid/candor/deploy/console/signon"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// provider is npm's oidc-provider, in a separate process.
type provider struct {
	*testing.T
	*exec.Cmd
	issuer string
	in     io.WriteCloser
	out    *bufio.Reader
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	if _, err := os.Stat("../node_modules/oidc-provider"); err != nil {
		t.Skip("oidc-provider is not here: make console installs it")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not here, which runs the provider")
	}
	p := &provider{T: t, Cmd: exec.Command("node", "provider.mjs")}
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	p.issuer = p.line()
	return p
}

// line returns the next line that the provider prints. It skips the lines with warnings.
func (p *provider) line() string {
	p.Helper()
	for {
		text, err := p.out.ReadString('\n')
		if err != nil {
			p.Fatalf("the provider ended: %q (%v)", text, err)
		}
		if text = strings.TrimSpace(text); !strings.HasPrefix(text, "oidc-provider ") {
			return text
		}
	}
}

// serve tells the identity provider the address of a console. After sign-on, the provider may send users back to this
// console.
func (p *provider) serve(console string) {
	p.Helper()
	if _, err := io.WriteString(p.in, console+"/sign-on/back\n"); err != nil {
		p.Fatal(err)
	}
	if text := p.line(); text != "serves" {
		p.Fatalf("the provider says %q", text)
	}
}

func (p *provider) end() {
	_ = p.in.Close()
	_ = p.Process.Kill()
	_ = p.Wait()
}

// signIn clicks the console's link to the provider, and signs in at the provider.
func (w *tab) signIn(name string) {
	w.Helper()
	w.run(chromedp.Click("sign-on", chromedp.ByID), chromedp.WaitVisible(`input[name=login]`, chromedp.ByQuery),
		chromedp.SendKeys(`input[name=login]`, name, chromedp.ByQuery), chromedp.SendKeys(`input[name=password]`, "x\r", chromedp.ByQuery),
		chromedp.Click(`//button[contains(., "Continue")]`, chromedp.BySearch))
	w.arrives(`document.querySelector(".who, .failure") !== null`)
}

// arrives waits until an expression is true on the last page of a chain of redirects. It tries again if an earlier page
// closes meanwhile.
func (w *tab) arrives(expression string) {
	w.Helper()
	await.Until(w, expression, func() (there bool) {
		ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
		defer cancel()
		err := chromedp.Run(ctx, chromedp.Evaluate(expression, &there))
		return err == nil && there
	})
}

// TestSingleSignOn signs people on with a real provider. After the sign-on, the page that was open before must come
// back. A new page must ask for no sign-on until the person leaves. If the provider is down, files of credentials must
// still work.
func TestSingleSignOn(t *testing.T) {
	chromium(t)
	p := startProvider(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, func(c *embedded.Config) {
		c.SignOn = &signon.Rules{Issuer: p.issuer, Client: "candor", SecretFile: secret, OperatorGroup: "candor-operators",
			Accounts: map[string]messages.Name{"Carol Smith": "carol"}}
	})
	p.serve(s.Info().Console)

	w := browse(t)
	w.run(chromedp.Navigate(s.Info().Console + "/#/jobs"))
	w.until(`document.getElementById("sign-on") !== null`)
	w.signIn("alice")
	w.shows("You have no jobs yet")
	w.until(`document.querySelector(".who").innerText.includes("alice") && location.hash === "#/jobs"`)
	job := s.submit("alice", "own", "true", nil)
	w.shows("own")
	w.run(chromedp.Reload())
	w.arrives(`document.querySelector(".who")?.innerText.includes("alice")`)
	var cookies string
	w.run(chromedp.Evaluate("document.cookie", &cookies))
	if cookies != "" {
		t.Errorf("scripts read the cookies %q", cookies)
	}
	w.run(chromedp.Click(`//button[text()="Leave"]`, chromedp.BySearch))
	w.until(`document.getElementById("creds") !== null`)
	var said string
	w.run(chromedp.Sleep(time.Second), chromedp.Text("state", &said, chromedp.ByID))
	if said != "" {
		t.Errorf("after leaving, the page says %q", said)
	}
	w.run(chromedp.Reload())
	w.arrives(`document.getElementById("creds") !== null`)
	var status int
	w.run(chromedp.Evaluate(`fetch("sign-on/credentials", { method: "POST" }).then((r) => r.status)`, &status, awaited))
	if status != 204 {
		t.Errorf("after leaving, the credentials are answered with %d", status)
	}
	w.fine()

	for name, want := range map[string]string{"Carol Smith": "carol", "ops-operator": "operator"} {
		w := browse(t)
		w.run(chromedp.Navigate(s.Info().Console))
		w.until(`document.getElementById("sign-on") !== null`)
		w.signIn(name)
		w.until(`document.querySelector(".who")?.innerText.includes(` + quoted(want) + `)`)
		if want == "operator" {
			w.open("jobs?all=yes")
			w.shows("own")
		} else {
			w.open("job/" + job.String())
			w.until(`document.querySelector("#body .failure") !== null`)
		}
		w.fine()
	}
	for name, want := range map[string]string{"operator": "does not list you in the group", "../alice": "cannot be an account", "Alice": "cannot be an account"} {
		w := browse(t)
		w.run(chromedp.Navigate(s.Info().Console))
		w.until(`document.getElementById("sign-on") !== null`)
		w.signIn(name)
		w.shows(want)
		w.run(chromedp.Click(`//a[text()="Back to the console"]`, chromedp.BySearch))
		w.arrives(`document.getElementById("creds") !== null`)
	}

	p.end()
	w = browse(t)
	w.login(s.Info().Console, s.creds("bob"))
	w.shows("bob")
}
