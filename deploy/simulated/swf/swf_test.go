package swf

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"reflect"
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
		if len(log.Jobs) != 2 || first.Submit != 0 || first.Run != 60 || first.User != 7 || first.Width() != 4 {
			t.Errorf("%s: read %+v", name, first)
		}
		if second.Run != -1 || second.Width() != 8 {
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
		"17 fields":    {line + strings.TrimSuffix(line, " -1\n"), "line 2: the line has 17 fields"},
		"19 fields":    {strings.TrimSuffix(line, "\n") + " -1\n", "line 1: the line has 19 fields"},
		"a word":       {strings.Replace(line, "60", "soon", 1), `line 1: field 4 is not a number: "soon"`},
		"a fraction":   {strings.Replace(line, "60", "6.5", 1), "line 1: field 4 is not a whole number of 64 bits: \"6.5\""},
		"far too much": {strings.Replace(line, "60", "1e300", 1), "line 1: field 4 is not a whole number"},
		"binary":       {"\x00\x01\x02\xff\n", "line 1: field 1"},
		"cut":          {line + "2 10 5", "line 2: the line has 3 fields"},
		"endless line": {strings.Repeat("1 ", maxLine), "after line 0"},
		"UTF-16":       {"\xff\xfe1\x00 \x002\x00", "line 1: the log is text in UTF-16"},
		"UTF-16 bare":  {"\x00;\x00 \x00a", "line 1: the log is text in UTF-16"},
		"old Mac":      {strings.ReplaceAll(sample, "\n", "\r"), "line 1: the line has a carriage return in its middle"},
		"NaN":          {"1 0 5 60 4 NaN -1 4 100 -1 1 7 3 -1 1 -1 -1 -1\n", "line 1: field 6 is not a number"},
		"NUL bytes":    {"1 0 5 60 4 59 -1 4 100 -1 1 7 3 -1 1 -1 -1 -1\n\x00\x00\n", "line 2: field 1 is not a number"},
		"twice":        {twice.String(), "gzipped twice"},
		"broken gzip":  {"\x1f\x8b\x00", "not a valid gzip file"},
	} {
		if _, err := Read(strings.NewReader(c.log)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q", name, err, c.want)
		}
	}
}

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

// Good lines must be read. Lines with errors must be skipped and counted.
func TestSkippingCounts(t *testing.T) {
	line := "1 0 5 60 4 59 -1 4 100 -1 1 7 3 -1 1 -1 -1 -1\n"
	log, err := ReadSkipping(strings.NewReader("; head\n" + line + "1 2 3\n" + line + "x" + line))
	if err != nil || len(log.Jobs) != 2 || log.Jobs[1].Line != 4 || log.Bad.Lines != 2 || log.Bad.Cut || !strings.Contains(log.Bad.First.Error(), "line 3: the line has 3 fields") {
		t.Errorf("%v: %+v", err, log)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for i := range 2000 { // even the compressed log must be larger than the reader's buffer
		fmt.Fprintf(z, "%d %d 5 %d 4 59 -1 4 100 -1 1 7 3 -1 1 -1 -1 -1\n", i, i*i, i*7919%1000)
	}
	_ = z.Close()
	piece := packed.Bytes()[:packed.Len()/2]
	if _, err := Read(bytes.NewReader(piece)); err == nil || !strings.Contains(err.Error(), "the file is cut") {
		t.Errorf("a cut file: %v", err)
	}
	if log, err = ReadSkipping(bytes.NewReader(piece)); err != nil || !log.Bad.Cut || len(log.Jobs) == 0 || len(log.Jobs) >= 2000 {
		t.Errorf("%v: %+v", err, log)
	}
	if _, err := ReadSkipping(strings.NewReader("1 2\n")); err == nil || !strings.Contains(err.Error(), "no jobs in its 1 line; line 1: the line has 2 fields") {
		t.Errorf("%v", err)
	}
}

// A UTF-8 byte order mark and carriage returns in a log must not change what Read returns.
func TestMarksAndLineEndsDoNotMatter(t *testing.T) {
	want, err := Read(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"\xef\xbb\xbf" + sample, strings.ReplaceAll(sample, "\n", "\r\n")} {
		if got, err := Read(strings.NewReader(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %+v, want %+v", err, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	log := &Log{Header: []string{"MaxProcs: 1664 (72, 1368, 224)", "MaxNodes: none", "Huge: 99999999999999999999"}}
	if n, ok := log.Number("MaxProcs"); !ok || n != 1664 {
		t.Errorf("%d, %v", n, ok)
	}
	for _, key := range []string{"MaxNodes", "Missing", "Huge"} {
		if _, ok := log.Number(key); ok {
			t.Errorf("%s has a number", key)
		}
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

type endless struct {
	text       string
	read, most int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.read >= e.most {
		return 0, io.EOF
	}
	n := copy(p, e.text[e.read%int64(len(e.text)):])
	e.read += int64(n)
	return n, nil
}

// A compressed log of a few hundred kilobytes that grows to hundreds of megabytes must be refused before it is read,
// whatever its lines are.
func TestWhatAGzippedLogBecomesIsBounded(t *testing.T) {
	for name, line := range map[string]string{
		"jobs":    "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n",
		"headers": ";\n",
		"empty":   "\n",
	} {
		for how, read := range map[string]func(io.Reader) (*Log, error){"Read": Read, "ReadSkipping": ReadSkipping} {
			unpacked := &endless{text: line, most: 1 << 30}
			r, w := io.Pipe()
			go func() {
				z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
				_, err := io.Copy(z, unpacked)
				_ = w.CloseWithError(errors.Join(err, z.Close()))
			}()
			_, err := read(r)
			_ = r.Close()
			if err == nil || unpacked.read > 64<<20 || name != "headers" && !errors.Is(err, errUnpacked) {
				t.Errorf("%s by %s: %d MiB were read: %v", name, how, unpacked.read>>20, err)
			}
		}
	}
}
