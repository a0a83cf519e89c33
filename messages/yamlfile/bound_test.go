package yamlfile_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/yamlfile"
)

// A hostile text of 20 kB may make Parse or Strict allocate at most 50 MB.
func TestSmallTextsTakeLittleMemory(t *testing.T) {
	laughs := "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
	}
	var indented strings.Builder
	for i := range 200 {
		fmt.Fprintf(&indented, "%sa:\n", strings.Repeat(" ", i))
	}
	for name, text := range map[string]string{
		"open lists":     strings.Repeat("[", 20_000),
		"lists":          strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
		"mappings":       strings.Repeat("{a: ", 4_000) + strings.Repeat("}", 4_000),
		"lists in block": strings.Repeat("- ", 10_000) + "1",
		"indented":       indented.String(),
		"documents":      strings.Repeat("---\n1\n", 3_000),
		"aliases":        laughs,
		"alias of self":  "a: &a {<<: *a, b: [*a, *a]}",
		"long keys":      strings.Repeat("{"+strings.Repeat("k", 150)+": ", 60) + strings.Repeat("[1],", 2_500) + strings.Repeat("}", 60),
	} {
		for how, read := range map[string]func() error{
			"Parse":  func() error { _, err := yamlfile.Parse("x", []byte(text)); return err },
			"Strict": func() error { return yamlfile.Strict([]byte(text), new(any)) },
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := read()
			runtime.ReadMemStats(&after)
			if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 50 || err == nil {
				t.Errorf("%s by %s: %d MiB, %.200v", name, how, mib, err)
			}
		}
	}
}

// Files as large as people may write must be within the limits of the reader.
func TestLargeFilesAreRead(t *testing.T) {
	var accounts strings.Builder
	accounts.WriteString("accounts:\n")
	for i := range 10_000 {
		fmt.Fprintf(&accounts, "  - {name: user%d, credits: 100}\n", i)
	}
	deep := strings.Repeat("[", 60) + strings.Repeat("]", 60)
	for name, text := range map[string]string{
		"accounts": accounts.String(),
		"script":   "script: |\n" + strings.Repeat("  echo hello\n", 20_000),
		"numbers":  "prior: [" + strings.Repeat("1,", 100_000) + "1]\n",
		"deep":     deep,
		"shared":   "a: &a {b: 1}\nc: [" + strings.Repeat("*a, ", 1_000) + "*a]\n",
	} {
		if _, err := yamlfile.Parse("x", []byte(text)); err != nil {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}
