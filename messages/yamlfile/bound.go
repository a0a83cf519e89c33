package yamlfile

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// These are the bounds of a YAML file. Files that people write are far below them. For each value, the YAML library
// keeps the keys that lead to the value. So its memory grows with the product of three numbers: the values, the depth,
// and the length of the keys.
const (
	maxBytes     = 8 << 20
	maxTokens    = 300_000
	maxDepth     = 64
	maxDocuments = 64
	maxPaths     = 256 << 20 // bytes of the keys that lead to each value, summed over all values
	maxNodes     = 300_000   // number of nodes after each alias is replaced by its text
)

func tooLarge(what string, is, most int) error {
	return fmt.Errorf("the text has too many %s %d; the limit is %d", what, is, most)
}

func parse(text []byte) (file *ast.File, err error) {
	err = guard(func() error {
		if err := bounded(text); err != nil {
			return err
		}
		if file, err = parser.ParseBytes(text, 0); err != nil {
			return err
		}
		return expanded(file)
	})
	return file, err
}

// bounded returns an error for a text that would take too much memory to parse.
func bounded(text []byte) error {
	if len(text) > maxBytes {
		return tooLarge("bytes:", len(text), maxBytes)
	}
	tokens := lexer.Tokenize(string(text))
	if len(tokens) > maxTokens {
		return tooLarge("values and marks:", len(tokens), maxTokens)
	}
	depth, key, documents := measure(tokens)
	switch paths := len(tokens) * depth * key; {
	case depth > maxDepth:
		return tooLarge("levels of lists and mappings:", depth, maxDepth)
	case documents > maxDocuments:
		return tooLarge("documents:", documents, maxDocuments)
	case paths > maxPaths:
		return tooLarge("bytes of keys, counted for each value and level:", paths, maxPaths)
	}
	return nil
}

// measure returns the largest depth of nested lists and mappings, the length of the longest key, and the number of
// documents. In block style, each further indentation counts as one level.
func measure(tokens token.Tokens) (depth, key, documents int) {
	flow, line := 0, 0
	var columns []int
	for i, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow = max(flow-1, 0)
		case token.DocumentHeaderType:
			documents++
		case token.MappingValueType:
			if i > 0 {
				key = max(key, len(tokens[i-1].Value))
			}
		}
		at := t.Position.Column
		if opens := t.Type == token.SequenceEntryType || t.Type == token.MappingKeyType || t.Position.Line != line; opens && flow == 0 {
			for len(columns) > 0 && columns[len(columns)-1] >= at {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, at)
		}
		line = t.Position.Line
		depth = max(depth, flow+len(columns))
	}
	return depth, key + 8, documents // a value in a list has an index such as [123456] in its path
}

// expanded returns an error for a document in which an alias refers to itself, or in which the aliases stand for too
// much text.
func expanded(file *ast.File) error {
	e := expansion{sizes: map[string]int{}}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if n := e.nodes(doc.Body); n > maxNodes {
			return fmt.Errorf("the text has more than %d values, with each alias counted as the text that it stands for", maxNodes)
		}
	}
	return nil
}

// expansion counts the YAML nodes of a document after its aliases are replaced. The map `sizes` has the number of nodes
// of each anchor. While the nodes of an anchor are being counted, its number is set above the limit. So an alias inside
// of its own anchor is refused.
type expansion struct{ sizes map[string]int }

func (e *expansion) nodes(n ast.Node) int {
	sum := 1
	add := func(n ast.Node) { sum = min(sum+e.nodes(n), maxNodes+1) }
	switch v := n.(type) {
	case *ast.AnchorNode:
		name := v.Name.GetToken().Value
		e.sizes[name] = maxNodes + 1
		add(v.Value)
		e.sizes[name] = sum
	case *ast.AliasNode:
		sum += e.sizes[v.Value.GetToken().Value]
	case *ast.TagNode:
		add(v.Value)
	case *ast.MappingNode:
		for _, pair := range v.Values {
			add(pair)
		}
	case *ast.MappingValueNode:
		add(v.Key)
		add(v.Value)
	case *ast.MappingKeyNode:
		add(v.Value)
	case *ast.SequenceNode:
		for _, item := range v.Values {
			add(item)
		}
	}
	return min(sum, maxNodes+1)
}
