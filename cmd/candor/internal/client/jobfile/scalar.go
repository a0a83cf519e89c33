package jobfile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// These are the types of a document's fields. Each type has its own method that reads a YAML node. So an error can say,
// for example, that the value is not an amount of credits. The YAML library would name a Go type.
type (
	text     string
	count    int
	number   float64
	amount   messages.Credits
	rate     messages.Credits // credits for one second on one slot
	span     messages.Duration
	size     int64
	memory   int64
	truth    bool
	names    []messages.Name
	command  []string
	env      job.Env
	labels   job.Labels
	notices  []job.Notify
	weights  job.Weights
	licenses job.Licenses
	gpus     struct {
		number int
		kind   messages.Name
	}
	array struct {
		ranges job.Array
		most   int
	}
)

func refuse(n ast.Node, format string, args ...any) error {
	return &yaml.SyntaxError{Message: fmt.Sprintf(format, args...), Token: n.GetToken()}
}

// bare returns the value of a node of a YAML document, without its anchor and its tag.
func bare(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.AnchorNode:
		return bare(n.Value)
	case *ast.TagNode:
		return bare(n.Value)
	}
	return n
}

// scalar returns the text of a scalar as the document has it.
func scalar(n ast.Node) (string, bool) {
	switch n := bare(n).(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.NullNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "", false
	case ast.ScalarNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func read[T any](n ast.Node, v *T, parse func(string) (T, error)) error {
	s, _ := scalar(n)
	parsed, err := parse(s)
	if err != nil {
		return refuse(n, "%v", err)
	}
	*v = parsed
	return nil
}

// UnmarshalYAML takes any scalar, and keeps its text exactly.
func (t *text) UnmarshalYAML(n ast.Node) error {
	s, ok := scalar(n)
	if !ok {
		return refuse(n, "must be text")
	}
	*t = text(s)
	return nil
}

// UnmarshalYAML takes a whole number that is not negative.
func (c *count) UnmarshalYAML(n ast.Node) error {
	return read(n, c, func(s string) (count, error) {
		i, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
		if err != nil || i < 0 {
			return 0, fmt.Errorf("%q is not a whole number from 0 on", s)
		}
		return count(i), nil
	})
}

// UnmarshalYAML takes a finite number.
func (x *number) UnmarshalYAML(n ast.Node) error {
	return read(n, x, func(s string) (number, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return 0, fmt.Errorf("%q is not a number", s)
		}
		return number(f), nil
	})
}

// UnmarshalYAML takes true or false.
func (t *truth) UnmarshalYAML(n ast.Node) error {
	value, ok := bare(n).(*ast.BoolNode)
	if !ok {
		return refuse(n, "must be true or false")
	}
	*t = truth(value.Value)
	return nil
}

// UnmarshalYAML reads an amount of credits from a YAML value.
func (a *amount) UnmarshalYAML(n ast.Node) error {
	return read(n, (*messages.Credits)(a), messages.ParseCredits)
}

// UnmarshalYAML reads a price. It accepts the same texts as messages.ParsePrice.
func (r *rate) UnmarshalYAML(n ast.Node) error {
	return read(n, (*messages.Credits)(r), messages.ParsePrice)
}

// UnmarshalYAML reads a duration, or a number of seconds.
func (d *span) UnmarshalYAML(n ast.Node) error {
	return read(n, d, func(s string) (span, error) {
		v, err := messages.ParseDuration(s)
		if err != nil || v < 0 {
			return 0, fmt.Errorf("%q is not a duration: write it like 1h30m, 90s, or as a number of seconds", s)
		}
		return span(v), nil
	})
}

// UnmarshalYAML takes an instant, or a span with a "+" before it.
func (d *due) UnmarshalYAML(n ast.Node) error { return read(n, d, parseDue) }

// UnmarshalYAML takes a name or a list of them.
func (l *names) UnmarshalYAML(n ast.Node) (err error) {
	*l, err = oneOrList(n, "must be the name of a stage, or a list of them")
	return err
}

// UnmarshalYAML takes a pattern or a list of them.
func (p *patterns) UnmarshalYAML(n ast.Node) (err error) {
	*p, err = oneOrList(n, "must be a pattern of file names, like results/*.csv, or a list of them")
	return err
}

// UnmarshalYAML takes a job's number or a list of them.
func (l *numbers) UnmarshalYAML(n ast.Node) error {
	items, err := oneOrList(n, "must be the number of a job, or a list of them")
	if err != nil {
		return err
	}
	if *l, err = parseJobs(items); err != nil {
		return refuse(n, "%v", err)
	}
	return nil
}

// UnmarshalYAML takes a list: a program and its arguments.
func (c *command) UnmarshalYAML(n ast.Node) (err error) {
	*c, err = list(n, "must be a list of a program and its arguments, like [sort, -u, input.txt]; for a line of shell use script")
	return err
}

func oneOrList(n ast.Node, otherwise string) ([]string, error) {
	if s, ok := scalar(n); ok {
		return []string{s}, nil
	}
	return list(n, otherwise)
}

func list(n ast.Node, otherwise string) ([]string, error) {
	sequence, ok := bare(n).(*ast.SequenceNode)
	if !ok {
		return nil, refuse(n, "%s", otherwise)
	}
	items := make([]string, 0, len(sequence.Values))
	for _, value := range sequence.Values {
		s, ok := scalar(value)
		if !ok {
			return nil, refuse(value, "%s", otherwise)
		}
		items = append(items, s)
	}
	return items, nil
}

// UnmarshalYAML takes a mapping from variables to values.
func (e *env) UnmarshalYAML(n ast.Node) error {
	return eachPair(n, "must map variables to values, like {THREADS: 4}", func(key string, value ast.Node) error {
		s, ok := scalar(value)
		if !ok {
			return refuse(value, "%s: must be text", key)
		}
		*e = env(setVariable(job.Env(*e), key, s))
		return nil
	})
}

// UnmarshalYAML takes a receiver of notices, as --notify does, or a list of receivers.
func (l *notices) UnmarshalYAML(n ast.Node) error {
	items, err := oneOrList(n, "must be an e-mail address or a URL, or a list of them, like [failure:ada@example.org]")
	if err != nil {
		return err
	}
	for _, item := range items {
		*l = append(*l, parseNotify(item))
	}
	return nil
}

// UnmarshalYAML takes a mapping from labels to values.
func (l *labels) UnmarshalYAML(n ast.Node) error {
	return eachPair(n, "must map labels to values, like {run: 7, team: blue}", func(name string, value ast.Node) error {
		s, ok := scalar(value)
		if !ok {
			return refuse(value, "%s: must be text", name)
		}
		if err := job.CheckLabel(name, s); err != nil {
			return refuse(value, "%s", messages.Detail(err))
		}
		*l = labels(job.Labels(*l).Set(name, s))
		return nil
	})
}

// UnmarshalYAML takes a mapping from classes to weights.
func (w *weights) UnmarshalYAML(n ast.Node) error {
	err := eachPair(n, "must map classes to numbers, like {map: 3, reduce: 2}", func(key string, value ast.Node) error {
		var x number
		if err := x.UnmarshalYAML(value); err != nil {
			return err
		}
		*w = append(*w, job.ClassWeight{Class: key, Weight: float64(x)})
		return nil
	})
	sort.SliceStable(*w, func(i, j int) bool { return (*w)[i].Class < (*w)[j].Class })
	return err
}

// UnmarshalYAML reads a mapping from licences to numbers, or a text in the form of the flag --licenses.
func (l *licenses) UnmarshalYAML(n ast.Node) error {
	if _, ok := scalar(n); ok {
		return read(n, (*job.Licenses)(l), parseLicenses)
	}
	err := eachPair(n, "must map licences to numbers, like {matlab: 2}", func(key string, value ast.Node) error {
		var c count
		if err := c.UnmarshalYAML(value); err != nil {
			return err
		}
		*l = append(*l, job.License{Name: key, Count: int(c)})
		return nil
	})
	slices.SortFunc(*l, func(a, b job.License) int { return strings.Compare(a.Name, b.Name) })
	return err
}

// eachPair calls f with each key and value of a mapping. The YAML reader refuses repeated keys.
func eachPair(n ast.Node, otherwise string, f func(key string, value ast.Node) error) error {
	mapping, ok := bare(n).(ast.MapNode)
	if !ok {
		return refuse(n, "%s", otherwise)
	}
	for it := mapping.MapRange(); it.Next(); {
		key, ok := scalar(it.Key())
		if !ok {
			return refuse(n, "%s", otherwise)
		}
		if err := f(key, it.Value()); err != nil {
			return err
		}
	}
	return nil
}

// UnmarshalYAML takes the indices of an array as text, such as "0-99:2,200%4", or the site's list of ranges.
func (a *array) UnmarshalYAML(n ast.Node) error {
	if list, ok := bare(n).(*ast.SequenceNode); ok {
		return yaml.NodeToValue(list, &a.ranges, yaml.Strict(), yaml.UseJSONUnmarshaler())
	}
	s, ok := scalar(n)
	if !ok {
		return refuse(n, "must be the indices as text, like 0-15 or 0-99:2,200")
	}
	ranges, most, err := parseArray(s)
	if err != nil {
		return refuse(n, "%v", err)
	}
	a.ranges, a.most = ranges, most
	return nil
}

// parseArray calls job.ParseArray. It removes the kind from the error, because the error becomes a part of another
// error.
func parseArray(s string) (job.Array, int, error) {
	ranges, most, err := job.ParseArray(s)
	if e, ok := errors.AsType[*messages.Error](err); ok {
		return nil, 0, errors.New(e.Message)
	}
	return ranges, most, err
}
