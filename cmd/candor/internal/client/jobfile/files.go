package jobfile

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/candor-grid/candor/messages/job"
)

// Input is a file of the user that is sent with a job.
type Input struct {
	Stage int    // position of the stage that gets the file
	Path  string // path on the user's machine
	Name  string // path in the working directory of tasks
}

// inputs has the input files of a job: files on the user's machine, which must be sent, and files that the site already
// stores.
type inputs struct {
	local  []Input
	stored []job.File
}

type patterns []string

// UnmarshalYAML takes FILE or FILE=NAME, or a list of them.
func (in *inputs) UnmarshalYAML(n ast.Node) error {
	const otherwise = "must be a file, as FILE or FILE=NAME, or a list of them"
	values := []ast.Node{n}
	if sequence, ok := bare(n).(*ast.SequenceNode); ok {
		values = sequence.Values
	}
	for _, value := range values {
		if _, ok := bare(value).(ast.MapNode); ok {
			var f job.File
			if err := yaml.NodeToValue(value, &f, yaml.Strict(), yaml.UseJSONUnmarshaler()); err != nil {
				return err
			}
			in.stored = append(in.stored, f)
			continue
		}
		s, ok := scalar(value)
		if !ok {
			return refuse(value, "%s", otherwise)
		}
		file, err := parseInput(s)
		if err != nil {
			return refuse(value, "%v", err)
		}
		in.local = append(in.local, file)
	}
	return nil
}

// parseInput reads FILE or FILE=NAME. The last "=" separates them.
func parseInput(text string) (Input, error) {
	path, name := text, ""
	if i := strings.LastIndexByte(text, '='); i >= 0 {
		if path, name = text[:i], text[i+1:]; name == "" {
			return Input{}, errors.New("the name after = is missing: write FILE=NAME")
		}
	}
	if path == "" {
		return Input{}, errors.New("name a file: FILE or FILE=NAME")
	}
	if name == "" {
		name = filepath.Base(path)
	}
	return Input{Path: path, Name: name}, nil
}

// addFiles gives each stage its own files and the files at the top level of the document.
func (j *Job) addFiles(d *document) {
	for i := range j.Spec.Stages {
		stage := &j.Spec.Stages[i]
		for _, from := range []*inputs{&d.Inputs, &d.Stages[i].Inputs} {
			for _, file := range from.local {
				file.Stage = i
				j.Inputs = append(j.Inputs, file)
			}
			stage.Inputs = append(stage.Inputs, from.stored...)
		}
		stage.Outputs = append(append(stage.Outputs, d.Outputs...), d.Stages[i].Outputs...)
	}
}

func setInput(job *Job, text string) error {
	file, err := parseInput(text)
	job.Inputs = append(job.Inputs, file)
	return err
}

func setOutput(job *Job, text string) error {
	if text == "" {
		return errors.New("must be a pattern of file names, like results/*.csv")
	}
	job.Spec.Stages[0].Outputs = append(job.Spec.Stages[0].Outputs, text)
	return nil
}
