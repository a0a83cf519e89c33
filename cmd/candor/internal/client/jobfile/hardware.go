package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// toHardware replaces the features of nodes and the type of GPUs that a script names, as the site's configuration says.
// A feature or a type that no node of the site has, and that the configuration does not name, stays; the site refuses it
// at submission. toHardware adds a warning for each name without effect.
func (j *Job) toHardware(table *market.SlurmNames, nodes func() ([]market.NodeStatus, error), warnings *[]string) error {
	s := &j.Spec.Stages[0]
	if !j.Names.Hardware || (s.Constraint == "" || len(table.Features) == 0) && len(table.GPUTypes) == 0 {
		return nil
	}
	all, err := nodes()
	if err != nil {
		return err
	}
	warn := func(text string) {
		if !slices.Contains(*warnings, text) {
			*warnings = append(*warnings, text)
		}
	}
	s.Constraint = replaceFeatures(s.Constraint, func(feature string) string {
		value := replaced(feature, table.Features, slices.ContainsFunc(all, func(n market.NodeStatus) bool { return slices.Contains(n.Labels, feature) }))
		if value == "" {
			warn(fmt.Sprintf("--constraint: the feature %s has no effect at this site", feature))
		}
		return value
	})
	for _, kind := range []*messages.Name{&s.GPUType, &j.asked.GPUType, &j.allocation.inAll.kind, &j.asked.allocation.inAll.kind} {
		if *kind == "" {
			continue
		}
		value := replaced(*kind, table.GPUTypes, slices.ContainsFunc(all, func(n market.NodeStatus) bool { return n.Resources != nil && n.Resources.GPUType == *kind }))
		if value == "" {
			warn(fmt.Sprintf("the type %s of GPUs has no effect at this site: the job gets GPUs of any type", *kind))
		}
		*kind = value
	}
	return nil
}

// replaced returns the meaning of a name in a table. A name that the table does not list keeps its meaning if it is
// known.
func replaced(name string, table job.Labels, known bool) string {
	if value, listed, ok := table.Lookup(name); listed || ok && !known {
		return value
	}
	return name
}

// replaceFeatures replaces each feature in a constraint without parentheses, such as a&b|c. A feature that is replaced
// by "" is left out. A choice that then has no features is left out too.
func replaceFeatures(constraint string, replace func(string) string) string {
	if constraint == "" {
		return ""
	}
	var choices []string
	for choice := range strings.SplitSeq(constraint, "|") {
		var features []string
		for feature := range strings.SplitSeq(choice, "&") {
			if value := replace(feature); value != "" && !slices.Contains(features, value) {
				features = append(features, value)
			}
		}
		if both := strings.Join(features, "&"); both != "" && !slices.Contains(choices, both) {
			choices = append(choices, both)
		}
	}
	return strings.Join(choices, "|")
}
