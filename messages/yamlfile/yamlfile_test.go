package yamlfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/yamlfile"
)

const site = `site: west
base: &base
  name: main
markets:
  - *base
  - {name: night, slots: {map: 2}}
`

func TestFind(t *testing.T) {
	f, err := yamlfile.Parse("site.yaml", []byte(site))
	if err != nil || f.Documents != 1 {
		t.Fatal(f, err)
	}
	for path, want := range map[string]struct {
		line, column int
		all          bool
	}{
		"site":                   {1, 7, true},
		"base":                   {2, 7, true},
		"markets[1].slots.map":   {6, 32, true},
		"markets[1].slots.other": {6, 26, false},
		"markets[7]":             {5, 3, false},
		"none":                   {1, 1, false},
	} {
		n, all := f.Find(path)
		if line, column := yamlfile.Position(n); line != want.line || column != want.column || all != want.all {
			t.Errorf("%s: found at %d:%d, all %v; want %+v", path, line, column, all, want)
		}
	}
}

func TestErrorsSayWhere(t *testing.T) {
	_, err := yamlfile.Parse("site.yaml", []byte("site: west\nmarkets: [\n"))
	if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "site.yaml:2:10: ") {
		t.Error(err)
	}
	f, err := yamlfile.Parse("empty.yaml", []byte("# nothing\n"))
	if err != nil || f.Root != nil || f.Documents != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	if err := f.Errorf(f.Root, "site: missing"); err == nil || !strings.Contains(err.Error(), "empty.yaml:1:1: site: missing") {
		t.Error(err)
	}
	var v struct{ Site string }
	f, err = yamlfile.Parse("site.yaml", []byte("site: west\nsight: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Misread(yamlfile.Strict([]byte("site: west\nsight: 1\n"), &v)); !strings.Contains(err.Error(), `site.yaml:2:1: unknown field "sight"`) {
		t.Error(err)
	}
}

// A document on which the YAML library panics must be refused with an error.
func TestPanicsAreErrors(t *testing.T) {
	var v struct {
		Stages []struct{ B string }
	}
	if err := yamlfile.Strict([]byte("stages: ! &a {b: {c}}"), &v); !errors.Is(err, yamlfile.ErrShape) {
		t.Error(err)
	}
}
