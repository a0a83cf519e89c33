package serve

import (
	"bytes"
	"text/template"
)

func (p *plan) config() ([]byte, error) {
	var text bytes.Buffer
	err := template.Must(template.New(siteFileName).Parse(siteTemplate)).Execute(&text, p)
	return text.Bytes(), err
}

// siteTemplate is the text of a new configuration file. It has only the fields that the operator must decide. All other
// fields keep their defaults.
const siteTemplate = `# Site {{.Site}}. "candor config show --config FILE" prints all fields of this file,
# "candor config check FILE" its mistakes.
site: {{.Site}}
state: {{printf "%q" (printf "%s/state" .Dir)}}
keys: {{printf "%q" (printf "%s/keys" .Dir)}}
{{- if not .Hosts}}

# Where clients connect, and the servers of peers.
listen: {{printf "%q" .Listen}}
listen_leaf: {{printf "%q" .Leaf}}
{{- end}}
{{- if not .Plain}}

# Certificates of this host, for clients, peers and metrics.{{if .Hosts}} {host} stands for its name.{{end}}
tls:
  cert: "{{.Dir}}/tls/{{if .Hosts}}{host}{{else}}localhost{{end}}.pem"
  key: "{{.Dir}}/tls/{{if .Hosts}}{host}{{else}}localhost{{end}}.key"
  ca: "{{.Dir}}/tls/ca.pem"
{{- end}}

# Who may grant credits, and see and cancel everybody's jobs; who has an account
# from the start, and with how much. A credit buys an hour of a slot, unless a market
# says otherwise: {{.Monthly}} credits a month buy all slots of this file.
operators: [operator]
accounts: []
# - {name: alice, grant: 1000}

# A slot of a class is one unit of it on one node. A task takes as many slots of one node
# as contain what it asks for, or one slot. The numbers are from this machine: set the
# memory to that of your smallest node, divided by its processors.
{{- if not .GPUs}} A class for GPUs is,
# for example, {class: gpu, unit: {gpus: 1, cpus: 8, memory: 64G}}, with classes: [cpu, gpu].
{{- end}}
markets:
  - name: main
    mechanism: proportional
    classes: [cpu{{if .GPUs}}, gpu{{end}}]
    units:
      - {class: cpu, unit: {cpus: 1{{with .Memory 1}}, memory: {{.}}{{end}}}}
{{- if .GPUs}}
      - {class: gpu, unit: {gpus: 1, cpus: {{.CPUsOfGPU}}{{with .Memory .CPUsOfGPU}}, memory: {{.}}{{end}}}}
{{- end}}

# A node sells all processors, memory and GPUs of its machine, or only those that you name:
# {name: {{with .Hosts}}{{(index . 0).Name}}{{else}}node1{{end}}, resources: {cpus: 14, memory: 56G}}
nodes:
{{- range .Hosts}}
  - {name: {{.Name}}}
{{- else}}
  - {name: node1}
{{- end}}
{{- if .Users}}

# Tasks run as the user of the node that has the name of the job's account, with the
# user's files. Where accounts are not users of the nodes, remove this line: then each
# account gets a user number of its own.
tasks: {user: account}
{{- end}}
{{- if .Hosts}}

# Each is started with its name: candor up --config site.yaml --host NAME
hosts:
{{- range .Hosts}}
  - name: {{.Name}}
    listen: {{printf "%q" (.At 4222)}}     # clients
    leaf: {{printf "%q" (.At 7422)}}       # servers of peers
    cluster: {{printf "%q" (.At 6222)}}    # servers of the other hosts
    auctioneer: {{printf "%q" (.At 7001)}} # Raft
    bank: {{printf "%q" (.At 7002)}}
    nodes: [{{.Name}}]
{{- end}}
{{- end}}
`
