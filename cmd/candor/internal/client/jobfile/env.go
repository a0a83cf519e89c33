package jobfile

import (
	"sort"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// AddEnvironment sets the variables of a user's environment ("K=V" each) that
// nothing else has set, as --export=ALL asks. Those that describe a
// surrounding Candor task or connection stay behind.
func (j *Job) AddEnvironment(environment []string) {
	for _, pair := range environment {
		key, value, _ := strings.Cut(pair, "=")
		if validVariable(key) && !strings.HasPrefix(key, "CANDOR_") && !hasVariable(j.Spec.Env, key) {
			j.Spec.Env = setVariable(j.Spec.Env, key, value)
		}
	}
}

// setVariable sets one variable of a set in the order of names.
func setVariable(e messages.Env, name, value string) messages.Env {
	i := sort.Search(len(e), func(i int) bool { return e[i].Name >= name })
	if i < len(e) && e[i].Name == name {
		e[i].Value = value
		return e
	}
	e = append(e, messages.Variable{})
	copy(e[i+1:], e[i:])
	e[i] = messages.Variable{Name: name, Value: value}
	return e
}

func hasVariable(e messages.Env, name string) bool {
	i := sort.Search(len(e), func(i int) bool { return e[i].Name >= name })
	return i < len(e) && e[i].Name == name
}

// validVariable accepts what shells can name.
func validVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
