package job

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"pgregory.net/rapid"
)

func digestOf(c string) string { return strings.Repeat(c, 64) }

func withInputs(files ...File) *JobSpec {
	return &JobSpec{Budget: 1, Stages: []Stage{{Name: "a", Command: []string{"true"}, Inputs: files, Outputs: []string{"out/*.csv", `\*`}}}}
}

func TestFilesOfAJob(t *testing.T) {
	good := File{Name: "in/data.csv", Size: 5, Digest: digestOf("a")}
	if err := withInputs(good, File{Name: "in/other", Size: MaxFile, Digest: digestOf("0")}).Validate(); err != nil {
		t.Fatal(err)
	}
	large := func(n int) (files []File) {
		for i := range n {
			files = append(files, File{Name: strings.Repeat("x", i+1), Size: MaxFile, Digest: strings.Repeat(string(rune('a'+i)), 64)})
		}
		return files
	}
	for _, c := range []struct {
		say    string
		kind   messages.Kind
		change func(*JobSpec)
	}{
		{"stages[0].inputs[0].name: \"\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Name = "" }},
		{"stages[0].inputs[0].name: \"/etc/passwd\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Name = "/etc/passwd" }},
		{"stages[0].inputs[0].name: \"..\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Name = ".." }},
		{"stages[0].inputs[0].name: \"../a\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Name = "../a" }},
		{"stages[0].inputs[0].name: \"a/../../b\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Name = "a/../../b" }},
		{"stages[0].inputs[0].name: \"a//b\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Name = "a//b" }},
		{"stages[0].inputs[0].name: \".\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Name = "." }},
		{"stages[0].inputs[0].name: has a control", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Name = "a\nb" }},
		{"stages[0].inputs[0].digest: \"abc\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Digest = "abc" }},
		{"stages[0].inputs[0].digest: \"AAAA", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Digest = digestOf("A") }},
		{"stages[0].inputs[0].digest: \"....", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Digest = digestOf(".") }},
		{"stages[0].inputs[0].size: -1", messages.Invalid, func(s *JobSpec) { s.Stages[0].Inputs[0].Size = -1 }},
		{"stages[0].inputs[0]: \"in/data.csv\" has 67108865 bytes", messages.TooLarge, func(s *JobSpec) { s.Stages[0].Inputs[0].Size = MaxFile + 1 }},
		{"stages[0].inputs[1].name: \"in/data.csv\" is the name of stages[0].inputs[0] too", messages.Invalid,
			func(s *JobSpec) { s.Stages[0].Inputs = []File{good, good} }},
		{"stages[0].inputs[0].name: \"in/data.csv\" needs a directory with the name of the file stages[0].inputs[1]", messages.Invalid,
			func(s *JobSpec) {
				s.Stages[0].Inputs = append(s.Stages[0].Inputs, File{Name: "in", Digest: digestOf("b")})
			}},
		{"stages[0].inputs[4]: with this file", messages.TooLarge, func(s *JobSpec) { s.Stages[0].Inputs = large(5) }},
		{"stages[0].inputs: 257", messages.TooLarge, func(s *JobSpec) { s.Stages[0].Inputs = make([]File, 257) }},
		{"stages[0].outputs: 65", messages.TooLarge, func(s *JobSpec) { s.Stages[0].Outputs = make([]string, 65) }},
		{"stages[0].outputs[1]: \"../*\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Outputs[1] = "../*" }},
		{"stages[0].outputs[1]: \"*/../../x\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Outputs[1] = "*/../../x" }},
		{"stages[0].outputs[1]: \"/etc/*\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Outputs[1] = "/etc/*" }},
		{"stages[0].outputs[1]: \"[\"", messages.Invalid, func(s *JobSpec) { s.Stages[0].Outputs[1] = "[" }},
		{"stages[0].outputs[1]: \"a[b\" is no pattern", messages.Invalid, func(s *JobSpec) { s.Stages[0].Outputs[1] = "a[b" }},
		{"dir: \"/data\": tasks with inputs", messages.Invalid, func(s *JobSpec) { s.Dir = "/data" }},
		{"stages: their inputs have", messages.TooLarge, func(s *JobSpec) {
			s.Stages[0].Inputs = large(4)
			s.Stages = append(s.Stages, Stage{Name: "b", Command: []string{"true"}, Inputs: []File{{Name: "b", Size: 5, Digest: digestOf("9")}}})
		}},
	} {
		s := withInputs(good)
		c.change(s)
		err := s.Validate()
		if err == nil || messages.KindOf(err) != c.kind || !strings.HasPrefix(messages.Detail(err), c.say) {
			t.Errorf("want %v: %s…; got %v", c.kind, c.say, err)
		}
	}
}

func TestFileRequestsAreRefusedByField(t *testing.T) {
	piece := make([]byte, PieceSize)
	digest := digestOf("a")
	for say, r := range map[string]interface{ Validate() error }{
		"digest: ":                &PutRequest{Digest: "x"},
		"size: -1":                &PutRequest{Digest: digest, Size: -1},
		"size: 67108865":          &PutRequest{Digest: digest, Size: MaxFile + 1},
		"offset: 1 must":          &PutRequest{Digest: digest, Size: 10, Offset: 1},
		"offset: 524288 must":     &PutRequest{Digest: digest, Size: 10, Offset: PieceSize},
		"offset: -524288 must":    &PutRequest{Digest: digest, Size: 10, Offset: -PieceSize},
		"data: has 524288 bytes":  &PutRequest{Digest: digest, Size: 10, Data: piece},
		"data: has 5 bytes":       &PutRequest{Digest: digest, Size: 10, Data: piece[:5]},
		"digest: \"\"":            &GetRequest{},
		"offset: 3 must":          &GetRequest{Digest: digest, Offset: 3},
		"offset: 134217728 must":  &GetRequest{Digest: digest, Offset: 2 * MaxFile},
		"files: 1001":             &DeliverRequest{Files: make([]File, MaxOutputs+1)},
		"files[0].name: \"../a\"": &DeliverRequest{Files: []File{{Name: "../a", Digest: digest}}},
		"limit: 1001":             &OutputsRequest{Limit: 1001},
		"limit: -1":               &OutputsRequest{Limit: -1},
	} {
		if err := r.Validate(); err == nil || !strings.HasPrefix(messages.Detail(err), say) {
			t.Errorf("%+v: %v, want %s…", r, err, say)
		}
	}
	for _, r := range []interface{ Validate() error }{
		&PutRequest{Digest: digest}, &PutRequest{Digest: digest, Size: 10}, &PutRequest{Digest: digest, Size: 10, Data: piece[:10]},
		&PutRequest{Digest: digest, Size: PieceSize + 1, Offset: PieceSize, Data: piece[:1]},
		&GetRequest{Digest: digest, Offset: MaxFile}, &DeliverRequest{}, &OutputsRequest{Limit: 1000},
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// An accepted name must stay below the directory to which it is joined.
func TestFileNamesStayInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"", ".", "..", "a", "b c", "...", "/"}), 0, 6).Draw(t, "parts"), "/")
		inside := 0
		if CheckFileName("name", name) != nil {
			return
		}
		for part := range strings.SplitSeq(name, "/") {
			if inside++; part == ".." || part == "." || part == "" {
				inside = -1
			}
			if inside <= 0 {
				t.Fatalf("%q was accepted", name)
			}
		}
	})
}
