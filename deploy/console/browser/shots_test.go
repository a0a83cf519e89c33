//go:build browser

package browser

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// TestShots takes a picture of every page, 1,280 and 390 pixels wide, in light and dark.
func TestShots(t *testing.T) {
	dir := os.Getenv("CANDOR_SHOTS")
	if dir == "" {
		t.Skip("CANDOR_SHOTS names no directory: make console-shots does")
	}
	s := busy(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := browse(t)
	w.run(chromedp.Navigate(s.Info().Console))
	w.until(`document.getElementById("creds") !== null`)
	w.shots(dir, "login")
	w.connect(s, "alice")
	s.submit("carol", "dear", "sleep 300", func(j *job.JobSpec) { j.Market, j.Stages[0].Tasks, j.Budget = "main", 20, 20*messages.Credit })
	w.open("market/main?over=600")
	w.until(`document.querySelector("#plot-price canvas") !== null`)
	for path := range pages {
		if path == "market/main" {
			path += "?over=600"
		}
		w.open(path)
		w.shots(dir, path)
	}
	failed := s.submit("alice", "fails", `echo "part-$CANDOR_TASK.csv: no such file" >&2; exit 3`, func(j *job.JobSpec) { j.Market, j.Stages[0].Class = "main", "reduce" })
	w.open(fmt.Sprint("job/", failed))
	w.until(`document.getElementById("errors") !== null`)
	w.shots(dir, "job-failed")
	w.open("market/menu?over=600")
	w.until(`document.querySelector("#plot-price canvas") !== null`)
	w.shots(dir, "market-sealed")
	w.open("submit?market=menu")
	w.until(`document.querySelector("#plot-menu canvas") !== null`)
	w.shots(dir, "menu")
	f := startFull(t)
	for account, pages := range f.pages() {
		w.connect(f.site, account)
		for path, sign := range pages {
			w.open(path)
			w.until(sign)
			name := map[string]string{fmt.Sprint("job/", f.spot): "job-suspended", fmt.Sprint("job/", f.files): "job-files", fmt.Sprint("job/", f.hostile): "job-hostile",
				fmt.Sprint("job/", f.queued): "job-what-if"}[path]
			w.shots(dir, cmp.Or(name, path)+"-"+account)
		}
	}
}

func (w *tab) shots(dir, path string) {
	w.Helper()
	name, _, _ := strings.Cut(path, "?")
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			var picture []byte
			w.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.EmulateViewport(width, 800))
			w.until(fmt.Sprintf("matchMedia('(prefers-color-scheme: %s)').matches && innerWidth === %d", scheme, width))
			w.until(`new Promise(done => setTimeout(() => done(true), 1300))`) // the page reads the state again
			w.run(chromedp.FullScreenshot(&picture, 100))
			file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", strings.ReplaceAll(name, "/", "-"), width, scheme))
			if err := os.WriteFile(file, picture, 0o644); err != nil {
				w.Fatal(err)
			}
			var wide float64
			w.run(chromedp.Evaluate(`document.documentElement.scrollWidth - innerWidth`, &wide))
			if wide > 0 {
				w.Errorf("page %s is %.0f pixels wider than %d", path, wide, width)
			}
		}
	}
}
