package runbook

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages/await"
)

// row is a row of the runbook's table of files. A pattern that ends in / means all files below.
type row struct{ pattern, detects string }

// fileTable returns the runbook's table of the files of a state directory.
func fileTable(t *testing.T) (rows []row) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Files that were damaged\n")
	_, table, _ = strings.Cut(table, "\n| file |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(line, "|")
		for _, m := range inTicks.FindAllStringSubmatch(cells[1], -1) {
			rows = append(rows, row{m[1], strings.TrimSpace(cells[2])})
		}
	}
	return rows
}

var inTicks = regexp.MustCompile("`([^`]+)`")

func rowOf(rows []row, file string) (row, bool) {
	for _, r := range rows {
		dir, all := strings.CutSuffix(r.pattern, "/")
		parts := strings.Split(file, "/")
		if n := strings.Count(dir, "/") + 1; all && len(parts) > n {
			file = strings.Join(parts[:n], "/")
		}
		if ok, _ := path.Match(dir, file); ok {
			return r, true
		}
		file = strings.Join(parts, "/")
	}
	return row{}, false
}

// filesOf returns the regular files and sockets in a directory. The test fails for a file that the runbook's table does
// not have.
func filesOf(t *testing.T, dir string) (files []string) {
	t.Helper()
	rows := fileTable(t)
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		file, _ := filepath.Rel(dir, p)
		if _, known := rowOf(rows, file); !known {
			t.Errorf("the table of files in the runbook has no row for %s", file)
		}
		if e.Type().IsRegular() {
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

type ruin string

const (
	flipped   ruin = "flipped"
	truncated ruin = "truncated"
	zeroed    ruin = "zeroed"
	deleted   ruin = "deleted"
)

// harm does one kind of damage to a random range in the used part of a file. It returns a description.
func harm(t *testing.T, r *rand.Rand, kind ruin, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(content, "\x00")) // only the used part counts, not the reserved space
	from := r.IntN(max(used, 1))
	to := min(used, from+1+r.IntN(max(1, used/4)))
	switch kind {
	case deleted:
		err = os.Remove(file)
	case truncated:
		err = os.Truncate(file, int64(from*r.IntN(2))) // sometimes truncated to length 0
	case zeroed:
		clear(content[from:to])
		err = rewrite(file, content[from:to], from)
	case flipped:
		if used > 0 {
			err = rewrite(file, []byte{content[from] ^ 1<<r.IntN(8)}, from)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s, bytes %d to %d of %d", kind, from, to, used)
}

func rewrite(file string, part []byte, at int) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(part, int64(at))
	return errors.Join(err, f.Close())
}

// clone copies the directory of a stopped site, without the space that its files only reserve.
func clone(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", "--sparse=always", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// patient is a site whose files a test damages. Before that, the test recorded the site's answers to some commands.
type patient struct {
	*racks
	replicas int
	before   map[string]string
	whole    string // a copy of the site's directory without damage
	files    []string
	made     time.Time
}

// freshFor is how long the copy of the site's state can be used for tests. After this time, the lease of the running
// task and the hold of its job have expired, so the site gives other answers.
const freshFor = 30 * time.Minute

func (p *patient) begin() *await.Process {
	p.Helper()
	started := await.Start(p, exec.Command(p.binary, "up", "--nodes", "1", "--replicas", strconv.Itoa(p.replicas), "--listen", "127.0.0.1:0",
		"--state", filepath.Join(p.dir, "state"), "--leave-running", "--log-level", "warn", "--log-format", "text"), "Stop with")
	p.hosts["site"] = started
	return started
}

// These are commands of users. No damage may change the answers to them.
var questions = []string{
	"account --account alice", "account --account bob", "statement --account alice",
	"jobs --account operator --all-accounts --state Completed,Failed --json",
	"fetch 1 --account alice --output-dir got --timeout 10m", "logs 1 --account alice", "logs 2 --account bob", "logs 2 --stderr --account bob",
	"books --full", "bank verify",
}

// varying matches the parts of answers that differ at each start. An example is the number of transfers: each start
// extends the hold of a running job, which is a transfer.
var varying = regexp.MustCompile(`(?m)recomputed from \d+ records|verify: \d+ records|up to [0-9a-f]{64}|\d+ checkpoints? signed.*|\d+ signed, \d+ marked, \d+ forced.*|^Acting as.*\n|\d+ balances are|Transfers +\d+|\d+ transfers`)

// ask runs the commands in the variable `questions`. It returns their answers and the fetched files.
func (p *patient) ask() map[string]string {
	p.Helper()
	got := map[string]string{}
	for _, q := range questions {
		got[q] = varying.ReplaceAllString(p.patiently(q), "")
	}
	content, err := os.ReadFile(filepath.Join(p.dir, "got", "result"))
	if fetched := questions[4]; err != nil {
		got[fetched] += err.Error()
	} else {
		got[fetched] += string(content)
	}
	_ = os.RemoveAll(filepath.Join(p.dir, "got"))
	return got
}

// patiently repeats a command while its answer says "ask again". It stops earlier if the answer names one of the files
// in p.files, because the test looks for such an answer.
func (p *patient) patiently(command string) (out string) {
	p.Helper()
	p.turns(patience/2, func() bool {
		out = p.try(command)
		return !strings.Contains(out, "ask again") || named(out, p.files)
	})
	return out
}

// newPatient returns a site that has done some work and then lost its power.
func newPatient(t *testing.T, binary string, replicas int) *patient {
	p := &patient{racks: &racks{operator: &operator{T: t, binary: own(t, binary), dir: t.TempDir()}, hosts: map[string]*await.Process{}}, replicas: replicas, made: time.Now()}
	t.Cleanup(func() { p.end(syscall.SIGKILL, "site"); p.endExecutors() })
	p.up(p.begin())
	for name, text := range map[string]string{
		"in.txt": "input\n", "job.sh": "cat in.txt; echo complaint >&2; echo outcome > result\n",
		"long.sh": "while :; do sleep 0.05; done\n", "bad.sh": "echo wrong; echo why >&2; exit 3\n",
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.do("submit --account alice --chdir - --script --budget 10 --wait --timeout 10m --input in.txt --output result job.sh", "Completed")
	p.try("submit --account bob --chdir - --script --budget 10 --wait --timeout 10m bad.sh")
	p.do("submit --account carol --chdir - --script --budget 10 long.sh", "Submitted job 3")
	p.do("transfer --account alice bob 5", "Transferred 5")
	p.do("backup --state state west-monday", "has the backup")
	p.do("bank verify")
	p.until("job 3 --account carol", "Running")
	p.before = p.ask()
	p.end(syscall.SIGTERM, "site")
	p.endExecutors()
	p.whole = filepath.Join(p.dir, "whole")
	clone(t, filepath.Join(p.dir, "state"), p.whole)
	p.files = filesOf(t, p.whole)
	return p
}

var stack = regexp.MustCompile(`goroutine \d+ \[|panic: |SIGSEGV|fatal error: `)

// treat copies the state of the site, damages the given files of the copy, starts the site with the copy, and checks
// the result.
func (p *patient) treat(r *rand.Rand, kind ruin, files []string) {
	state := filepath.Join(p.dir, "state")
	clone(p.T, p.whole, state)
	for _, f := range files {
		p.Logf("%s: %s", f, harm(p.T, r, kind, filepath.Join(state, f)))
	}
	defer func() { p.end(syscall.SIGKILL, "site"); p.endExecutors() }()
	text := ""
	for range 3 { // up to three starts, as by a supervisor
		site := p.begin()
		refused := p.awaited(site)
		var after map[string]string
		if !refused {
			after = p.ask()
		}
		out := site.Output.String()
		text += out
		if stack.MatchString(out) {
			p.Errorf("a Go stack:\n%s", out)
			return
		}
		if refused {
			continue
		}
		p.compare(after, files, text)
		if out, done := p.work(files); !done && !named(out+text, files) {
			p.Errorf("work does not go on:\n%s\n%s", out, site.Output)
		} else if !done {
			p.Logf("healed, and work is refused: %s", out)
			return
		}
		before, _, _ := strings.Cut(text, "site west is up")
		p.Logf("healed: %s", before)
		return
	}
	if !named(text, files) {
		p.Errorf("the refusal names no damaged file:\n%s", text)
	}
	p.Logf("refused: %s", text)
}

// work submits a job, waits for its end, and reports whether it completed. If the node cannot start tasks, it is in
// quarantine, and the job would wait for ever. So work stops waiting if the output about the job and the nodes names
// one of the damaged files.
func (p *patient) work(files []string) (out string, done bool) {
	p.Helper()
	out = p.try("submit --account bob --chdir - --script --budget 10 --input in.txt --output result job.sh")
	_, id, submitted := strings.Cut(out, "Submitted job ")
	if !submitted {
		return out, false
	}
	id, _, _ = strings.Cut(id, " ")
	p.turns(patience/2, func() bool {
		out = p.try("job " + id + " --account bob")
		if done = strings.Contains(out, "Completed"); done {
			return true
		}
		out += p.try("nodes") + p.try("tasks "+id+" --account bob")
		return named(out, files) || strings.Contains(out, "Failed")
	})
	return out, done
}

// awaited waits until the site is up or has ended. It returns true if the site has ended, that is, refused to start. If
// neither happens in time, it kills the site.
func (p *patient) awaited(site *await.Process) (refused bool) {
	p.happens(patience/2, site.Found, site.Ended)
	select {
	case <-site.Found:
		return false
	default:
		_ = site.Process.Kill() // the site may have ended already
		<-site.Ended
		return true
	}
}

// compare checks the outputs of commands after the damage. Each output must be the same as before the damage. If it
// differs, the output or the site's log must name a damaged file.
func (p *patient) compare(after map[string]string, files []string, said string) {
	p.Helper()
	for q, was := range p.before {
		is := after[q]
		if stack.MatchString(is) {
			p.Errorf("candor %s prints a Go stack:\n%s", q, is)
		}
		if strings.HasPrefix(q, "logs") && slices.ContainsFunc(files, p.unchecked) {
			continue
		}
		if is != was && !named(is+said, files) {
			p.Errorf("candor %s prints\n%s\nand printed\n%s\nThe site said:\n%s", q, is, was, said)
		}
	}
}

// The runbook has a table of files, with the checks that detect damage to each file. unchecked reports whether the
// table says that no check detects damage to this file.
func (p *patient) unchecked(file string) bool {
	r, _ := rowOf(fileTable(p.T), file)
	return strings.HasPrefix(r.detects, "nothing")
}

// named reports whether a text names one of the files. For a file of a log, the name of the log's directory is enough.
// For a file of JetStream, the words "the depot" are enough, because users know them.
func named(text string, files []string) bool {
	return slices.ContainsFunc(files, func(f string) bool {
		return strings.Contains(text, f) ||
			path.Base(path.Dir(f)) == "wal" && strings.Contains(text, path.Dir(path.Dir(f))) ||
			strings.HasPrefix(f, "nats/") && strings.Contains(text, "the depot")
	})
}

var ofReplica = regexp.MustCompile(`^(auctioneer|bank)/\d+/`)

func (p *patient) alike(file string) (all []string) {
	same := func(f string) string {
		f = ofReplica.ReplaceAllString(f, "$1/*/")
		return regexp.MustCompile(`snapshots/[^/]+/`).ReplaceAllString(f, "snapshots/*/")
	}
	for _, f := range p.files {
		if same(f) == same(file) {
			all = append(all, f)
		}
	}
	return all
}

var kinds = []ruin{flipped, truncated, zeroed, deleted}

// damagedFiles damages files of a site: it flips bits, and truncates, zeroes and deletes files. It does this on a site
// of one replica, and on a site of three replicas, where it damages one replica or all. By default it damages a few
// random files. With CANDOR_DAMAGE=all it damages every file in each of these ways.
func damagedFiles(t *testing.T, binary string) {
	seed, err := strconv.ParseUint(os.Getenv("CANDOR_FIRST_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	only := regexp.MustCompile(os.Getenv("CANDOR_ONLY"))
	for _, replicas := range []int{1, 3} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, binary, replicas)
			draw := rand.New(rand.NewPCG(seed, uint64(replicas)))
			cases := p.cases(only)
			if os.Getenv("CANDOR_DAMAGE") != "all" {
				draw.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
				cases = cases[:min(len(cases), max(1, 3-replicas))]
			}
			for i := 0; i < len(cases); i++ {
				if time.Since(p.made) > freshFor {
					p = newPatient(t, binary, replicas)
					cases = p.cases(only)
				}
				c := cases[min(i, len(cases)-1)]
				t.Run(fmt.Sprintf("%s/%s/%d", c.files[0], c.kind, len(c.files)), func(t *testing.T) { p.of(t).treat(draw, c.kind, c.files) })
			}
			t.Run("backup", func(t *testing.T) { p.of(t).damagedBackup(draw) })
		})
	}
}

type damageCase struct {
	kind  ruin
	files []string
}

// cases returns one case for each kind of damage to each file whose name matches `only`. If the file belongs to a
// replica, there is one more case: the files of this name are damaged at all replicas.
func (p *patient) cases(only *regexp.Regexp) (all []damageCase) {
	for _, file := range p.files {
		if !only.MatchString(file) {
			continue
		}
		info, err := os.Stat(filepath.Join(p.whole, file))
		if err != nil {
			p.Fatal(err)
		}
		for _, kind := range kinds {
			if info.Size() == 0 && kind != deleted {
				continue
			}
			all = append(all, damageCase{kind, []string{file}})
			if alike := p.alike(file); len(alike) > 1 && alike[0] == file {
				all = append(all, damageCase{kind, alike})
			}
		}
	}
	return all
}

func (p *patient) of(t *testing.T) *patient {
	o, r, q := *p.operator, *p.racks, *p
	o.T, r.operator, q.racks = t, &o, &r
	return &q
}

// damagedBackup damages each file of a backup. The restoration must refuse the backup, and name the damaged file.
func (p *patient) damagedBackup(r *rand.Rand) {
	whole, copied := filepath.Join(p.dir, "west-monday"), filepath.Join(p.dir, "west-tuesday")
	entries, err := filepath.Glob(filepath.Join(whole, "*", "*"))
	if err != nil || len(entries) == 0 {
		p.Fatal(entries, err)
	}
	for _, file := range entries {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		name, _ := filepath.Rel(whole, file)
		for _, kind := range kinds {
			clone(p.T, whole, copied)
			done := harm(p.T, r, kind, filepath.Join(copied, name))
			if same, err := os.ReadFile(filepath.Join(copied, name)); err == nil {
				if was, _ := os.ReadFile(file); bytes.Equal(same, was) {
					continue
				}
			}
			out := p.try("restore west-tuesday --state restored")
			if !strings.Contains(out, name) || !strings.Contains(out, "exit status") || stack.MatchString(out) {
				p.Errorf("%s, %s: candor restore prints\n%s", name, done, out)
			}
			if os.Getenv("CANDOR_DAMAGE") != "all" {
				break
			}
		}
	}
}
