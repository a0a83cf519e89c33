package identity

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test and every metric in ATTACKS.md must exist.
func TestListOfAttacksIsTrue(t *testing.T) {
	text, err := os.ReadFile("ATTACKS.md")
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+)`|`(candor_[a-z_]+)").FindAllStringSubmatch(string(text), -1) {
		if name[1] != "" {
			wanted["func "+name[1]+"("] = true
		} else {
			wanted[`"`+name[2]+`"`] = true
		}
	}
	if len(wanted) < 20 {
		t.Fatalf("only %d names were found: the test looks for the wrong thing", len(wanted))
	}
	if err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		source, err := os.ReadFile(path)
		for want := range wanted {
			if strings.Contains(string(source), want) {
				delete(wanted, want)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for missing := range wanted {
		t.Errorf("there is no %s", missing)
	}
}
