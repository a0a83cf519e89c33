package job_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"
)

func goodSpec() *job.JobSpec {
	return &job.JobSpec{
		Name: "word count", Project: "physics", Market: "main", Budget: 5 * messages.Credit, Dir: "/data",
		Utility: &job.Utility{Form: job.Log, Weights: job.Weights{{"map", 3}, {"reduce", 0}}, Minimum: 0.5},
		Env:     job.Env{{"A", "x=1"}, {"_B2", ""}},
		Stages: []job.Stage{
			{Name: "reduce", Class: "reduce", After: []messages.Name{"map"}, Script: "#!/bin/sh\n\n# sum\nsort | uniq -c\n", TimeLimit: 1e9, Attempts: 5},
			{Name: "map", Class: "map", Command: []string{"awk", "{print $1}"}, Tasks: 4, Array: job.Array{{0, 6, 2}}, MaxRunning: 2},
		},
	}
}

func TestGoodJobIsAccepted(t *testing.T) {
	s := goodSpec()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if n := s.TaskCount(); n != 5 {
		t.Errorf("%d tasks, want 5", n)
	}
	if err := (&job.JobSpec{Budget: 1, Stages: []job.Stage{{Name: "a", Command: []string{"true"}}}}).Validate(); err != nil {
		t.Errorf("the least job: %v", err)
	}
}

func TestBadJobsAreRefusedByField(t *testing.T) {
	many := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("v%d", i))
		}
		return list
	}
	for _, c := range []struct {
		say    string // expected beginning of the error message
		kind   messages.Kind
		change func(*job.JobSpec)
	}{
		{"name: has a control", messages.Invalid, func(s *job.JobSpec) { s.Name = "a\x1b[2J" }},
		{"name: has a NUL", messages.Invalid, func(s *job.JobSpec) { s.Name = "a\x00" }},
		{"name: is not valid UTF-8", messages.Invalid, func(s *job.JobSpec) { s.Name = "\xff" }},
		{"name: 4097 bytes", messages.TooLarge, func(s *job.JobSpec) { s.Name = strings.Repeat("a", 4097) }},
		{"project: \"$site\"", messages.Invalid, func(s *job.JobSpec) { s.Project = "$site" }},
		{"market: \"a b\"", messages.Invalid, func(s *job.JobSpec) { s.Market = "a b" }},
		{"budget: 0", messages.Invalid, func(s *job.JobSpec) { s.Budget = 0 }},
		{"budget: -1", messages.Invalid, func(s *job.JobSpec) { s.Budget = -messages.Credit }},
		{"budget: 1000000000000.000001", messages.TooLarge, func(s *job.JobSpec) { s.Budget = messages.MaxCredits + 1 }},
		{"utility.form: \"square\"", messages.Invalid, func(s *job.JobSpec) { s.Utility.Form = "square" }},
		{"utility.minimum: NaN", messages.Invalid, func(s *job.JobSpec) { s.Utility.Minimum = math.NaN() }},
		{"utility.minimum: -1", messages.Invalid, func(s *job.JobSpec) { s.Utility.Minimum = -1 }},
		{"utility.minimum: +Inf", messages.Invalid, func(s *job.JobSpec) { s.Utility.Minimum = math.Inf(1) }},
		{"utility.weights: no class", messages.Invalid, func(s *job.JobSpec) { s.Utility.Weights = nil }},
		{"utility.weights: no class", messages.Invalid, func(s *job.JobSpec) { s.Utility.Weights[0].Weight = 0 }},
		{"utility.weights.map: NaN", messages.Invalid, func(s *job.JobSpec) { s.Utility.Weights[0].Weight = math.NaN() }},
		{"utility.weights.map: -3", messages.Invalid, func(s *job.JobSpec) { s.Utility.Weights[0].Weight = -3 }},
		{"utility.weights.map: +Inf", messages.Invalid, func(s *job.JobSpec) { s.Utility.Weights[0].Weight = math.Inf(1) }},
		{"utility.weights: weight \"map\": is given twice", messages.Invalid, func(s *job.JobSpec) { s.Utility.Weights[1].Class = "map" }},
		{"utility.weights: weight \"a\": comes after", messages.Invalid, func(s *job.JobSpec) { s.Utility.Weights[1].Class = "a" }},
		{"utility.weights: \"M p\"", messages.Invalid, func(s *job.JobSpec) { s.Utility.Weights[0].Class = "M p" }},
		{"utility.weights: 65", messages.TooLarge, func(s *job.JobSpec) { s.Utility.Weights = make(job.Weights, 65) }},
		{"env: variable \"1A\"", messages.Invalid, func(s *job.JobSpec) { s.Env[0].Name = "1A" }},
		{"env: variable \"A=\"", messages.Invalid, func(s *job.JobSpec) { s.Env[0].Name = "A=" }},
		{"env: variable \"\"", messages.Invalid, func(s *job.JobSpec) { s.Env[0].Name = "" }},
		{"env: variable \"A\": is given twice", messages.Invalid, func(s *job.JobSpec) { s.Env[1].Name = "A" }},
		{"env.A: has a NUL", messages.Invalid, func(s *job.JobSpec) { s.Env[0].Value = "\x00" }},
		{"env: 4097 variables", messages.TooLarge, func(s *job.JobSpec) { s.Env = make(job.Env, 4097) }},
		{"env.A: 131070 bytes", messages.TooLarge, func(s *job.JobSpec) { s.Env[0].Value = strings.Repeat("x", job.MaxVariable) }},
		{"env: variable \"BASH_FUNC_%%\"", messages.Invalid, func(s *job.JobSpec) { s.Env[0].Name = "BASH_FUNC_%%" }},
		{"umask: \"22\" must be three octal digits", messages.Invalid, func(s *job.JobSpec) { s.Umask = "22" }},
		{"umask: \"089\" must be three octal digits", messages.Invalid, func(s *job.JobSpec) { s.Umask = "089" }},
		{"dir: \"data\"", messages.Invalid, func(s *job.JobSpec) { s.Dir = "data" }},
		{"dir: \"/proc/self/cwd\"", messages.Invalid, func(s *job.JobSpec) { s.Dir = "/proc/self/cwd" }},
		{"dir: \"/tmp/../proc/1\"", messages.Invalid, func(s *job.JobSpec) { s.Dir = "/tmp/../proc/1" }},
		{"stages: are missing", messages.Invalid, func(s *job.JobSpec) { s.Stages = nil }},
		{"stages: 65", messages.TooLarge, func(s *job.JobSpec) { s.Stages = make([]job.Stage, 65) }},
		{"stages[1].name: \"\"", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].Name = "" }},
		{"stages[1].name: \"reduce\" is the name of stages[0]", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].Name = "reduce" }},
		{"stages[0].class: \"a b\"", messages.Invalid, func(s *job.JobSpec) { s.Stages[0].Class = "a b" }},
		{"stages[1].tasks: -1", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].Tasks = -1 }},
		{"stages[1].tasks: 10000000 is above", messages.TooLarge, func(s *job.JobSpec) { s.Stages[1].Tasks = 10_000_000 }},
		{"stages[1].tasks: the job has more", messages.TooLarge, func(s *job.JobSpec) { s.Stages[0].Tasks = job.MaxTasks - 3 }},
		{"stages[1].tasks: 3, but the array has 4", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].Tasks = 3 }},
		{"stages[1].array[0]: step 0", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].Array[0].Step = 0 }},
		{"stages[1].array[0]: 7 to 6", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].Array[0].First = 7 }},
		{"stages[1].array[0]: -1 to 6", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].Array[0].First = -1 }},
		{"stages[1].array[1]: begins at 6", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].Array = job.Array{{0, 7, 2}, {6, 8, 1}} }},
		{"stages[1].array: 9223372036854775807 indices", messages.TooLarge, func(s *job.JobSpec) { s.Stages[1].Array = job.Array{{0, math.MaxInt64, 1}} }},
		{"stages[1].array: 4097 ranges", messages.TooLarge, func(s *job.JobSpec) { s.Stages[1].Array = make(job.Array, 4097) }},
		{"stages[0]: has nothing to run", messages.Invalid, func(s *job.JobSpec) { s.Stages[0].Script = "" }},
		{"stages[0]: has both", messages.Invalid, func(s *job.JobSpec) { s.Stages[0].Command = []string{"x"} }},
		{"stages[0].script: has only comments", messages.Invalid, func(s *job.JobSpec) { s.Stages[0].Script = "#!/bin/sh\n  \n\t# echo\n#CANDOR --tasks 3" }},
		{"stages[0].script: has a NUL", messages.Invalid, func(s *job.JobSpec) { s.Stages[0].Script = "echo \x00" }},
		{"stages[0].script: 262145 bytes", messages.TooLarge, func(s *job.JobSpec) { s.Stages[0].Script = strings.Repeat("x", job.MaxScript+1) }},
		{"stages[1].command: 1025 arguments", messages.TooLarge, func(s *job.JobSpec) { s.Stages[1].Command = many(1025) }},
		{"stages[1].command[0]: is empty", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].Command[0] = " " }},
		{"stages[1].command[1]: has a NUL", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].Command[1] = "a\x00b" }},
		{"stages[1].command[1]: ", messages.TooLarge, func(s *job.JobSpec) { s.Stages[1].Command[1] = strings.Repeat("x", job.MaxScript) }},
		{"stages[0].time_limit: -1ns", messages.Invalid, func(s *job.JobSpec) { s.Stages[0].TimeLimit = -1 }},
		{"stages[0].attempts: -1", messages.Invalid, func(s *job.JobSpec) { s.Stages[0].Attempts = -1 }},
		{"stages[0].attempts: 101", messages.TooLarge, func(s *job.JobSpec) { s.Stages[0].Attempts = 101 }},
		{"stages[1].max_running: -1", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].MaxRunning = -1 }},
		{"stages[0].env: variable \"a b\"", messages.Invalid, func(s *job.JobSpec) { s.Stages[0].Env = job.Env{{"a b", ""}} }},
		{"stages[0].after[0]: there is no stage \"mpa\"", messages.Invalid, func(s *job.JobSpec) { s.Stages[0].After[0] = "mpa" }},
		{"stages[0].after[1]: \"map\" is given twice", messages.Invalid, func(s *job.JobSpec) { s.Stages[0].After = many(0); s.Stages[0].After = []messages.Name{"map", "map"} }},
		{"stages[0].after: stages wait for each other: reduce after map after reduce", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].After = []messages.Name{"reduce"} }},
		{"stages[1].after: stages wait for each other: map after map", messages.Invalid, func(s *job.JobSpec) { s.Stages[1].After = []messages.Name{"map"} }},
	} {
		s := goodSpec()
		c.change(s)
		err := s.Validate()
		if err == nil || messages.KindOf(err) != c.kind || !strings.HasPrefix(messages.Detail(err), c.say) {
			t.Errorf("want %v: %s…; got %v", c.kind, c.say, err)
		}
	}
}

// TestFreeNames checks that markets, classes and projects may have names that people know from other systems. Users,
// stages and sites may not, because their names are in subjects, where '.' separates tokens.
func TestFreeNames(t *testing.T) {
	for name, free := range map[string]bool{
		"CPUQ": true, "gpu.q": true, "2080ti": true, "Proj_1-a": true, "a": true, strings.Repeat("x", 63): true,
		"": false, ".q": false, "-q": false, "_q": false, "a b": false, "a/b": false, "a*": false, "a=b": false, "ü": false, strings.Repeat("x", 64): false,
	} {
		if messages.ValidFreeName(name) != free {
			t.Errorf("%q: is %v, want %v", name, !free, free)
		}
		if messages.ValidName(name) && !free {
			t.Errorf("%q is a name, but no free name", name)
		}
	}
	// The vectors of each market must have a subject of their own. The market's name must be a single token of this
	// subject, so that the pattern "vectors.*" matches the subject.
	seen := map[string]string{}
	for _, name := range []string{"gpu.q", "gpu_q", "gpu-q", "GPU.q", "gpuq", "g.puq"} {
		subject := messages.VectorSubject("west", name)
		if other := seen[subject]; other != "" || strings.Count(subject, ".") != strings.Count(messages.VectorSubject("west", "*"), ".") {
			t.Errorf("%q has the subject %q, as has %q", name, subject, other)
		}
		seen[subject] = name
	}
}

func TestSubmitNeedsKey(t *testing.T) {
	for key, want := range map[string]string{"": "key: is empty", "a\n": "key: has a control", strings.Repeat("k", 129): "key: 129 bytes", "fine": "<nil>"} {
		r := job.SubmitRequest{Key: key, Spec: *goodSpec()}
		if got := fmt.Sprint(r.Validate()); !strings.HasPrefix(got, want) {
			t.Errorf("key %q: %s", messages.Clipped(key), got)
		}
	}
}

// Each stage may wait for other stages. If the stages cannot be ordered so that each stage comes after the stages that
// it waits for, the job must be refused for a cycle. In no other case may it be refused for a cycle.
func TestCycleIsFoundIffNoOrderExists(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(rt, "stages")
		s := &job.JobSpec{Budget: 1}
		for i := range n {
			s.Stages = append(s.Stages, job.Stage{Name: fmt.Sprintf("s%d", i), Command: []string{"true"}})
			for j := range n {
				if rapid.IntRange(0, 4).Draw(rt, "edge") == 0 {
					s.Stages[i].After = append(s.Stages[i].After, fmt.Sprintf("s%d", j))
				}
			}
		}
		done := map[messages.Name]bool{} // run every stage that can run, until none can
		for progress := true; progress; {
			progress = false
			for _, st := range s.Stages {
				ready := !slices.ContainsFunc(st.After, func(a messages.Name) bool { return !done[a] })
				if ready && !done[st.Name] {
					done[st.Name], progress = true, true
				}
			}
		}
		if err := s.Validate(); (err == nil) != (len(done) == n) {
			rt.Fatalf("%d of %d stages can run, but: %v", len(done), n, err)
		}
	})
}

func TestMarketValidate(t *testing.T) {
	half, over, nan := 0.5, 1.5, math.NaN()
	good := market.Market{Name: "main", Mechanism: "proportional", Classes: []messages.Name{"cpu", "gpu"}, Alpha: &half}
	for want, change := range map[string]func(*market.Market){
		"<nil>":                      func(*market.Market) {},
		"name: \"\"":                 func(m *market.Market) { m.Name = "" },
		"mechanism: \"Highest\"":     func(m *market.Market) { m.Mechanism = "Highest" },
		"classes: are missing":       func(m *market.Market) { m.Classes = nil },
		"classes: 65":                func(m *market.Market) { m.Classes = make([]messages.Name, 65) },
		"classes[1]: \"cpu\" is giv": func(m *market.Market) { m.Classes = []messages.Name{"cpu", "cpu"} },
		"classes[0]: \".\" is no":    func(m *market.Market) { m.Classes = []messages.Name{"."} },
		"time_limit: -1ns":           func(m *market.Market) { m.TimeLimit = -1 },
		"alpha: 1.5":                 func(m *market.Market) { m.Alpha = &over },
		"alpha: NaN":                 func(m *market.Market) { m.Alpha = &nan },
	} {
		m := good
		change(&m)
		if got := fmt.Sprint(m.Validate()); !strings.HasPrefix(got, want) {
			t.Errorf("want %s…; got %s", want, got)
		}
	}
}

func TestParseArray(t *testing.T) {
	for text, want := range map[string]struct {
		indices []int64
		running int
	}{
		"0-3":       {[]int64{0, 1, 2, 3}, 0},
		"1,3,5":     {[]int64{1, 3, 5}, 0},
		"5,1,3%2":   {[]int64{1, 3, 5}, 2},
		"0-15:4":    {[]int64{0, 4, 8, 12}, 0},
		"0-15:4,13": {[]int64{0, 4, 8, 12, 13}, 0},
		"7":         {[]int64{7}, 0},
		"[1-3]%2":   {[]int64{1, 2, 3}, 2},
		"1,1,2":     {[]int64{1, 2}, 0},
		"2-5,1-3%2": {[]int64{1, 2, 3, 4, 5}, 2},
		"1-7:2,3,4": {[]int64{1, 3, 4, 5, 7}, 0},
		"9223372036854775806-9223372036854775807%1": {[]int64{math.MaxInt64 - 1, math.MaxInt64}, 1},
	} {
		a, running, err := job.ParseArray(text)
		var got []int64
		for i := range a.Count() {
			got = append(got, a.At(i))
		}
		if err != nil || !slices.Equal(got, want.indices) || running != want.running {
			t.Errorf("%s: got %v, %d, %v", text, got, running, err)
		}
		if after, before := a.At(a.Count()), a.At(-1); after != -1 || before != -1 {
			t.Errorf("%s: got %d after the end, %d before the start", text, after, before)
		}
	}
	for text, kind := range map[string]messages.Kind{
		"": messages.Invalid, ",": messages.Invalid, "1,": messages.Invalid, "a": messages.Invalid, "-1": messages.Invalid, "3-1": messages.Invalid, "1-": messages.Invalid, "1-2-3": messages.Invalid,
		"1:2": messages.Invalid, "1-4:0": messages.Invalid, "1-4:-1": messages.Invalid, "1-4:": messages.Invalid, "1%": messages.Invalid, "1%0": messages.Invalid, "1%-1": messages.Invalid, "1%x": messages.Invalid,
		"+1": messages.Invalid, " 1": messages.Invalid, "1%99999999999": messages.Invalid, "9223372036854775808": messages.Invalid,
		"0-9223372036854775807": messages.TooLarge, "0-1000000": messages.TooLarge, strings.Repeat("1,", 40000): messages.TooLarge, sparse(5000): messages.TooLarge,
	} {
		a, _, err := job.ParseArray(text)
		if err == nil || messages.KindOf(err) != kind || a != nil {
			t.Errorf("%s: got %v, %v", messages.Clipped(text), a, err)
		}
	}
	if _, _, err := job.ParseArray("1,5-3"); !strings.Contains(fmt.Sprint(err), `"5-3" goes down: write the smaller index first, 3-5`) {
		t.Errorf("got %v", err)
	}
	if _, _, err := job.ParseArray("1-4:x"); !strings.Contains(fmt.Sprint(err), `array "1-4:x": "1-4:x" is neither`) {
		t.Errorf("got %v", err)
	}
}

func sparse(n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprint(2*i))
	}
	return strings.Join(parts, ",")
}

func TestTaskCounts(t *testing.T) {
	huge := job.Stage{Array: job.Array{{0, math.MaxInt64, 1}, {0, math.MaxInt64, 1}}}
	for want, s := range map[int]job.Stage{1: {}, 7: {Tasks: 7}, 3: {Array: job.Array{{2, 6, 2}}}, math.MaxInt: huge} {
		if got := s.TaskCount(); got != want {
			t.Errorf("%+v: %d", s, got)
		}
	}
	if n := (&job.JobSpec{Stages: []job.Stage{huge, {}}}).TaskCount(); n != math.MaxInt {
		t.Errorf("%d", n)
	}
	if (job.Array)(nil).At(5) != 5 || (job.Array)(nil).Count() != 0 {
		t.Error("an empty array is not the identity")
	}
}

func TestYAMLJob(t *testing.T) {
	const text = `
name: word count
budget: 12.5
market: main
utility:
  weights: {reduce: 1, map: 2.5}
env:
  N: 4
  DEBUG: true
  A: "x y"
stages:
  - name: map
    class: map
    array: [{first: 0, last: 7, step: 1}]
    command: [awk, "{print}"]
    time_limit: 1h30m
  - name: reduce
    after: [map]
    script: |
      sort
`
	want := job.JobSpec{Name: "word count", Budget: 12_500_000, Market: "main",
		Utility: &job.Utility{Weights: job.Weights{{"map", 2.5}, {"reduce", 1}}},
		Env:     job.Env{{"A", "x y"}, {"DEBUG", "true"}, {"N", "4"}},
		Stages: []job.Stage{
			{Name: "map", Class: "map", Array: job.Array{{0, 7, 1}}, Command: []string{"awk", "{print}"}, TimeLimit: messages.Duration(90 * 60 * 1e9)},
			{Name: "reduce", After: []messages.Name{"map"}, Script: "sort\n"},
		}}
	var got job.JobSpec
	if err := yaml.UnmarshalWithOptions([]byte(text), &got, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	back, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again job.JobSpec
	if err := yaml.UnmarshalWithOptions(back, &again, yaml.Strict()); err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("%v from\n%s", err, back)
	}
	type times struct{ T, Z messages.Time }
	if back, err = yaml.Marshal(times{T: 1_700_000_000_000_001}); err != nil {
		t.Fatal(err)
	}
	var at times
	if err := yaml.Unmarshal(back, &at); err != nil || at.T != 1_700_000_000_000_001 || at.Z != 0 {
		t.Errorf("%+v, %v from\n%s", at, err, back)
	}
	for _, bad := range []string{"env: {A: 1, A: 2}", "utility: {weights: {a: 1, a: 2}}", "utility: {weights: {a: x}}", "env: [A]", "bugdet: 1"} {
		if err := yaml.UnmarshalWithOptions([]byte(bad), new(job.JobSpec), yaml.Strict()); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
}

func TestObjectsInJSON(t *testing.T) {
	var s job.JobSpec
	if err := wire.Unmarshal([]byte(`{"env":{"B":"2","A":"1"},"utility":{"weights":{"z":1,"a":0.5}}}`), wire.JSON, &s); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s.Env, job.Env{{"A", "1"}, {"B", "2"}}) || !reflect.DeepEqual(s.Utility.Weights, job.Weights{{"a", 0.5}, {"z", 1}}) {
		t.Errorf("got %+v %+v", s.Env, s.Utility)
	}
	if s.Utility.Weights.Of("z") != 1 || s.Utility.Weights.Of("y") != 0 {
		t.Error("Of does not find weights")
	}
	for text, say := range map[string]string{
		`{"env":{"A":"1","A":"2"}}`:             `env: variable "A": is given twice`,
		`{"env":{"A":1}}`:                       `env: variable "A": must be a string`,
		`{"env":["A"]}`:                         `env: is a list, must be an object`,
		`{"env":"A"}`:                           `env: is a string, must be an object`,
		`{"utility":{"weights":{"a":"1"}}}`:     `utility.weights: weight of "a": must be a number`,
		`{"utility":{"weights":{"a":1,"a":1}}}`: `utility.weights: weight "a": is given twice`,
	} {
		if err := wire.Unmarshal([]byte(text), wire.JSON, &s); messages.KindOf(err) != messages.Invalid || !strings.HasPrefix(messages.Detail(err), say) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestOverlaid(t *testing.T) {
	of, stage := job.Env{{"A", "1"}, {"C", "1"}, {"D", "1"}}, job.Env{{"B", "2"}, {"C", "2"}, {"E", "2"}}
	if got := of.Overlaid(stage); !reflect.DeepEqual(got, job.Env{{"A", "1"}, {"B", "2"}, {"C", "2"}, {"D", "1"}, {"E", "2"}}) {
		t.Errorf("got %v", got)
	}
	if got := job.Env(nil).Overlaid(nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// A job has many parts, each with a limit. A job must also be refused if it is too large as a whole.
func TestJobsAreBoundedInAll(t *testing.T) {
	stage := func(i int) job.Stage {
		return job.Stage{Name: fmt.Sprintf("s%d", i), Script: "true\n" + strings.Repeat("#", job.MaxScript-5)}
	}
	files := stage(0)
	files.Script = "true"
	for i := range job.MaxInputs {
		files.Inputs = append(files.Inputs, job.File{Name: fmt.Sprintf("%d-%s", i, strings.Repeat("n", 900)), Digest: strings.Repeat("a", 64)})
	}
	for what, c := range map[string]struct {
		spec job.JobSpec
		want string
	}{
		"scripts": {job.JobSpec{Budget: 1, Stages: []job.Stage{stage(0), stage(1), stage(2), stage(3)}},
			"env: the environment, scripts and commands of the job have 1048576 bytes in all, more than the limit of 786432"},
		"files": {job.JobSpec{Budget: 1, Stages: []job.Stage{files, files, files, files}}, "bytes in all, more than the limit of 983040"},
	} {
		for i := range c.spec.Stages {
			c.spec.Stages[i].Name = fmt.Sprintf("s%d", i)
		}
		if err := c.spec.Validate(); messages.KindOf(err) != messages.TooLarge || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
		c.spec.Stages = c.spec.Stages[:2]
		if err := c.spec.Validate(); err != nil {
			t.Errorf("%s, half of it: %v", what, err)
		}
	}
}
