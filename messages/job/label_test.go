package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/wire"
)

func TestLabels(t *testing.T) {
	var l Labels
	for _, name := range []string{"run", "a.b", "run"} {
		l = l.Set(name, "7")
	}
	if l.String() != "a.b=7,run=7" || l.validate("labels") != nil {
		t.Errorf("%v: %v", l, l.validate("labels"))
	}
	if _, has := l.Get("b"); has {
		t.Error("b is none of them")
	}
	var many Labels
	for i := range MaxLabels + 1 {
		many = many.Set(fmt.Sprint("l", i), "")
	}
	for want, bad := range map[string]Labels{
		"labels: 17 is above":        many,
		`"" is not the name`:         {{"", "7"}},
		`"-a" is not the name`:       {{"-a", "7"}},
		`a: "é" is not the value`:    {{"a", "é"}},
		`a: "x\ny" is not the value`: {{"a", "x\ny"}},
		"comes after":                {{"b", ""}, {"a", ""}},
		"given twice":                {{"a", ""}, {"a", ""}},
		"is not the value":           {{"a", strings.Repeat("x", MaxLabel+1)}},
	} {
		if err := bad.validate("labels"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestLabelsAreAnObject(t *testing.T) {
	data, err := wire.Marshal(JobSpec{Labels: Labels{{"run", "7"}}}, wire.JSON)
	if err != nil || !strings.Contains(string(data), `"labels":{"run":"7"}`) {
		t.Fatalf("%s: %v", data, err)
	}
	var back JobSpec
	if err := wire.Unmarshal([]byte(`{"budget":1,"stages":[],"labels":{"b":"2","a":""}}`), wire.JSON, &back); err != nil || back.Labels.String() != "a=,b=2" {
		t.Errorf("%v: %v", back.Labels, err)
	}
}

// Labelled adds labels to the reason of a charge. No label may be cut off, even if the reason is long. A reason without
// labels can end like a reason with labels. This end must not be read as labels.
func TestLabelsInAReason(t *testing.T) {
	l := Labels{{"run", strings.Repeat("7", 60)}, {"team", ""}}
	for _, reason := range []string{"", "completed", strings.Repeat("é", 300), "x; labels run=1"} {
		text := l.Labelled(reason, 256)
		if len(text) > 256 || LabelsOf(text).String() != l.String() {
			t.Errorf("%q: %v", text, LabelsOf(text))
		}
	}
	for _, reason := range []string{"", "completed", "; labels run", "; labels run=7, team=x", "x; labels run=7 on market main"} {
		if got := LabelsOf(reason); got != nil {
			t.Errorf("%q: %v", reason, got)
		}
	}
}
