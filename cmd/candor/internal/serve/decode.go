package serve

import (
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/yamlfile"
)

// document is a configuration file with the errors found in it.
type document struct{ yamlfile.Reader }

// parse reads YAML. An error says where the text is not YAML.
func parse(name string, text []byte) (*document, error) {
	file, err := yamlfile.Parse(name, text)
	if err != nil {
		return nil, err
	}
	if file.Documents > 1 {
		return nil, messages.Errorf(messages.Invalid, "%s: has %d documents; put the configuration in one", name, file.Documents)
	}
	return &document{yamlfile.Reader{File: file}}, nil
}

// note adds the problems of a configuration, each with its place in the file.
func (d *document) note(problems embedded.Problems) {
	for _, p := range problems {
		n, _ := d.Find(p.Path)
		d.Addf(n, "%s", p.Error())
	}
}
