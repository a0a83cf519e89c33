package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/job"
)

func handle(t *testing.T, method, host, path string, header ...string) *http.Response {
	t.Helper()
	h, err := Handler(Config{Site: "west", WebSocket: "ws://:8471", Names: []string{"127.0.0.1", "localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestPagesAreServedStrictly(t *testing.T) {
	for _, path := range []string{"/", "/app.js", "/app.css", "/icon.svg", "/licences.txt", "/site.json"} {
		r := handle(t, "GET", "localhost:8470", path)
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, r.Status)
		}
		policy := r.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self' ws://localhost:8471;", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q has no %q", path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", path, r.Header)
		}
	}
	page, _ := io.ReadAll(handle(t, "GET", "127.0.0.1:8470", "/").Body)
	if bytes.Contains(page, []byte("<script>")) || bytes.Contains(page, []byte("style=")) {
		t.Error("the page has a script or a style of its own, which its policy forbids")
	}
}

func TestRequestsByOtherNamesAreRefused(t *testing.T) {
	for host, want := range map[string]int{
		"localhost:8470": 200, "LOCALHOST": 200, "127.0.0.1": 200,
		"evil.example:8470": 421, "127.0.0.1.evil.example": 421, "": 421, "[::1]:8470": 421,
	} {
		if r := handle(t, "GET", host, "/"); r.StatusCode != want {
			t.Errorf("Host %q: %s, want %d", host, r.Status, want)
		}
	}
	if r := handle(t, "POST", "localhost", "/"); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", r.Status)
	}
	for _, path := range []string{"/nothing", "/../console.go", "/dist/app.js"} {
		if r := handle(t, "GET", "localhost", path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
}

func TestSiteIsTold(t *testing.T) {
	var told map[string]string
	if err := json.NewDecoder(handle(t, "GET", "localhost:1", "/site.json").Body).Decode(&told); err != nil || told["site"] != "west" || told["websocket"] != "ws://localhost:8471" {
		t.Errorf("told %v (%v)", told, err)
	}
	for _, bad := range []string{"", "http://x:1", "ws://x", "%"} {
		if _, err := Handler(Config{WebSocket: bad}); err == nil {
			t.Errorf("WebSocket %q is accepted", bad)
		}
	}
}

// The console must show the reports in the directory, and leave out files that are no reports or are too large.
func TestAuditsAreShown(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"m.json": `{"seed":7}`, "bad.json": "{", "notes.txt": "{}", "large.json": `"` + strings.Repeat("x", mostAudit) + `"`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	for audits, want := range map[string]string{dir: `[{"seed":7}]`, "": "[]", filepath.Join(dir, "none"): "[]"} {
		h, err := Handler(Config{Site: "west", WebSocket: "ws://:8471", Names: []string{"localhost"}, Audits: audits})
		if err != nil {
			t.Fatal(err)
		}
		r, w := httptest.NewRequest("GET", "/audits.json", nil), httptest.NewRecorder()
		r.Host = "localhost"
		if h.ServeHTTP(w, r); strings.TrimSpace(w.Body.String()) != want || w.Code != http.StatusOK {
			t.Errorf("of %q: %d %s", audits, w.Code, w.Body)
		}
	}
}

func TestFilesArePackedAndKnown(t *testing.T) {
	r := handle(t, "GET", "localhost", "/app.js", "Accept-Encoding", "gzip, br")
	if r.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("not packed: %v", r.Header)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(z)
	plain, _ := io.ReadAll(handle(t, "GET", "localhost", "/app.js").Body)
	if err != nil || !bytes.Equal(unpacked, plain) {
		t.Errorf("packed and plain differ: %v", err)
	}
	if again := handle(t, "GET", "localhost", "/app.js", "If-None-Match", r.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("asked again: %s", again.Status)
	}
}

// budget is the largest number of bytes that a browser loads, compressed.
const budget = 150_000

func TestPagesAreSmall(t *testing.T) {
	sum := 0
	for _, path := range []string{"/", "/app.js", "/app.css", "/icon.svg"} {
		body, err := io.ReadAll(handle(t, "GET", "localhost", path, "Accept-Encoding", "gzip").Body)
		if err != nil {
			t.Fatal(err)
		}
		sum += len(body)
	}
	t.Logf("%d bytes", sum)
	if sum > budget {
		t.Errorf("a browser loads %d bytes, more than %d", sum, budget)
	}
}

// The committed pages must be built from the committed sources. The build stores a digest of its sources, and the test
// compares it with the digest of the committed sources. With CANDOR_NODE, the test builds the pages and compares
// everything.
func TestPagesAreOfTheirSources(t *testing.T) {
	names := []string{"build.mjs", "package-lock.json"}
	var sources []string
	err := filepath.WalkDir("src", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			sources = append(sources, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(sources)
	digest := sha256.New()
	for _, name := range append(names, sources...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		digest.Write([]byte(name + "\x00"))
		digest.Write(append(text, 0))
	}
	built, err := os.ReadFile("dist/sources.sha256")
	if want := hex.EncodeToString(digest.Sum(nil)); err != nil || strings.TrimSpace(string(built)) != want {
		t.Errorf("dist is not of these sources; build it anew with make console (%v)", err)
	}
}

// candor top, candor why --bid and the console must describe the same state with the same words and numbers. The tests
// of the two commands have stored states and the texts for them. From these states, the console must make the same
// texts.
func TestWordsOfTop(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not here, which the words of the console need")
	}
	for name, group := range map[string]string{"top": "site", "why_bid": "jobs"} {
		t.Run(name, func(t *testing.T) { compareWords(t, "../../cmd/candor/internal/client/"+group+"/testdata/"+name) })
	}
}

func compareWords(t *testing.T, kept string) {
	state, err := os.Open(kept + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	shown, err := os.ReadFile(kept + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "node", "words_test.mjs")
	command.Stdin, command.Stderr = state, os.Stderr
	said, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string // the lines without the headers of tables
	for line := range strings.Lines(string(shown)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "CLASS") && !strings.HasPrefix(line, "JOB") {
			want = append(want, line)
		}
	}
	got := strings.Split(strings.TrimSpace(string(said)), "\n")
	if len(got) != len(want) {
		t.Fatalf("the console has %d lines, the command %d:\n%s\n%s", len(got), len(want), said, shown)
	}
	for i, line := range got {
		rest := want[i]
		for _, text := range strings.Split(line, "\t") {
			at := strings.Index(rest, text)
			if at < 0 {
				t.Errorf("the console says %q in %q; the command says %q", text, line, want[i])
				break
			}
			rest = rest[at+len(text):]
		}
	}
}

// TestPricesOfTimeAreForAnHour checks the units in which the console shows prices. If a market has tariffs with prices,
// its price is for a slot-hour. In any other market, the price is an amount of credits. The price of a job of a given
// length is an amount of credits too.
func TestPricesOfTimeAreForAnHour(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not here, which the words of the console need")
	}
	const script = `import { priced, tariff } from "./src/words.js";
for (const tariffs of [undefined, [], [{ contention: 0 }], [{ price: 0.01 }], [{ sealed: true }], [{ price: 0.01, length: "0s" }], [{ price: 0.01 }, { price: 0.01, length: "1h" }]]) console.log(priced({ tariffs }).unit, priced({ tariffs }).factor);
console.log(tariff({ price: 0.01 }));`
	want := "credits 1\ncredits 1\ncredits 1\ncredits a slot-hour 3600\ncredits a slot-hour 3600\ncredits a slot-hour 3600\ncredits 1\n36 credits an hour\n"
	if got, err := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", script).Output(); err != nil || string(got) != want {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
}

// The console's page Usage must sum up jobs like candor usage, whose test stores the jobs and the sums.
func TestSumsOfUsage(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not here, which the sums of the console need")
	}
	const kept = "../../cmd/candor/internal/client/accounts/testdata/usage"
	jobs, err := os.Open(kept + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Close()
	want, err := os.ReadFile(kept + ".csv")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "node", "usage_test.mjs", "project", "user", "class")
	command.Stdin, command.Stderr = jobs, os.Stderr
	if got, err := command.Output(); err != nil || string(got) != string(want) {
		t.Errorf("the console sums up\n%s\nand the command\n%s (%v)", got, want, err)
	}
}

// The console can run an ended job again, and so can candor rerun. Both must submit the same job. The test of candor
// rerun stores the ended job and the submitted one.
func TestRunAgainIsThatOfTheCommand(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not here, which describes the job")
	}
	kept, err := os.ReadFile("../../cmd/candor/internal/client/submit/testdata/rerun.json")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", `
		import { readFileSync } from "node:fs";
		import { again } from "./src/rerun.js";
		const { job, done } = JSON.parse(readFileSync(0, "utf8"));
		console.log(JSON.stringify(again(job, done.map((list) => new Set(list)))));`)
	command.Stdin, command.Stderr = bytes.NewReader(kept), os.Stderr
	said, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got job.JobSpec
	var want struct{ Spec job.JobSpec }
	if err := errors.Join(json.Unmarshal(said, &got), json.Unmarshal(kept, &want)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want.Spec) {
		t.Errorf("the console submits\n%+v\nand the command\n%+v", got, want.Spec)
	}
}

// The console must write amounts of credits, and changes of amounts, in readable form.
func TestAmountsAreRead(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not here, which writes the amounts")
	}
	command := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", `
		import { change, credits, price, speak } from "./src/format.js";
		speak("en-US", "UTC");
		console.log([0, 1, 1234.567891, 12.5, 0.123456, 0.0123456, 0.00123456, 0.000123456, 0.000012, 0.000001].map(credits).join(" "));
		console.log([-12.345678, 0.000001, -0.000001, 3].map(change).join(" "), [37.1234, 0.0000277, 0.00123, 0].map(price).join(" "));`)
	got, err := command.CombinedOutput()
	const want = "0 1 1,234.57 12.5 0.123 0.012 0.0012 0.00012 <0.0001 <0.0001\n-12.35 +<0.0001 −<0.0001 +3 37.12 <0.0001 0.0012 0\n"
	if err != nil || string(got) != want {
		t.Errorf("the console writes\n%s, not\n%s (%v)", got, want, err)
	}
}

func TestPagesAreBuiltAgainTheSame(t *testing.T) {
	if os.Getenv("CANDOR_NODE") == "" {
		t.Skip("it installs packages of npm: make console-test runs it")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not here")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "build.mjs"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS("src")); err != nil {
		t.Fatal(err)
	}
	run := func(name string, arguments ...string) ([]byte, error) {
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Dir = dir
		return command.CombinedOutput()
	}
	if out, err := run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		t.Skipf("the packages cannot be installed here: %v\n%s", err, out)
	}
	if out, err := run("node", "build.mjs"); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		committed, err := dist.ReadFile(name)
		if built, failed := os.ReadFile(filepath.Join(dir, name)); failed != nil || !bytes.Equal(built, committed) {
			t.Errorf("%s is not what the sources give; build it anew with make console (%v)", name, failed)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// In the console, the filter of the page of jobs must offer every state of a job. Each state must have a mark and a
// colour.
func TestEveryStateOfAJobCanBeChosen(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	list, marks, style := read("src/pages/jobs.js"), read("src/parts.js"), read("src/app.css")
	for s := job.Waiting; s.String() != "Unknown"; s++ {
		if !strings.Contains(list, strconv.Quote(s.String())) || !strings.Contains(marks, s.String()+`: "`) || !strings.Contains(style, ".state."+strings.ToLower(s.String())) {
			t.Errorf("%v: no choice, no mark or no colour", s)
		}
	}
}
