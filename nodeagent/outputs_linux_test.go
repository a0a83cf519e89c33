package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/store"
)

// TestHalfAManifestIsNone interrupts the writing of a manifest. The manifest must keep its old content. The next agent
// must remove the temporary file.
func TestHalfAManifestIsNone(t *testing.T) {
	m := &manifests{state: t.TempDir(), log: zap.NewNop(), life: t.Context(), users: map[string]int{}}
	p := &agent.Program{Job: 7, Stage: 1, Outputs: []string{"*.csv"}}
	task := messages.TaskRef{Job: 7, Stage: 1}
	path := m.path(7, 1)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", path+".part"); err != nil {
		t.Fatal(err)
	}
	if err := m.add(p); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("on a full disk: %v", err)
	}
	if l := m.find(task); l != nil || m.users[path] != 0 {
		t.Errorf("a manifest that was not written is found: %+v", l)
	}
	if err := os.Remove(path + ".part"); err != nil {
		t.Fatal(err)
	}
	if err := m.add(p); err != nil || !reflect.DeepEqual(m.find(task), manifestOf(p)) {
		t.Fatalf("%v, found %+v", err, m.find(task))
	}
	if err := os.Symlink("/dev/full", path+".part"); err != nil {
		t.Fatal(err)
	}
	if err := writeManifest(path, &manifest{Outputs: []string{"other"}}); err == nil {
		t.Error("a full disk takes a manifest")
	}
	if l := m.find(task); !reflect.DeepEqual(l, manifestOf(p)) {
		t.Errorf("the manifest of before is %+v", l)
	}
	m.sweep([]runner.Adopted{{Attempt: messages.Attempt{Task: task}}})
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 || left[0].Name() != filepath.Base(path) {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestHalfAnInputIsNone interrupts the transfer of an input. The next task must fetch the input again.
func TestHalfAnInputIsNone(t *testing.T) {
	dir := t.TempDir()
	f := job.File{Name: "x", Digest: strings.Repeat("a", 64), Size: 4}
	path := store.InputFile(dir, f.Digest)
	in := openInputs(dir)
	half := func(to *os.File) error {
		if _, err := to.WriteString("go"); err != nil {
			return err
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("it has its name before it is whole")
		}
		return messages.Errorf(messages.Unavailable, "broke off")
	}
	if _, err := in.acquire(t.Context(), f, half); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 || in.bytes != 0 {
		t.Errorf("left are %v, %v, and %d bytes are counted", left, err, in.bytes)
	}
	if err := os.WriteFile(path+".part", []byte("go"), 0o600); err != nil { // left by an agent that was killed
		t.Fatal(err)
	}
	whole := func(to *os.File) error {
		_, err := to.WriteString("good")
		return err
	}
	if in = openInputs(dir); in.bytes != 0 {
		t.Errorf("%d bytes are taken to be there", in.bytes)
	}
	if _, err := in.acquire(t.Context(), f, whole); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); string(text) != "good" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestNamesOfOutputs(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, says := range map[string]string{
		"plain": "", "a b": "", strings.Repeat("x", 255): "",
		"o\xff": `"o\xff": its name is not valid UTF-8`,
		"o\n":   `"o\n": has a control character`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := describe(root, name)
		if says == "" && (f == nil || f.Name != name) {
			t.Errorf("%q: %+v", name, f)
		}
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", name, err, says)
		}
	}
}

// Links that lead back to a directory must not make the search for outputs read its entries again and again. The search
// must end when its context ends.
func TestOutputsAreLookedForWithinBounds(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b", "c"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"top.csv", "a/one.csv", "a/b/c/two.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		if err := os.Symlink(".", filepath.Join(dir, fmt.Sprint("l", i))); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	few := 100 // a limit a little above the number of entries
	for pattern, want := range map[string][]string{
		"*.csv": {"top.csv"}, "*/*/*/*.csv": {"a/b/c/two.csv"}, "*/*/*/*/*/*/*/*": nil, "a/*.csv": {"a/one.csv"},
		"l1/*.csv": {"l1/top.csv"}, "a/one.csv": {"a/one.csv"}, "none/*": nil, "a/*/c/*": {"a/b/c/two.csv"},
	} {
		if found, err := matching(t.Context(), root, []string{pattern}, few); err != nil || !slices.Equal(found, want) {
			t.Errorf("%s: %q, %v", pattern, found, err)
		}
	}
	if _, err := matching(t.Context(), root, []string{"*", "*/*", "*/*/*", "*/*/*/*"}, few); messages.KindOf(err) != messages.TooLarge || !strings.Contains(messages.Detail(err), "after 100 files and directories") {
		t.Errorf("%v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := matching(ended, root, []string{"*"}, few); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestOutputsThatCannotBeKept: the good outputs must be stored, an error must name the refused ones, and the task must
// not be run again.
func TestOutputsThatCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"good.csv", "new\nline.csv", "o\xff.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	kept, refused, err := collect(t.Context(), root, &manifest{Outputs: []string{"*.csv"}})
	if err != nil || len(refused) != 2 {
		t.Fatalf("refused %v, %v", refused, err)
	}
	if len(kept) != 1 || kept[0].Name != "good.csv" {
		t.Fatalf("kept %+v", kept)
	}
	f := unstored(agent.Finished{}, refusal(refused, len(kept)), t.Context())
	if !f.Outcome.Limited() || !strings.Contains(f.Detail, `"new\nline.csv": has a control character`) || !strings.Contains(f.Detail, "; files stored: 1") {
		t.Errorf("%+v", f)
	}
	if err := os.Truncate(filepath.Join(dir, "good.csv"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, _, err := collect(t.Context(), root, &manifest{Outputs: []string{"good.csv"}}); messages.KindOf(err) != messages.TooLarge {
		t.Errorf("a file of 1 TiB without a block: %v", err)
	}
}
