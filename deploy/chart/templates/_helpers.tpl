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
{{- if .Values.tls.secret }}
tls: {cert: /tls/tls.crt, key: /tls/tls.key, ca: /tls/ca.crt}
{{- else }}
# Within the cluster's network; ports between replicas are TLS by the site's keys.
plaintext: true
{{- end }}
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
{{- if .Values.userID }}
capabilities: {drop: [ALL]}
{{- else }}
# To start, end and clean up after tasks of other users, and nothing else.
capabilities: {drop: [ALL], add: [CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETPCAP, SETUID]}
{{- end }}
{{- end }}

{{- define "candor.podSecurity" -}}
runAsNonRoot: {{ ne (int .Values.userID) 0 }}
runAsUser: {{ .Values.userID }}
runAsGroup: {{ .Values.userID }}
{{- if .Values.userID }}
fsGroup: {{ .Values.userID }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "candor.secretMode" -}}
{{ ternary "0440" "0400" (ne (int .Values.userID) 0) }}
{{- end }}

{{/* The URL scheme of clients. */}}
{{- define "candor.scheme" -}}
{{ ternary "tls" "nats" (ne .Values.tls.secret "") }}
{{- end }}
