//go:build browser

package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// pages are all pages, each with a text that it shows on a busy site.
var pages = map[string]string{
	"now": "Tasks waiting", "overview": "Slots of map", "market/main": "Price", "jobs": "flights", "job/1": "Stages", "submit": "The same at the command line",
	"money": "Statement", "usage": "Usage of account alice", "sites": "Operators see the peers", "nodes": "node1", "nodes/node1": "Node node1", "honesty": "An audit of a market", "alerts": "What is looked at",
}

// sixDecimals matches an amount with six decimals. No page may have one, because the console rounds amounts to fewer
// decimals.
var sixDecimals = regexp.MustCompile(`\d\.\d{6}`)

func busy(t *testing.T) *site {
	s := start(t, func(c *embedded.Config) {
		c.Markets = append(c.Markets, market.Market{Name: "menu", Mechanism: market.ContractMenu, Classes: []messages.Name{"reduce"}})
	})
	for i, account := range []messages.Name{"alice", "bob", "carol"} {
		name := []string{"flights", "sort", "genes"}[i]
		s.submit(account, name, "echo began; sleep 300", func(j *job.JobSpec) {
			j.Market, j.Stages[0].Tasks, j.Budget = "main", 40, messages.Credits(i+2)*messages.Credit
		})
	}
	s.submit("alice", "hello", "echo hello from $CANDOR_NODE", func(j *job.JobSpec) { j.Market, j.Stages[0].Class = "main", "reduce" })
	return s
}

func TestConsole(t *testing.T) {
	chromium(t)
	s := busy(t)
	w := browse(t)
	w.connect(s, "alice")

	t.Run("a submitted job appears", func(t *testing.T) {
		w := w.in(t)
		w.open("jobs")
		began := time.Now()
		s.submit("alice", "appears", "true", nil)
		w.shows("appears") // without loading the page again
		t.Logf("the job appeared after %v", time.Since(began))
	})
	t.Run("every page shows", func(t *testing.T) {
		w := w.in(t)
		for path, text := range pages {
			w.open(path)
			w.shows(text)
			if found := sixDecimals.FindString(w.text()); found != "" {
				t.Errorf("page %s writes %s", path, found)
			}
			if found := w.text(); strings.Contains(found, "Refused.") || strings.Contains(found, "undefined") || strings.Contains(found, "NaN") {
				t.Errorf("page %s:\n%s", path, found)
			}
		}
	})
	t.Run("the price moves on the plot", func(t *testing.T) {
		w := w.in(t)
		w.open("market/main?over=600")
		w.until(`document.querySelector("#plot-price canvas") !== null`)
		const now = `Number(document.querySelector("#plot-price + figcaption").textContent.match(/map ([\d.]+)/)?.[1] ?? 0)`
		w.until(now + " > 8 && " + now + " < 100")
		s.submit("carol", "dear", "sleep 300", func(j *job.JobSpec) { j.Stages[0].Tasks, j.Budget = 40, 100*messages.Credit })
		w.until(now + " > 108")
	})
	t.Run("the form's job runs", func(t *testing.T) {
		w := w.in(t)
		w.open("submit")
		w.shows("Known to gain more than a true bid in this market: a budget other than the job's worth")
		for id, value := range map[string]string{"jobname": "formed", "class": "reduce", "script": "#!/bin/sh\necho formed by hand\n", "budget": "10"} {
			w.run(chromedp.Evaluate(fmt.Sprintf(`{const e = document.getElementById(%s); e.value = %s; e.dispatchEvent(new Event("input", {bubbles: true}))}`, quoted(id), quoted(value)), nil))
		}
		w.shows("hold 10 credits of alice")
		w.shows("candor submit --script --budget 10 --market main --class reduce --name formed")
		w.run(chromedp.Click("send", chromedp.ByID))
		w.shows("Submitted job")
		w.run(chromedp.Click(`#sent a`, chromedp.ByQuery))
		w.shows("Completed")
		w.shows("formed by hand")
	})
	t.Run("usage is summed up", func(t *testing.T) {
		w := w.in(t)
		w.open("usage?by=user,label%3Drun&from=2026-01-01&to=2099-01-01")
		w.shows("Usage of account alice")
		w.until(`[...document.querySelectorAll("#body tbody tr")].some((r) => r.cells[0].innerText === "alice" && r.cells[1].innerText === "none" && Number(r.cells[3].innerText) > 0)`)
		w.run(chromedp.Click("by-class", chromedp.ByID), chromedp.Click(`//button[text()="Show"]`, chromedp.BySearch))
		w.until(`location.hash.includes("class") && [...document.querySelectorAll("#body th")].some((c) => c.innerText === "Class")`)
		w.shows("reduce")
	})
	t.Run("a log streams", func(t *testing.T) {
		w := w.in(t)
		go_ := filepath.Join(t.TempDir(), "go")
		job := s.submit("alice", "talks", fmt.Sprintf("echo first; while ! test -e %s; do sleep 0.05; done; echo second; sleep 300", go_), func(j *job.JobSpec) {
			j.Stages[0].Class, j.Budget = "reduce", 50*messages.Credit
		})
		w.open(fmt.Sprint("job/", job))
		w.until(`document.getElementById("log")?.textContent === "first\n"`)
		if err := os.WriteFile(go_, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w.until(`document.getElementById("log")?.textContent === "first\nsecond\n"`)
	})
	t.Run("the menu is a curve", func(t *testing.T) {
		w := w.in(t)
		w.open("submit?market=menu")
		w.until(`document.querySelector("#plot-menu canvas") !== null`)
	})
	t.Run("a failed job begins with its errors, and runs again", func(t *testing.T) {
		w := w.in(t)
		mended := filepath.Join(t.TempDir(), "mended")
		script := fmt.Sprintf(`test $CANDOR_TASK != 1 -o -e %s && exit 0; echo "part-1.csv: no such file" >&2; exit 3`, mended)
		job := s.submit("alice", "fails", script, func(j *job.JobSpec) {
			j.Market, j.Stages[0].OnFailure, j.Stages[0].Class, j.Stages[0].Tasks, j.Budget = "main", job.GoOn, "reduce", 3, 30*messages.Credit
		})
		w.open(fmt.Sprint("job/", job))
		w.until(`document.getElementById("errors")?.textContent === "part-1.csv: no such file"`)
		w.until(`document.querySelector("#body .card").innerText.startsWith("fails ✕ Failed") && document.querySelector("#body .card .lead").innerText.length > 10`)
		if err := os.WriteFile(mended, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w.run(chromedp.Click(`//button[text()="Run again the 1 task that did not end well"]`, chromedp.BySearch))
		w.shows("Submitted job")
		w.run(chromedp.Click(`#did a`, chromedp.ByQuery))
		w.shows("1 of 1 task done")
		w.shows(fmt.Sprint("job ", job))
		next := s.job("alice", job+1)
		if next.Spec.RerunOf != job || next.Spec.Budget != 10*messages.Credit || next.Stages[0].Tasks != 1 || next.Spec.Stages[0].Repeats.Tasks != 3 || next.Spec.Stages[0].Array.At(0) != 1 {
			t.Errorf("the job that runs again: %+v", next.Spec)
		}
		w.run(chromedp.Click(`//button[text()="Run again"]`, chromedp.BySearch))
		w.shows("Submitted job")
	})
	t.Run("a command line is a button", func(t *testing.T) {
		w := w.in(t)
		job := s.submit("alice", "held", "true", func(j *job.JobSpec) { j.Market, j.Hold = "main", true })
		w.open(fmt.Sprint("job/", job))
		w.run(chromedp.Click(`//li//button[text()="Release"]`, chromedp.BySearch))
		w.shows("The job was released")
	})
	t.Run("a hold and its end are one line", func(t *testing.T) {
		w := w.in(t)
		w.open("money")
		w.shows("Held since")
		const rows = `document.querySelectorAll("#body [aria-label=Movements] tbody tr").length`
		var folded int
		w.run(chromedp.Evaluate(rows, &folded), chromedp.Click(`//a[text()="Show each hold by itself"]`, chromedp.BySearch))
		w.until(fmt.Sprintf("%s > %d", rows, folded))
	})
	t.Run("a small screen has the share", func(t *testing.T) {
		w := w.in(t)
		w.run(chromedp.EmulateViewport(390, 800))
		w.open("now")
		w.until(`[...document.querySelectorAll("[aria-label='Bidders on main'] .share")].some((s) => s.getBoundingClientRect().right <= innerWidth - 8)`)
		w.run(chromedp.EmulateViewport(1280, 900))
	})
	w.fine()
}

func TestBobCannotSeeAlice(t *testing.T) {
	chromium(t)
	s := busy(t)
	w := browse(t)
	w.connect(s, "bob")
	w.open("jobs")
	w.shows("sort")
	if text := w.text(); strings.Contains(text, "flights") || strings.Contains(text, "all accounts") {
		t.Errorf("bob sees the jobs of alice:\n%s", text)
	}
	w.open("job/1")
	w.until(`document.querySelector("#body .failure") !== null`)
	if text := w.text(); strings.Contains(text, "flights") {
		t.Errorf("bob sees a job of alice:\n%s", text)
	}
	w.open("money?account=alice")
	w.until(`document.querySelector("#body .failure") !== null`)
	w.open("now")
	w.shows("main")
	if text := w.text(); strings.Contains(text, "flights") {
		t.Errorf("bob sees the name of a job of alice:\n%s", text)
	}
	w.connect(s, "operator")
	w.open("jobs?all=yes")
	w.shows("flights")
	w.fine()
}

func TestForeignOriginIsRefused(t *testing.T) {
	s := start(t, nil)
	w := browse(t)
	// The page of another address has the same content. It loads, but its connection to the site must be refused.
	foreign := pagesOf(t, s)
	w.run(chromedp.Navigate(foreign))
	w.until(`document.getElementById("creds") !== null`)
	w.run(chromedp.SetValue("creds", s.creds("alice"), chromedp.ByID), chromedp.Click(`//button[text()="Connect"]`, chromedp.BySearch))
	w.until(`document.querySelector(".failure") !== null`)
	if text := w.text(); strings.Contains(text, "nodes up") {
		t.Errorf("a page of another origin is connected:\n%s", text)
	}
	w.connect(s, "alice")
	w.shows("nodes up")
}

func TestServerAwayAndBack(t *testing.T) {
	s := start(t, nil)
	w := browse(t)
	w.connect(s, "alice")
	w.shows("2 of 2 nodes up")
	c := s.Config()
	c.Listen, c.Console, c.WebSocket = s.address(s.URL()), s.address(s.Info().Console), s.address(s.Info().WebSocket)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.shows("The connection to the site is lost")
	w.run(chromedp.Evaluate(`new MutationObserver((_, o) => { if (document.body.innerText.includes("The connection is back")) { window.back = true; o.disconnect(); } }).observe(document.getElementById("state"), {childList: true, subtree: true, characterData: true})`, nil))
	start(t, func(to *embedded.Config) { *to = c })
	w.until("window.back")
	w.until(`!document.getElementById("state").classList.contains("bad")`)
	w.shows("2 of 2 nodes up")
}

func TestPagesAreAccessible(t *testing.T) {
	axe, err := os.ReadFile("../node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Skip("axe-core is not here: make console installs it")
	}
	s := busy(t)
	w := browse(t)
	for _, scheme := range []string{"light", "dark"} {
		w.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		w.run(chromedp.Navigate(s.Info().Console))
		w.until(`document.getElementById("creds") !== null`)
		w.check(string(axe), scheme, "login")
		w.connect(s, "alice")
		for path, text := range pages {
			w.open(path)
			w.shows(text)
			w.check(string(axe), scheme, path)
		}
	}
	w.fine()
}

// check runs axe, a checker of accessibility, on the current page.
func (w *tab) check(axe, scheme, path string) {
	w.Helper()
	var faults []string
	w.run(chromedp.Evaluate(axe+`;
		axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.filter(v => ["serious", "critical"].includes(v.impact))
			.map(v => v.id + ": " + v.help + ": " + v.nodes.map(n => n.html + " " + n.any.map(a => a.message).join("; ")).slice(0, 3).join(" | ")))`,
		&faults, awaited))
	for _, fault := range faults {
		w.Errorf("page %s in %s: %s", path, scheme, fault)
	}
}

// A long list of jobs must be painted completely and scroll. The test only logs the times, because the machine may be
// busy.
func TestFirstPaintAndScrolling(t *testing.T) {
	s := start(t, func(c *embedded.Config) { c.Accounts[0].Grant = 100_000 * messages.Credit })
	var busy sync.WaitGroup
	for first := range 20 {
		busy.Go(func() {
			for i := range 50 {
				s.submit("alice", fmt.Sprint("job", 50*first+i), "sleep 300", func(j *job.JobSpec) { j.Budget = messages.Credit })
			}
		})
	}
	busy.Wait()
	w := browse(t)
	var paint float64
	w.run(chromedp.Navigate(s.Info().Console))
	w.until(`performance.getEntriesByName("first-contentful-paint").length === 1`)
	w.run(chromedp.Evaluate(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &paint))
	t.Logf("first paint after %.0f ms", paint)
	w.connect(s, "alice")
	w.open("honesty")
	usual := w.frame()
	w.open("jobs?n=1000")
	w.until(`document.querySelectorAll("#body tbody tr").length === 1000`)
	slow := w.frame()
	t.Logf("of the frames while 1,000 jobs scroll, 9 in 10 took at most %.1f ms; of a short page %.1f ms", slow, usual)
	w.fine()
}

// frame scrolls the page. It returns the time in milliseconds that 9 of 10 frames do not exceed.
func (w *tab) frame() (took float64) {
	w.Helper()
	w.run(chromedp.Evaluate(`new Promise(done => {
		let last = performance.now(), gaps = [];
		const step = now => {
			gaps.push(now - last);
			last = now;
			window.scrollBy(0, 60);
			gaps.length < 60 ? requestAnimationFrame(step) : done(gaps.sort((a, b) => a - b)[54]);
		};
		requestAnimationFrame(step);
	})`, &took, awaited))
	return took
}

// TestMemoryStaysFlat shows the page of a market in a browser. The page reads the site's state many times. Meanwhile
// the memory of the page must not grow by more than a quarter. CANDOR_LOOKS sets the number of reads. The default is
// 360, as many as in six minutes of use.
func TestMemoryStaysFlat(t *testing.T) {
	chromium(t)
	looks := 360
	if text := os.Getenv("CANDOR_LOOKS"); text != "" {
		var err error
		if looks, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s := busy(t)
	w := browse(t)
	w.connect(s, "alice")
	w.open("market/main?over=600")
	w.until(`document.querySelector("#plot-price canvas") !== null`)
	before := w.memory(looks / 6)
	middle := w.memory(looks / 2)
	after := w.memory(looks - looks/2)
	t.Logf("%d kB after %d looks, %d kB after half of %d more, %d kB after all", before>>10, looks/6, middle>>10, looks, after>>10)
	if after > before+before/4 {
		t.Errorf("the memory of the page grew from %d to %d kB", before>>10, after>>10)
	}
	w.fine()
}

// memory makes the page read the state of the site, as many times as the argument `looks` says. Then it returns the
// size of the page's objects in bytes.
func (w *tab) memory(looks int) (used int64) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Minute)
	defer cancel()
	err := chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf(`new Promise(done => {
		const body = document.getElementById("body");
		let left = %d;
		new MutationObserver((_, o) => { if (--left <= 0) { o.disconnect(); done(true); } }).observe(document.getElementById("main"), {attributes: true, attributeFilter: ["data-page"]});
		const look = () => { dispatchEvent(new Event("candor-look")); if (left > 0) setTimeout(look, 5); };
		look();
	})`, looks), nil, awaited), heapprofiler.CollectGarbage(), chromedp.ActionFunc(func(ctx context.Context) error {
		size, _, _, _, err := runtime.GetHeapUsage().Do(ctx)
		used = int64(size)
		return err
	}))
	if err != nil {
		w.Fatal(err)
	}
	return used
}
