// Package deploy_test checks the architecture of the tree: which package may import which.
package deploy_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/candor-grid/candor/"

type listed struct {
	ImportPath   string
	Name         string
	Dir          string
	Doc          string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Standard     bool
}

func packages(t *testing.T) []listed {
	t.Helper()
	return list(t, "./...")
}

func list(t *testing.T, arguments ...string) []listed {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Dir,Doc,GoFiles,Imports,TestImports,XTestImports,Standard"}, arguments...)...)
	command.Dir = ".."
	output, err := command.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listed
		if err := decoder.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func within(path, directory string) bool {
	path = strings.TrimPrefix(path, module)
	return path == directory || strings.HasPrefix(path, directory+"/")
}

var actors = []string{"auctioneer", "nodeagent", "bank", "estimator"}

func actorOf(path string) string {
	for _, a := range actors {
		if strings.HasPrefix(path, module) && within(path, a) {
			return a
		}
	}
	return ""
}

// forbidden returns why a package may not import another package, or "" if it may.
func forbidden(from, to string) string {
	layer := func(path string) string {
		first, _, _ := strings.Cut(strings.TrimPrefix(path, module), "/")
		return first
	}
	own := strings.HasPrefix(to, module)
	switch {
	case strings.HasPrefix(to, "github.com/nats-io/nats.go") && !within(from, "messages/bus"):
		return "only messages/bus speaks to NATS"
	case strings.HasPrefix(to, "github.com/hashicorp/raft") && !within(from, "messages/mailbox"):
		return "only messages/mailbox uses Raft"
	case own && layer(to) == "cmd" && layer(from) != "cmd":
		return "nothing below cmd imports it"
	case own && layer(to) == "deploy" && layer(from) != "cmd" && layer(from) != "deploy":
		return "only cmd and deploy import deploy"
	case actorOf(from) != "" && actorOf(to) != "" && actorOf(from) != actorOf(to):
		return "actors share nothing but messages"
	case layer(from) == "messages" && own && layer(to) != "messages":
		return "messages import nothing of ours"
	}
	return ""
}

// Tests may import nats.go, to show that any NATS client can take part.
func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		for _, to := range p.Imports {
			if why := forbidden(p.ImportPath, to); why != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, to, why)
			}
		}
		for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
			why := forbidden(p.ImportPath, to)
			if why != "" && !strings.HasPrefix(to, "github.com/nats-io/") && !within(p.ImportPath, "deploy") {
				t.Errorf("a test of %s imports %s: %s", p.ImportPath, to, why)
			}
		}
	}
}

func TestRulesForbid(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"auctioneer", "github.com/nats-io/nats.go"},
		{"messages", "github.com/nats-io/nats.go/jetstream"},
		{"bank/ledger", "github.com/hashicorp/raft-wal"},
		{"bank", module + "auctioneer"},
		{"estimator", module + "nodeagent/runner"},
		{"deploy/embedded", module + "cmd/candor"},
		{"auctioneer/book", module + "deploy/embedded"},
		{"messages/bus", module + "bank"},
	} {
		if forbidden(module+c.from, c.to) == "" {
			t.Errorf("%s may import %s", c.from, c.to)
		}
	}
	for _, c := range []struct{ from, to string }{
		{"messages/bus", "github.com/nats-io/nats.go"},
		{"messages/mailbox", "github.com/hashicorp/raft"},
		{"auctioneer", module + "auctioneer/book"},
		{"deploy/embedded", module + "bank"},
		{"cmd/candor", module + "deploy/embedded"},
		{"deploy/identity", "github.com/nats-io/jwt/v2"},
	} {
		if why := forbidden(module+c.from, c.to); why != "" {
			t.Errorf("%s may not import %s: %s", c.from, c.to, why)
		}
	}
}

// Mechanisms and their tests may use only four things: the standard library, gonum, the vocabulary (the packages below
// messages), and their own interface.
func TestMechanismsArePure(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		if !within(p.ImportPath, "auctioneer/mechanism") {
			continue
		}
		found++
		for _, d := range list(t, "-deps", p.ImportPath) {
			if !mechanismMayUse(d) {
				t.Errorf("%s depends on %s", p.ImportPath, d.ImportPath)
			}
		}
	}
	if found < 2 {
		t.Errorf("%d packages below auctioneer/mechanism: the test looks in the wrong place", found)
	}
}

func mechanismMayUse(p listed) bool {
	return p.Standard || strings.HasPrefix(p.ImportPath, "gonum.org/v1/gonum") ||
		p.ImportPath == module+"messages" || slices.Contains(vocabularies, strings.TrimPrefix(p.ImportPath, module+"messages/")) || p.ImportPath == module+"messages/heap" || p.ImportPath == module+"messages/spelling" || within(p.ImportPath, "auctioneer/mechanism") ||
		strings.HasPrefix(p.ImportPath, "github.com/vmihailenco/") // package messages uses this library for encoding
}

// The package of the auctioneer's leader (desk) and the package for jobs between sites (federation) may use no bus, log
// or mailbox, and have no clock, goroutine or lock.
func TestTheLeaderIsPure(t *testing.T) {
	impure := regexp.MustCompile(`\btime\.(Now|Since|Until|After|AfterFunc|Sleep|Tick|NewTimer|NewTicker)\b|\bgo func|\bmake\(chan\b`)
	for _, pure := range []string{"auctioneer/desk", "auctioneer/federation"} {
		for _, d := range list(t, "-deps", "./"+pure) {
			if d.ImportPath == "net" || d.ImportPath == "go.uber.org/zap" || within(d.ImportPath, "messages/bus") || within(d.ImportPath, "messages/mailbox") {
				t.Errorf("%s depends on %s", pure, d.ImportPath)
			}
		}
		for _, p := range list(t, "./"+pure) {
			for _, to := range p.Imports {
				if slices.Contains([]string{"context", "log", "log/slog", "os", "sync", "sync/atomic"}, to) {
					t.Errorf("%s imports %s", pure, to)
				}
			}
		}
		for file, text := range sources(t, pure) {
			if found := impure.FindString(text); found != "" {
				t.Errorf("%s has %q", file, found)
			}
		}
	}
}

// Simulators must leave decisions to package desk, the logic of the auctioneer's leader, so that no rule exists twice.
// Their checkers may read the decisions.
func TestSimulatorsHaveNoLeader(t *testing.T) {
	leads := regexp.MustCompile(`\bbook\.(Lost|Disband|Decide|Settle|Confirm)\{`)
	files := sources(t, "deploy/simulated")
	maps.Copy(files, sources(t, "cmd/lab/internal/faults"))
	for file, text := range files {
		if found := leads.FindString(text); found != "" {
			t.Errorf("%s makes %s}", file, found)
		}
	}
	if len(files) < 10 {
		t.Errorf("%d files of simulators: the test looks in the wrong place", len(files))
	}
}

// TestProgramHasNoOldParts checks that the program of "make build" links only maintained libraries. raft-wal needs a
// function of coreos/etcd. The tree has its own copy of this function.
func TestProgramHasNoOldParts(t *testing.T) {
	const tag = "hashicorpmetrics"
	old := regexp.MustCompile(`^github\.com/(boltdb|armon|hashicorp/raft-boltdb|coreos/(etcd|pkg|go-systemd/journal))(/|$)`)
	for _, d := range list(t, "-tags", tag, "-deps", "./cmd/candor") {
		if old.MatchString(d.ImportPath) && !strings.HasSuffix(d.Dir, "/messages/mailbox/preallocate/pkg/fileutil") {
			t.Errorf("the program links %s", d.ImportPath)
		}
	}
	for file, with := range map[string]string{"../Makefile": "TAGS = " + tag, "container/Containerfile": "-tags " + tag} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), with) {
			t.Errorf("%s builds without the tag %s: %v", file, tag, err)
		}
	}
}

// sources returns the Go files in a directory of the module, without its tests.
func sources(t *testing.T, directory string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Join("..", directory), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// vocabularies are the packages below messages that describe requests and answers. Each package imports only packages
// before it in the list.
var vocabularies = []string{"wire", "job", "market", "agent", "money", "clearing"}

// A vocabulary is a package below messages with the types of one subject. Package messages itself may import only the
// standard library. A vocabulary may also import package messages, and the vocabularies before it in the list above.
// Only package wire may also import the encoding library.
func TestVocabulariesAreSmall(t *testing.T) {
	allowed := map[string]bool{}
	for _, name := range append([]string{""}, vocabularies...) {
		path := strings.TrimSuffix(module+"messages/"+name, "/")
		for _, p := range list(t, path) {
			for _, to := range p.Imports {
				library := strings.HasPrefix(to, "github.com/vmihailenco/") && name == "wire"
				if strings.Contains(to, ".") && !allowed[to] && !library {
					t.Errorf("%s imports %s", path, to)
				}
			}
		}
		allowed[path] = true
	}
}

// runnerRooms are the packages below nodeagent/runner. `uses` lists the other packages below nodeagent that a package
// may import. `most` is the largest number of names that the package may export, with methods and fields.
var runnerRooms = map[string]struct {
	uses []string
	most int
}{
	"machine": {[]string{"runner/cell"}, 25},
	"session": {[]string{"runner/access", "runner/boottime"}, 11},
	"launch":  {[]string{"runner/cell"}, 37},
	"room":    {[]string{"runner/access", "runner/cell", "runner/launch", "runner/session", "runner/tree"}, 29},
	"program": {[]string{"lease", "proxy", "runner/access", "runner/launch", "runner/machine", "runner/users"}, 25},
	"lane":    {[]string{"lease", "runner/access", "runner/tree"}, 32},
	"store":   {[]string{"runner/access", "runner/lane", "runner/program", "runner/tree"}, 37},
	"stream":  {[]string{"runner/launch"}, 29},
}

// Each package in runnerRooms may import only the listed packages of the node agent, and may export at most the given
// number of names.
func TestRunnerRooms(t *testing.T) {
	for room, bound := range runnerRooms {
		for _, p := range list(t, "./nodeagent/runner/"+room) {
			for _, to := range p.Imports {
				if name, ours := strings.CutPrefix(to, module+"nodeagent/"); ours && !slices.Contains(bound.uses, name) {
					t.Errorf("%s imports %s", p.ImportPath, to)
				}
			}
			if names := exportedNames(t, p); len(names) > bound.most {
				t.Errorf("%s exports %d names, more than %d: %q", p.ImportPath, len(names), bound.most, names)
			}
		}
	}
}

func exportedNames(t *testing.T, p listed) (names []string) {
	t.Helper()
	for _, file := range p.GoFiles {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			var found []*ast.Ident
			switch n := n.(type) {
			case *ast.FuncDecl:
				found = []*ast.Ident{n.Name}
			case *ast.TypeSpec:
				if !n.Name.IsExported() {
					return false
				}
				found = []*ast.Ident{n.Name}
			case *ast.ValueSpec:
				found = n.Names
			case *ast.StructType:
				for _, f := range n.Fields.List {
					found = append(found, f.Names...)
				}
			case *ast.InterfaceType:
				for _, f := range n.Methods.List {
					found = append(found, f.Names...)
				}
			}
			for _, id := range found {
				if id.IsExported() {
					names = append(names, id.Name)
				}
			}
			_, body := n.(*ast.BlockStmt)
			return !body
		})
	}
	return names
}

// The operators' binary and the client must contain no code of the lab, no library for plots, and no code for tests
// except Raft's own helpers.
func TestBinaryWithoutLaboratory(t *testing.T) {
	other := regexp.MustCompile(`^(gonum\.org/v1/plot|golang\.org/x/image|testing/.*|net/http/httptest|pgregory\.net/rapid|github\.com/stretchr/testify|github\.com/anishathalye/porcupine)(/|$)`)
	for _, p := range list(t, "-tags", "hashicorpmetrics", "-deps", "./cmd/candor", "./cmd/candor/client") {
		if within(p.ImportPath, "cmd/lab") || other.MatchString(p.ImportPath) {
			t.Errorf("cmd/candor depends on %s", p.ImportPath)
		}
		if slices.Contains(p.Imports, "testing") && p.ImportPath != "github.com/hashicorp/raft" {
			t.Errorf("cmd/candor depends on %s, which imports testing", p.ImportPath)
		}
	}
}

// The client must not link packages of the server. Otherwise each command of the client would initialise these packages
// at its start.
func TestClientLinksNoServer(t *testing.T) {
	heavy := regexp.MustCompile(`^(github\.com/(nats-io/nats-server|prometheus|hashicorp|containerd|klauspost/compress/s2)|gonum\.org|google\.golang\.org/protobuf)(/|$)`)
	found := false
	for _, d := range list(t, "-deps", "./cmd/candor/client") {
		found = found || within(d.ImportPath, "cmd/candor/internal/client/submit")
		if heavy.MatchString(d.ImportPath) || within(d.ImportPath, "deploy/embedded") || slices.Contains(actors, strings.TrimPrefix(d.ImportPath, module)) {
			t.Errorf("the client links %s", d.ImportPath)
		}
	}
	if !found {
		t.Error("the client has no commands: the test looks in the wrong place")
	}
}

func TestNoBinaryHasTests(t *testing.T) {
	arguments := []string{"-deps"}
	for _, p := range packages(t) {
		if p.Name == "main" {
			arguments = append(arguments, p.ImportPath)
		}
	}
	for _, p := range list(t, arguments...) {
		if strings.HasPrefix(p.ImportPath, module) && slices.Contains(p.Imports, "testing") {
			t.Errorf("a command depends on %s, which is for tests", p.ImportPath)
		}
	}
}

func TestEveryPackageIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// Files that a site needs after a power failure must be written with package durable. A file that is only written and
// renamed may be empty afterwards.
func TestStateIsDurable(t *testing.T) {
	otherwise := map[string]string{
		"deploy/embedded/jetstream.go":          "moves what is damaged, once more after a loss of power",
		"deploy/identity/authority.go":          "is renamed as a tree",
		"auctioneer/archive/contents.go":        "has a checksum, and is made anew",
		"bank/history/files.go":                 "is synced with the next image",
		"messages/durable/durable.go":           "does it",
		"messages/mailbox/inspect.go":           "moves what is damaged, and syncs the directory",
		"messages/mailbox/snapshots.go":         "moves what is damaged, and syncs the directory",
		"nodeagent/inputs.go":                   "can be fetched again",
		"nodeagent/manifests.go":                "is of outputs, which are lost too",
		"nodeagent/runner/room/inside_linux.go": "is no file of a disk",
		"nodeagent/runner/store/store_linux.go": "ends with its task",
		"nodeagent/runner/cell/v1_linux.go":     "is no file of a disk",
		"nodeagent/runner/executor/mapped.go":   "is no file of a disk",
	}
	writes := regexp.MustCompile(`\bos\.(WriteFile|Rename)\(`)
	for _, p := range packages(t) {
		dir := strings.TrimPrefix(p.ImportPath, module)
		if !regexp.MustCompile(`^(auctioneer|bank|estimator|nodeagent|messages|deploy/(identity|embedded|backup)|cmd/candor/internal/(serve|client/cli))(/|$)`).MatchString(dir) || slices.Contains(p.Imports, "testing") {
			continue
		}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if file := dir + "/" + name; writes.Match(text) && otherwise[file] == "" {
				t.Errorf("%s writes a file that may be empty after a loss of power: use package durable", file)
			}
		}
	}
}
