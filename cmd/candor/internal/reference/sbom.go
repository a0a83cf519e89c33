package main

import (
	"debug/buildinfo"
	"encoding/json"
	"io"
	"runtime/debug"
	"strings"
)

// spdx is a document in the format SPDX 2.3 with only the required fields.
type spdx struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []part         `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type part struct {
	ID         string      `json:"SPDXID"`
	Name       string      `json:"name"`
	Version    string      `json:"versionInfo"`
	Location   string      `json:"downloadLocation"`
	Analysed   bool        `json:"filesAnalyzed"`
	References []reference `json:"externalRefs"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Element string `json:"spdxElementId"`
	Related string `json:"relatedSpdxElement"`
	Type    string `json:"relationshipType"`
}

const (
	documentID = "SPDXRef-DOCUMENT"
	programID  = "SPDXRef-candor"
)

// sbom writes a list of the Go modules that the Go tool recorded in a binary. The list carries the time of the commit,
// not the time of the build. So the same source always gives the same list.
func sbom(w io.Writer, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	revision, at := "unknown", "1970-01-01T00:00:00Z"
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.time":
			at = s.Value
		}
	}
	d := spdx{Version: "SPDX-2.3", License: "CC0-1.0", ID: documentID, Name: "candor", Namespace: "https://" + info.Main.Path + "/sbom/" + revision,
		Creation:      creation{at, []string{"Tool: candor-reference"}},
		Relationships: []relationship{{documentID, programID, "DESCRIBES"}}}
	d.Packages = append(d.Packages, partOf(programID, &info.Main))
	d.add("SPDXRef-go", &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
	for _, m := range info.Deps {
		if m.Replace != nil && m.Replace.Version == "" { // skip a module that is a directory of this project
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		d.add("SPDXRef-"+idOf(m.Path), m)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(&d)
}

func (d *spdx) add(id string, m *debug.Module) {
	d.Packages = append(d.Packages, partOf(id, m))
	d.Relationships = append(d.Relationships, relationship{programID, id, "DEPENDS_ON"})
}

func partOf(id string, m *debug.Module) part {
	return part{ID: id, Name: m.Path, Version: m.Version, Location: "NOASSERTION",
		References: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}}}
}

// idOf returns an identifier for SPDX: letters, digits, dots and dashes.
func idOf(path string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.':
			return r
		}
		return '-'
	}, path)
}
