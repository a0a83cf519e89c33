package casefile

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

type shape struct {
	Name  string     `json:"name"`
	Count int        `json:"count,omitempty"`
	On    bool       `json:"on,omitempty"`
	Part  *part      `json:"part,omitempty"`
	Parts []part     `json:"parts,omitempty"`
	Grid  [][]uint32 `json:"grid,omitempty"`
}

type part struct {
	X float64 `json:"x"`
}

func TestDecode(t *testing.T) {
	got, err := Read[shape]([]byte(`{"name":"a","count":3e0,"on":true,"part":null,"parts":[{"x":1},{"x":-2.5e-3}],"grid":[[1],[]]}`))
	want := shape{Name: "a", Count: 3, On: true, Parts: []part{{1}, {-0.0025}}, Grid: [][]uint32{{1}, {}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for document, says := range map[string]string{
		``:                                  "document: JSON was cut",
		`{"name":"a"`:                       "document: JSON was cut",
		`[]`:                                "document: is a list, must be an object",
		`{"name":"a"} 1`:                    "text follows the end of the document",
		`{"name":"a"} }`:                    "text follows the end of the document",
		`{}`:                                "name: the key is missing",
		`{"Name":"a"}`:                      "Name: is no field; the fields are name, count",
		`{"name":"a","name":"b"}`:           "name: is given twice",
		`{"name":1}`:                        "name: is a number, must be a string",
		`{"name":null}`:                     "name: is null, must be a string",
		`{"name":"a","count":1.5}`:          "count: 1.5 is not a whole number",
		`{"name":"a","count":"1"}`:          "count: is a string, must be a whole number",
		`{"name":"a","count":1e300}`:        "count: 1e300 is not a whole number",
		`{"name":"a","on":1}`:               "on: is a number, must be true or false",
		`{"name":"a","part":{"y":1}}`:       "part.y: is no field; the fields are x",
		`{"name":"a","parts":[{"x":1},{}]}`: "parts[1].x: the key is missing",
		`{"name":"a","parts":[{"x":1},{"x":1,"x":1}]}`: "parts[1].x: is given twice",
		`{"name":"a","parts":[{"x":1e999}]}`:           "parts[0].x: 1e999 does not fit",
		`{"name":"a","parts":[{"x":NaN}]}`:             "parts[0].x: JSON is malformed",
		`{"name":"a","parts":[{"x":true}]}`:            "parts[0].x: is a boolean, must be a number",
		`{"name":"a","parts":{}}`:                      "parts: is an object, must be a list",
		`{"name":"a","grid":[[1],[-1]]}`:               "grid[1][0]: -1 is out of range",
	} {
		_, err := Read[shape]([]byte(document))
		if !errors.Is(err, &messages.Error{Kind: messages.Invalid}) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", document, err, says)
		}
	}
}

func TestErrorsStayShort(t *testing.T) {
	_, err := Read[shape]([]byte(`{"name":"a","` + strings.Repeat("é", 5000) + `":1}`))
	if err == nil || len(err.Error()) > 400 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

// Any input must give an error or a value with finite numbers, without a panic.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"name":"a","count":3,"part":{"x":1},"parts":[{"x":1}],"grid":[[1,2],[]]}`))
	f.Add([]byte(`{"name":"a","parts":[{"x":1e308}]} x`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Read[shape](data)
		if err != nil {
			if messages.KindOf(err) != messages.Invalid {
				t.Fatal(err)
			}
			return
		}
		for _, p := range v.Parts {
			if math.IsNaN(p.X) || math.IsInf(p.X, 0) {
				t.Fatalf("%v", p.X)
			}
		}
	})
}
