package swf

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/examples"
)

const sample = `; Version: 2
;   MaxProcs: 1664 (72, 1368, 224)

    1      0   5  60  4  59.50  -1  4  100  -1  1  7  3  -1  1  -1  -1  -1
2 10 -1 -1 -1 -1 -1 8 -1 -1 0 -1 -1 -1 -1 -1 -1 -1
`

func TestRead(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, sample)
	_ = z.Close()
	for name, r := range map[string]io.Reader{"plain": strings.NewReader(sample), "gzipped": &packed} {
		log, err := Read(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v, ok := log.Value("MaxProcs"); !ok || v != "1664 (72, 1368, 224)" {
			t.Errorf("%s: MaxProcs is %q", name, v)
		}
		first, second := log.Jobs[0], log.Jobs[1]
		if len(log.Jobs) != 2 || first.Submit != 0 || first.Run != 60 || first.CPU != 59.5 || first.User != 7 || first.Width() != 4 {
			t.Errorf("%s: read %+v", name, first)
		}
		if second.Run != -1 || second.Width() != 8 || second.ThinkTime != -1 {
			t.Errorf("%s: read %+v", name, second)
		}
	}
}

func TestBadLogsAreNamedByLine(t *testing.T) {
	line := "1 0 5 60 4 59 -1 4 100 -1 1 7 3 -1 1 -1 -1 -1\n"
	var twice bytes.Buffer
	outer := gzip.NewWriter(&twice)
	inner := gzip.NewWriter(outer)
	_, _ = io.WriteString(inner, sample)
	_, _ = inner.Close(), outer.Close()
	for name, c := range map[string]struct{ log, want string }{
		"empty":        {"", "no jobs"},
		"header alone": {"; Version: 2\n", "no jobs"},
		"17 fields":    {line + strings.TrimSuffix(line, " -1\n"), "line 2: has 17 fields"},
		"19 fields":    {strings.TrimSuffix(line, "\n") + " -1\n", "line 1: has 19 fields"},
		"a word":       {strings.Replace(line, "60", "soon", 1), `line 1: field 4 is not a number: "soon"`},
		"a fraction":   {strings.Replace(line, "60", "6.5", 1), "line 1: field 4"},
		"binary":       {"\x00\x01\x02\xff\n", "line 1: field 1"},
		"cut":          {line + "2 10 5", "line 2: has 3 fields"},
		"endless line": {strings.Repeat("1 ", maxLine), "after line 0"},
		"twice":        {twice.String(), "gzipped twice"},
		"broken gzip":  {"\x1f\x8b\x00", "not sound gzip"},
	} {
		if _, err := Read(strings.NewReader(c.log)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q", name, err, c.want)
		}
	}
}

// TestRealLog reads the excerpt that the example analyses.
func TestRealLog(t *testing.T) {
	f, err := examples.TraceAnalysis().Open("sdsc-sp2-1999.swf.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Jobs) != 30_766 {
		t.Fatalf("read %d jobs", len(log.Jobs))
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sample))
	f.Fuzz(func(t *testing.T, data []byte) {
		if log, err := Read(bytes.NewReader(data)); err == nil && len(log.Jobs) == 0 {
			t.Fatal("a log without jobs was read")
		}
	})
}
