//go:build browser

package browser

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/candor-grid/candor/deploy/console"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

type site struct {
	*testing.T
	*embedded.Site
}

func start(t *testing.T, change func(*embedded.Config)) *site {
	t.Helper()
	c := embedded.Default()
	c.State, c.Listen, c.Console, c.Replicas = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0", 1
	c.Nodes = embedded.NodesAlike(2, embedded.Slots{{Class: "map", Slots: 2}, {Class: "reduce", Slots: 1}})
	c.Tasks.User = "self"
	if change != nil {
		change(&c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	s, err := embedded.Start(ctx, c, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &site{t, s}
}

func ask[Reply any](s *site, account messages.Name, actor, verb string, request any) (reply Reply) {
	s.Helper()
	b, err := s.Connect(account)
	if err != nil {
		s.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(s.Context(), await.Patience)
	defer cancel()
	reply, err = bus.Call[Reply](ctx, b, messages.Subject(s.Config().Site, actor, verb, account), request)
	if err != nil {
		s.Fatalf("%s as %s: %v", verb, account, err)
	}
	return reply
}

func (s *site) submit(account messages.Name, name, script string, change func(*job.JobSpec)) messages.JobID {
	s.Helper()
	spec := job.JobSpec{Name: name, Budget: 5 * messages.Credit, Stages: []job.Stage{{Name: "main", Script: script}}}
	if change != nil {
		change(&spec)
	}
	return ask[job.SubmitReply](s, account, messages.Auctioneer, messages.VerbSubmit, job.SubmitRequest{Key: rand.Text(), Spec: spec}).Job
}

func (s *site) creds(account messages.Name) string {
	s.Helper()
	text, err := os.ReadFile(s.CredsFile(account))
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// chromium returns the path of this machine's browser: CANDOR_BROWSER, or the first known name that exists.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CANDOR_BROWSER"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Skip("no Chromium is here: install it (apt-get install chromium), or name it with CANDOR_BROWSER")
	return ""
}

type tab struct {
	*testing.T
	ctx context.Context
	// errors are the errors that the page wrote to the browser's console.
	errors *[]string
}

// profile returns a directory for a browser. The browser's processes may write there for a moment after its end.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "candor-browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		await.Until(t, "the profile of the browser is removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	return dir
}

func browse(t *testing.T) *tab {
	t.Helper()
	flags := append([]chromedp.ExecAllocatorOption{}, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless,
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile(t)), chromedp.WSURLReadTimeout(time.Minute))
	for _, name := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage"} {
		flags = append(flags, chromedp.Flag(name, true))
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), flags...)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	w := &tab{T: t, ctx: ctx, errors: &[]string{}}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			*w.errors = append(*w.errors, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError {
				var words []string
				for _, a := range e.Args {
					words = append(words, cmp.Or(a.Description, string(a.Value)))
				}
				*w.errors = append(*w.errors, strings.Join(words, " "))
			}
		}
	})
	// chromedp ends the browser when the context of the first action ends. So this action gets the context of the whole
	// test.
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 900)); err != nil {
		t.Fatal(err)
	}
	return w
}

const patience = 2 * time.Minute

func (w *tab) run(actions ...chromedp.Action) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		w.Fatalf("%v; the page:\n%s", err, w.text())
	}
}

func (w *tab) text() (text string) {
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	_ = chromedp.Run(ctx, chromedp.Evaluate(`document.body ? document.body.innerText : ""`, &text))
	return text
}

// until waits until an expression is true, and returns the time that it took.
func (w *tab) until(expression string) time.Duration {
	w.Helper()
	began := time.Now()
	w.run(chromedp.Poll(expression, nil, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(patience)))
	return time.Since(began)
}

func (w *tab) shows(text string) time.Duration {
	w.Helper()
	return w.until(fmt.Sprintf("document.body.innerText.includes(%s)", quoted(text)))
}

func quoted(text string) string {
	data, _ := json.Marshal(text) // every string can be written as JSON
	return string(data)
}

func (w *tab) connect(s *site, account messages.Name) {
	w.Helper()
	w.login(s.Info().Console, s.creds(account))
}

func (w *tab) login(console, creds string) {
	w.Helper()
	w.run(chromedp.Navigate(console))
	w.until(`document.getElementById("creds") !== null`)
	w.run(chromedp.SetValue("creds", creds, chromedp.ByID), chromedp.Click(`//button[text()="Connect"]`, chromedp.BySearch))
	w.until(`document.querySelector("nav") !== null`)
}

func (w *tab) open(path string) {
	w.Helper()
	w.run(chromedp.Evaluate(fmt.Sprintf("location.hash = %s", quoted("#/"+path)), nil))
	w.until(fmt.Sprintf(`document.getElementById("main").dataset.page === %s`, quoted("#/"+path)))
}

// fine fails the test if the page reported an error.
func (w *tab) fine() {
	w.Helper()
	for _, text := range *w.errors {
		w.Errorf("the page reports %s", text)
	}
}

func (w *tab) in(t *testing.T) *tab { return &tab{t, w.ctx, w.errors} }

// awaited makes an evaluation wait for the result of a promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// pagesOf serves the pages of a site at another address, as a stranger could, and returns their URL.
func pagesOf(t *testing.T, s *site) string {
	t.Helper()
	h, err := console.Handler(console.Config{Site: s.Config().Site, WebSocket: s.Info().WebSocket, Names: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func (s *site) address(text string) string {
	s.Helper()
	u, err := url.Parse(text)
	if err != nil {
		s.Fatal(err)
	}
	return u.Host
}
