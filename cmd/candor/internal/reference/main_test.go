package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command that users see has a man page, and there are no other pages.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if err := run([]string{"man", dir}); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, page := range pages {
		left[filepath.Base(page)] = true
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		page := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		if c.IsAvailableCommand() && !left[page] {
			t.Errorf("there is no page %s", page)
		}
		delete(left, page)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root())
	if len(left) > 0 {
		t.Errorf("pages of no command: %v", left)
	}
}

func TestCompletions(t *testing.T) {
	dir := t.TempDir()
	if err := run([]string{"completions", dir}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bash-completion/completions/candor", "zsh/site-functions/_candor", "fish/vendor_completions.d/candor.fish"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Contains(text, []byte("candor")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The list of components names each module once, with a unique identifier.
func TestSBOM(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := sbom(&text, self); err != nil {
		t.Fatal(err)
	}
	var d spdx
	if err := json.Unmarshal(text.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	seen, names := map[string]bool{}, map[string]bool{}
	for _, p := range d.Packages {
		if seen[p.ID] {
			t.Errorf("%s is there twice", p.ID)
		}
		seen[p.ID], names[p.Name] = true, true
	}
	if !names["github.com/hashicorp/raft"] || len(d.Relationships) != len(d.Packages) {
		t.Errorf("%d packages and %d relationships", len(d.Packages), len(d.Relationships))
	}
}

// The committed pages of the reference must equal the pages that the command "make docs" would write.
func TestPagesAreUpToDate(t *testing.T) {
	all, err := pages("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join("../../../../deploy/docs/reference", name))
		if err != nil || string(got) != want {
			t.Errorf("%s is not up to date (%v): run make docs", name, err)
		}
	}
}

// The reference must have a description of each field of a configuration. No description may contain a Go name.
func TestConfigurationIsInItsOwnWords(t *testing.T) {
	page, err := configurationPage("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	camel := regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w*|\bnil\b`)
	rows := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		rows++
		if strings.HasSuffix(line, "|  |\n") {
			t.Errorf("no meaning: %s", line)
		}
		for _, word := range camel.FindAllString(line, -1) {
			if word != "MiB" && word != "WebSockets" {
				t.Errorf("%s is a word of Go: %s", word, line)
			}
		}
	}
	if rows < 130 || !strings.Contains(page, "`notify.smtp`") {
		t.Errorf("%d fields", rows)
	}
}
