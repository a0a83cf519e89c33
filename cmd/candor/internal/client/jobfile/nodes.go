package jobfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// parseNodes reads a list of nodes in Slurm's form, such as node1,node[3-5,08] or r[1-2]n[1-8].
func parseNodes(text string) (nodes []messages.Name, err error) {
	bad := fmt.Errorf("%q: write names of nodes, like node1,node[3-5]; at most %d", text, jobmsg.MaxChosen)
	for rest := text; ; {
		end, inside := len(rest), false
		for i := range len(rest) {
			switch {
			case rest[i] == '[':
				inside = true
			case rest[i] == ']':
				inside = false
			case rest[i] == ',' && !inside:
				end = i
			}
			if end == i {
				break
			}
		}
		some, ok := expandNodes(rest[:end])
		if nodes = append(nodes, some...); !ok || inside || len(nodes) > jobmsg.MaxChosen {
			return nil, bad
		}
		if end == len(rest) {
			break
		}
		rest = rest[end+1:]
	}
	for i := range nodes {
		if nodes[i] = nodeName(nodes[i]); !messages.ValidName(nodes[i]) {
			return nil, bad
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}

// nodeName returns the name that a node of Slurm has in Candor: without capital letters, and without the domain of the
// host.
func nodeName(text string) messages.Name {
	name, _, _ := strings.Cut(strings.ToLower(text), ".")
	return name
}

// NodeList returns the nodes in a Slurm list. An empty list has none.
func NodeList(text string) ([]messages.Name, error) {
	if text == "" {
		return nil, nil
	}
	return parseNodes(text)
}

// expandNodes returns the nodes of one word. If the word has several lists of numbers in brackets, the nodes are all
// combinations.
func expandNodes(word string) (nodes []string, ok bool) {
	before, rest, listed := strings.Cut(word, "[")
	if !listed {
		return []string{word}, true
	}
	list, after, closed := strings.Cut(rest, "]")
	tails, ok := expandNodes(after)
	if !closed || !ok {
		return nil, false
	}
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		low, err := strconv.ParseUint(from, 10, 32)
		high, errHigh := strconv.ParseUint(to, 10, 32)
		if err != nil || errHigh != nil || high < low || high-low >= jobmsg.MaxChosen {
			return nil, false
		}
		for n := low; n <= high; n++ {
			for _, tail := range tails {
				nodes = append(nodes, fmt.Sprintf("%s%0*d%s", before, len(from), n, tail))
			}
			if len(nodes) > jobmsg.MaxChosen {
				return nil, false
			}
		}
	}
	return nodes, true
}

// inFile reports whether the setting names a file that has a list of nodes. As under Slurm, only the name of a file has
// a slash.
func (s setting) inFile() bool {
	return slices.Contains([]string{"exclude", "nodelist", "slurm-nodelist"}, s.flag) && strings.Contains(s.text, "/")
}

// ReadNodes replaces the names of files in --nodelist, --nodefile and --exclude by the lists of nodes that the function
// `read` finds in them. It must be called before Apply. It does not read a file whose option is replaced by a later one.
func (o *Options) ReadNodes(read func(path string) ([]byte, error)) error {
	last := o.last()
	for i := range o.said {
		s := &o.said[i]
		if !s.inFile() || i < last[s.flag] {
			continue
		}
		option := strings.TrimPrefix(s.flag, "slurm-")
		source, err := read(s.text)
		if err != nil {
			return messages.Errorf(messages.Invalid, "--%s: the file of nodes cannot be read: %v", option, err)
		}
		var words []string
		for line := range strings.Lines(string(source)) {
			line, _, _ = strings.Cut(line, "#")
			words = append(words, strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '\r' || r == '\n' })...)
		}
		if len(words) == 0 && s.flag != "exclude" { // without names, the job could run on any node
			return messages.Errorf(messages.Invalid, "--%s: the file %s names no node: write names of nodes into it, or leave the option out", option, s.text)
		}
		s.text = strings.Join(words, ",")
	}
	for _, c := range o.components {
		if err := c.ReadNodes(read); err != nil {
			return err
		}
	}
	return nil
}
