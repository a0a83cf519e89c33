// Package casetest has helpers for tests of mechanisms: they read sample cases, and try documents as the command line
// does. Only tests import the package.
package casetest

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// Solver is the type of the function SolveDocument, which each mechanism has.
type Solver = func(document []byte) (any, error)

// Read reads a JSON file of testdata, whose README.md says where the file comes from.
func Read(t testing.TB, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Cases reads the cases of a file of testdata.
func Cases[Case any](t testing.TB, file string) []Case {
	t.Helper()
	var doc struct{ Cases []Case }
	if Read(t, file, &doc); len(doc.Cases) == 0 {
		t.Fatalf("%s has no cases", file)
	}
	return doc.Cases
}

// Solve returns the answer to a document, which is JSON text or a value to encode as JSON.
func Solve[Output any](t testing.TB, solve Solver, document any) Output {
	t.Helper()
	text, ok := document.(string)
	if !ok {
		data, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		text = string(data)
	}
	out, err := solve([]byte(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out.(Output)
}

// Refuses checks that each document (a key) is refused as Invalid, with an error that contains a text (its value).
func Refuses(t *testing.T, solve Solver, documents map[string]string) {
	t.Helper()
	for document, says := range documents {
		_, err := solve([]byte(document))
		if !errors.Is(err, &messages.Error{Kind: messages.Invalid}) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", document, err, says)
		}
	}
}

// Fuzz looks for a document of at most `most` bytes for which solve breaks this rule: solve must return an error that
// blames the sender, or an answer that JSON can encode and that passes check.
func Fuzz[Output any](f *testing.F, solve Solver, most int, check func(*testing.T, Output), seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > most {
			return
		}
		out, err := solve(data)
		if err != nil {
			if kind := messages.KindOf(err); kind != messages.Invalid && kind != messages.TooLarge {
				t.Fatalf("%v is not the sender's fault", err)
			}
			return
		}
		if _, err := json.Marshal(out); err != nil {
			t.Fatal(err)
		}
		check(t, out.(Output))
	})
}

// Main runs the tests of a package with the given number of random cases for each property. The command line can set
// another number.
func Main(m *testing.M, cases int) {
	if err := flag.Set("rapid.checks", strconv.Itoa(cases)); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Indices returns the numbers 0 to n − 1.
func Indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
