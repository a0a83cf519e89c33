//go:build browser

package browser

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/candor-grid/candor/deploy/console"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// hostile would run a script if a page used it as HTML.
const hostile = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`

const keptAudit = `{"made": "2026-03-01T12:00:00Z", "command": "candor audit --market spot.yaml --seed 7 --seeds 2 --trace log.swf", "market": {"name": "spot", "mechanism": "highest-bid"},
"trace": "log.swf", "nodes": 2, "seed": 7, "jobs": 20, "redraws": 2, "runs": 412, "largest": 0.3, "notes": ["<img src=x onerror=window.hacked=1>"],
"kinds": [{"kind": "value", "jobs": 20, "gainers": 3, "largest": 0.3, "worst": {"jobs": 20, "mean": 0.021, "mean_95": [-0.01, 0.052]}}]}`

// full is a site on which each page has data. Some of its texts would run as scripts in HTML.
type full struct {
	*site
	spot, files, hostile messages.JobID
	queued               messages.JobID // job of carol: it waits in market spot, because it is outbid
}

func startFull(t *testing.T) *full {
	t.Helper()
	keys := func(name messages.Name) (string, string, *identity.Authority) {
		dir := filepath.Join(t.TempDir(), "keys")
		authority, err := identity.Create(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		public, err := authority.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return dir, public, authority
	}
	westKeys, west, authority := keys("west")
	eastKeys, east, _ := keys("east")
	cycle := cycleSoon(time.Now())
	f := &full{site: start(t, func(c *embedded.Config) {
		c.Site, c.Keys, c.ListenLeaf = "west", westKeys, "127.0.0.1:0"
		c.Peers = []embedded.Peer{{Name: "east", Keys: []string{east}, Limit: 500 * messages.Credit}}
		c.Nodes = []embedded.Node{{Name: "node1", Slots: embedded.Slots{{Class: "map", Slots: 2}, {Class: "spot", Slots: 2}}},
			{Name: "node2", Slots: embedded.Slots{{Class: "map", Slots: 2}, {Class: "night", Slots: 2}}}}
		c.Markets = []market.Market{
			{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"map"}},
			{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"spot"}, Reserve: new(messages.Price(messages.Credit / 1000))},
			{Name: "night", Mechanism: market.Reservation, Classes: []messages.Name{"night"}, Cycle: cycle, Granule: messages.Duration(time.Second)},
		}
	})}
	creds, err := authority.IssueLink("east")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "west.creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, func(c *embedded.Config) {
		c.Site, c.Keys, c.Console = "east", eastKeys, ""
		c.Peers = []embedded.Peer{{Name: "west", URLs: []string{"nats://" + f.Info().Leaf}, Creds: file, Keys: []string{west}, Limit: 500 * messages.Credit}}
	})
	spot := func(rate messages.Credits, tasks int) func(*job.JobSpec) {
		return func(j *job.JobSpec) {
			j.Market, j.Stages[0].Class, j.Stages[0].Tasks, j.Rate, j.Budget = "spot", "spot", tasks, rate*messages.Credit/1000, 50*messages.Credit
		}
	}
	f.spot = f.submit("alice", "suspends", "sleep 300", spot(2, 2))
	await.Until(t, "alice's job runs", func() bool { return f.job("alice", f.spot).Running == 2 })
	dear := f.submit("bob", "dear", "sleep 300", spot(5, 1))
	await.Until(t, "bob's job has a slot of alice's", func() bool { return f.job("alice", f.spot).Suspended == 1 && f.job("bob", dear).Running == 1 })
	f.submit("bob", "waits", "sleep 300", spot(1, 1)) // one job runs, and two jobs wait next to carol's job
	f.queued = f.submit("carol", "outbid", "sleep 300", spot(1, 1))
	for i := range messages.Credits(4) {
		f.submit([]messages.Name{"alice", "bob"}[i%2], fmt.Sprint("night", int(i)), "sleep 300", func(j *job.JobSpec) {
			j.Market, j.Stages[0].Class, j.Value, j.Length, j.Budget = "night", "night", (4+i)*messages.Credit, messages.Duration(15+5*i)*messages.Duration(time.Second), 20*messages.Credit
		})
	}
	f.files = f.submit("alice", "files", `echo some text > result.txt`, func(j *job.JobSpec) { j.Market, j.Stages[0].Outputs = "main", []string{"*.txt"} })
	f.hostile = f.submit("alice", hostile, "echo '"+hostile+"'; echo x > '<img src=x onerror=window.hacked=1>.txt'; sleep 1", func(j *job.JobSpec) {
		j.Market, j.Comment, j.Stages[0].Outputs = "main", hostile, []string{"*.txt"}
	})
	audits := filepath.Join(f.Config().State, console.AuditsDir)
	if err := os.Mkdir(audits, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(audits, "spot.json"), []byte(keptAudit), 0o600); err != nil {
		t.Fatal(err)
	}
	ask[clearing.ClearingReply](f.site, "alice", messages.Bank, clearing.VerbRemit, clearing.RemitRequest{Key: "k", Peer: "east", Payee: "bob", Amount: 3 * messages.Credit, Reason: hostile})
	later := messages.TimeOf(time.Now().Add(1000 * time.Hour))
	ask[market.Window](f.site, "operator", messages.Auctioneer, market.VerbWindow, market.WindowRequest{Add: &market.Window{Nodes: []messages.Name{"node2"}, From: later, To: later.Add(messages.Duration(time.Hour)), Reason: "new disks " + hostile}})
	return f
}

func (s *site) job(account messages.Name, id messages.JobID) job.JobDetail {
	s.Helper()
	return ask[job.JobDetail](s, account, messages.Auctioneer, messages.VerbJob, job.JobRequest{Job: id})
}

// cycleSoon returns a length of one to two minutes for the settlement cycles. With this length, the next cycle begins
// in a few seconds.
func cycleSoon(now time.Time) messages.Duration {
	const ready = 12 // seconds that the bids need
	best, wait := int64(60), int64(60)
	for s := int64(60); s <= 120; s++ {
		if left := s - now.Unix()%s; left >= ready && left < wait {
			best, wait = s, left
		}
	}
	return messages.Duration(best) * messages.Duration(time.Second)
}

// The method pages returns, for each user, pages of the console that show data if the site is full. For each page, it
// returns a condition in JavaScript that is true only when the page shows the data.
func (f *full) pages() map[messages.Name]map[string]string {
	shows := func(text string) string { return fmt.Sprintf("document.body.innerText.includes(%s)", quoted(text)) }
	return map[messages.Name]map[string]string{
		"alice": {
			fmt.Sprint("job/", f.spot):    `document.querySelectorAll("svg.gantt rect.pause").length > 0`,
			fmt.Sprint("job/", f.files):   shows("Download result.txt"),
			fmt.Sprint("job/", f.hostile): shows("<script>"),
			"market/night":                `document.querySelectorAll("svg.gantt rect").length >= 2`,
			"money":                       shows("Export as CSV"),
			"honesty":                     shows("Last audit of spot") + " && " + shows("no gain is shown") + " && " + shows("--seeds 2"),
		},
		"carol":    {fmt.Sprint("job/", f.queued): `document.getElementById("bid") !== null`},
		"operator": {"sites": `/east[^]*Up[^]* ms/.test(document.body.innerText) && ` + shows("owes 3 credits"), "nodes": shows("Drain node1") + " && " + shows("Maintenance") + " && " + shows("new disks <")},
	}
}

// Each page must show its data, and no text of a stranger may become HTML.
func TestPagesWithData(t *testing.T) {
	chromium(t)
	f := startFull(t)
	w := browse(t)
	down := t.TempDir()
	w.run(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(down))
	downloaded := func(name string) (text string) {
		await.Until(t, name+" is downloaded", func() bool {
			data, err := os.ReadFile(filepath.Join(down, name))
			text = string(data)
			return err == nil && text != ""
		})
		return text
	}
	for _, account := range []messages.Name{"alice", "carol", "operator"} {
		w.connect(f.site, account)
		paths := slices.Sorted(maps.Keys(f.pages()[account]))
		slices.Reverse(paths) // the timetable is soon over, so its page comes before the page of the jobs
		for _, path := range paths {
			w.open(path)
			w.until(f.pages()[account][path])
			var hacked, strange bool
			w.run(chromedp.Evaluate(`"hacked" in window`, &hacked), chromedp.Evaluate(`document.querySelector("main img, main script, main iframe") !== null`, &strange))
			if hacked || strange {
				t.Errorf("page %s has what a stranger wrote: a script ran %v, an element is there %v", path, hacked, strange)
			}
			if found := sixDecimals.FindString(w.text()); found != "" {
				t.Errorf("page %s writes %s", path, found)
			}
			switch path {
			case fmt.Sprint("job/", f.files):
				w.run(chromedp.Click(`//button[text()="Download result.txt"]`, chromedp.BySearch))
				if text := downloaded("result.txt"); text != "some text\n" {
					t.Errorf("the file has %q", text)
				}
			case "money":
				w.run(chromedp.Click(`//button[text()="Export as CSV"]`, chromedp.BySearch))
				if text := downloaded("statement-alice.csv"); !strings.HasPrefix(text, "number,at,kind,job,") || strings.Count(text, "\n") < 3 {
					t.Errorf("the statement has %q", text)
				}
			case "nodes":
				w.drains()
			case fmt.Sprint("job/", f.queued):
				w.slides(f)
			}
		}
	}
	w.fine()
}

func (w *tab) drains() {
	w.Helper()
	w.run(chromedp.Evaluate(`window.prompt = () => "a new disk"`, nil), chromedp.Click(`//button[text()="Drain node1"]`, chromedp.BySearch))
	w.shows("Resume node1")
	w.shows("A new disk.")
	w.run(chromedp.Click(`//button[text()="Resume node1"]`, chromedp.BySearch))
	w.shows("node1 takes work again.")
	w.shows("Drain node1")
}

// slides moves the slider for the rate of a job that was outbid. The page says with which rate the job would start. The
// market must give the same answer for this rate. Then slides clicks the button that raises the job's rate.
func (w *tab) slides(f *full) {
	w.Helper()
	w.shows("Job " + f.queued.String() + " if its rate were 3.6 credits an hour (now 3.6/h)")
	w.run(chromedp.Evaluate(`{const r = document.getElementById("bid"); r.value = 48; r.dispatchEvent(new Event("input", {bubbles: true}))}`, nil))
	w.shows("if its rate were 57.6 credits an hour (now 3.6/h)")
	w.shows("Raise the rate to 57.6 credits an hour")
	says := ask[market.WhatIfReply](f.site, "carol", messages.Auctioneer, market.VerbWhatIf, market.WhatIfRequest{Job: f.queued, Bid: 16 * messages.Credit / 1000})
	if says.Then == nil || says.Now.Reason != "Outbid" || says.Then.Reason != "Running" {
		w.Errorf("the market says %+v", says)
	}
	w.shows("Running: ")
	if got := f.job("carol", f.queued); got.Running != 0 || got.Spec.Rate != messages.Credit/1000 {
		w.Errorf("the question changed the job: %+v", got.JobSummary)
	}
	w.run(chromedp.Click("raise", chromedp.ByID))
	await.Until(w, "the rate is raised", func() bool { return f.job("carol", f.queued).Spec.Rate == 16*messages.Credit/1000 })
}

// Credentials for the next visit must be stored encrypted, and only the passphrase may open them.
func TestCredentialsAreSealed(t *testing.T) {
	s := start(t, nil)
	w := browse(t)
	w.run(chromedp.Navigate(s.Info().Console))
	w.until(`document.getElementById("creds") !== null`)
	const connect = `//button[text()="Connect"]`
	w.run(chromedp.SetValue("creds", s.creds("alice"), chromedp.ByID), chromedp.Click("keep", chromedp.ByID), chromedp.Click(connect, chromedp.BySearch))
	w.shows("Choose a passphrase")
	w.run(chromedp.SendKeys("phrase", "correct horse", chromedp.ByID), chromedp.Click(connect, chromedp.BySearch))
	w.until(`document.querySelector("nav") !== null`)
	var kept string
	w.run(chromedp.Evaluate(`JSON.stringify(localStorage)`, &kept))
	if !strings.Contains(kept, "salt") || strings.Contains(kept, "BEGIN") || strings.Contains(kept, "eyJ") || strings.Contains(kept, "horse") {
		t.Errorf("the browser keeps %s", kept)
	}
	open := func(phrase string) {
		w.run(chromedp.Navigate(s.Info().Console))
		w.until(`document.getElementById("open") !== null`)
		w.run(chromedp.SendKeys("open", phrase, chromedp.ByID), chromedp.Click(`//button[text()="Open"]`, chromedp.BySearch))
	}
	open("wrong horse")
	w.shows("The passphrase does not open")
	open("correct horse")
	w.shows("2 of 2 nodes up")
	w.run(chromedp.Navigate(s.Info().Console))
	w.until(`document.getElementById("open") !== null`)
	w.run(chromedp.Click(`//button[text()="Remove them from this browser"]`, chromedp.BySearch))
	w.until(`document.getElementById("open") === null && localStorage.length === 0`)
	w.fine()
}
