{{- define "candor.name" -}}
{{- $name := ternary .Release.Name (printf "%s-candor" .Release.Name) (contains "candor" .Release.Name) -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "candor.labels" -}}
app.kubernetes.io/name: candor
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "candor.selector" -}}
app.kubernetes.io/name: candor
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "candor.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What every configuration of the site has in common. */}}
{{- define "candor.site" -}}
site: {{ .Values.site.name }}
# Within the cluster's network; ports between hosts are TLS by the site's keys.
plaintext: true
metrics_public: true
{{- with .Values.site.lease }}
lease: {{ . }}
{{- end }}
operators: {{ .Values.site.operators | toJson }}
accounts: {{ .Values.site.accounts | toJson }}
markets: {{ .Values.site.markets | toJson }}
{{- with .Values.site.profiles }}
profiles: {{ . | toJson }}
{{- end }}
{{- end }}

{{- define "candor.security" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end }}
