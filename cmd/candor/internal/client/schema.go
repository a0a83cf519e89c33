package client

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/schema"
	"github.com/candor-grid/candor/messages/spelling"
)

func schemaCommand(a *cli.App) *cobra.Command {
	return a.Tabled(&cobra.Command{
		Use:   "schema [NAME]",
		Short: "print the JSON schema of a request or reply",
		Long: `Print the JSON schema of a message. Without a name, list all requests, each with
its subject and its reply. Any NATS client can send the requests.`,
		Example: `  candor schema
  candor schema SubmitRequest
  candor schema JobDetail | jq '.properties | keys'`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listSchemas(a)
			}
			return printSchema(a, args[0])
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return schema.Names(), cobra.ShellCompDirectiveNoFileComp
		},
	})
}

type verbView struct {
	Subject string `json:"subject"`
	Request string `json:"request"`
	Reply   string `json:"reply"`
}

func listSchemas(a *cli.App) error {
	var list []verbView
	for _, v := range schema.Verbs() {
		list = append(list, verbView{messages.Subject("SITE", v.Actor, v.Verb, "ACCOUNT"), v.Request, v.Reply})
	}
	return a.Show(list, func(p *cli.Page) {
		t := terminal.NewTable("~SUBJECT|~REQUEST|~REPLY")
		for _, v := range list {
			t.Row(v.Subject, v.Request, v.Reply)
		}
		p.Table(t, "")
	})
}

func printSchema(a *cli.App, name string) error {
	data, err := schema.Get(name)
	if err != nil {
		return messages.Errorf(messages.NotFound, "%q is no message: \"candor schema\" lists all messages%s", name, similarMessage(name))
	}
	_, err = a.Out.Write(data)
	return err
}

func similarMessage(name string) string {
	for _, n := range schema.Names() {
		if spelling.Distance(strings.ToLower(name), strings.ToLower(n)) <= 3 {
			return "; did you mean " + n + "?"
		}
	}
	return ""
}
