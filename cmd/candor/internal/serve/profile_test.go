package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/job"
)

const withProfiles = `
site: west
profiles:
  - name: due
    class: hard
    bounds:
      - {parameter: max, low: 0, high: 100}
      - {parameter: deadline, low: 0, high: 3600}
    prior:
      - [10, 600]
  - name: steps
    class: custom
    parts: [1, 0]
    bandwidth: silverman_full
    bounds:
      - {parameter: max, low: 0, high: 100}
      - {parameter: at1, low: 0, high: 10}
      - {parameter: at2, low: 10, high: 20}
`

func loadText(t *testing.T, text string) ([]job.Profile, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := (&settings{file: file}).load()
	return c.Profiles, err
}

// An error in a profile must name the key that is wrong. If it is known, the error must also have the line and column
// in the file.
func TestProfilesAreRead(t *testing.T) {
	profiles, err := loadText(t, withProfiles)
	if err != nil || len(profiles) != 2 || profiles[0].Prior[0][1] != 600 || profiles[1].Parts[0] != 1 || profiles[1].Bounds[2].High != 20 {
		t.Fatalf("%+v, %v", profiles, err)
	}
	for _, tc := range [][3]string{
		{"class: hard", "class: soft", "site.yaml:5:12: profiles[0].class: \"soft\""},
		{"high: 100}\n      - {parameter: deadline, low: 0, high: 3600}", "high: 100}\n      - {parameter: deadline, low: 7200, high: 3600}", "site.yaml:8:9: profiles[0].bounds[1]: 7200 to 3600 is reversed"},
		{"name: steps", "market: mian\n    name: steps", "profiles[1].market: there is no market \"mian\"; did you mean \"main\"?"},
		{"name: steps", "name: due", "profiles[1].name: \"due\" is listed twice"},
		{"[10, 600]", "[10, 9999]", "profiles[0].prior[0]: deadline: must be from 0 to 3600"},
		{"[10, 600]", "[10, soon]", "profiles[0].prior[0][1]: must be a number"},
		{"parts: [1, 0]", "parts: [1, 2]", "profiles[1].parts[1]: must be from 0 to 1"},
		{"silverman_full", "best", "profiles[1].bandwidth: \"best\" is not one of scott_full"},
		{"    parts:", "    part:", "profiles[1].part: there is no such key; did you mean \"parts\"?"},
		{"low: 10, high: 20", "low: .nan, high: 20", "profiles[1].bounds[2].low: must be from 0"},
	} {
		text := strings.Replace(withProfiles, tc[0], tc[1], 1)
		if _, err := loadText(t, text); text == withProfiles || err == nil || !strings.Contains(err.Error(), tc[2]) {
			t.Errorf("%s: %v, want %s", tc[1], err, tc[2])
		}
	}
}
