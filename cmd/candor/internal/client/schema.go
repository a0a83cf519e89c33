package client

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/schema"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "print the JSON schema of a request or reply",
		Long: `Print the JSON schema of a message, or without a name list the messages: each
request with the subject it goes to and the type of its reply. Any NATS client can
send them.`,
		Example: `  candor schema
  candor schema SubmitRequest
  candor schema JobDetail | jq '.properties | keys'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listSchemas()
			}
			return a.printSchema(args[0])
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			for _, m := range schema.Catalogue() {
				if !slices.Contains(names, m.Name) {
					names = append(names, m.Name)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func (a *app) listSchemas() error {
	list := schema.Catalogue()
	if a.flags.json {
		e := json.NewEncoder(a.out)
		e.SetEscapeHTML(false)
		return e.Encode(list)
	}
	p := a.page(a.out)
	t := terminal.NewTable(terminal.Left("MESSAGE"), terminal.Left("SUBJECT"), terminal.Left("REPLY"))
	for _, m := range list {
		t.Row(m.Name, m.Subject, m.Reply)
	}
	t.Write(p, p.Style, "")
	_, err := a.out.Write(p.Bytes())
	return err
}

func (a *app) printSchema(name string) error {
	m, ok := schema.Find(name)
	if !ok {
		return messages.Errorf(messages.NotFound, "%q is none of the messages: candor schema lists them%s", name, similarMessage(name))
	}
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(m.Schema())
}

func similarMessage(name string) string {
	for _, m := range schema.Catalogue() {
		if editDistance(strings.ToLower(name), strings.ToLower(m.Name)) <= 3 {
			return "; did you mean " + m.Name + "?"
		}
	}
	return ""
}
