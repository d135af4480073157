{{- /* Written by tools/make_helm_chart.py. */ -}}
{{- define "tenure-operator.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "tenure-operator.args" -}}
{{- if and .Values.webhooks.certManager (not .Values.webhooks.enabled) }}
{{- fail "webhooks.certManager: there is no certificate without webhooks.enabled" }}
{{- end }}
{{- if and .Values.namespaces (has "in-cluster" .Values.controllers) }}
{{- fail "controllers: in-cluster has no roles for single namespaces here; `tenure manifests --namespaces` prints them" }}
{{- end }}
{{- if and .Values.render.claimsByHost (not (has "render" .Values.controllers)) }}
{{- fail "render.claimsByHost: render is not among controllers" }}
{{- end }}
{{- if and .Values.render.likeCapm3 (not (has "render" .Values.controllers)) }}
{{- fail "render.likeCapm3: render is not among controllers" }}
{{- end }}
- "operator"
- "--host"
- "0.0.0.0"
- "--port"
- "8081"
- "--log"
- {{ .Values.log }}
{{- if ne (join "," .Values.controllers) "metal3,capi" }}
- --controllers
- {{ join "," .Values.controllers | quote }}
{{- end }}
{{- if ne (join "," .Values.namespaces) "" }}
- --namespaces
- {{ join "," .Values.namespaces | quote }}
{{- end }}
{{- if ne (toString .Values.defaultStrategy) "sequential" }}
- --default-strategy
- {{ toString .Values.defaultStrategy | quote }}
{{- end }}
{{- if .Values.allowOutsidePreAllocations }}
- --allow-outside-preallocations
{{- end }}
{{- if ne (toString .Values.watchFilter) "" }}
- --watch-filter
- {{ toString .Values.watchFilter | quote }}
{{- end }}
{{- if ne (toString .Values.orphanGraceSeconds) "600" }}
- --orphan-grace
- {{ toString .Values.orphanGraceSeconds | quote }}
{{- end }}
{{- if .Values.metrics.auth }}
- --metrics-auth
{{- end }}
{{- if .Values.render.claimsByHost }}
- --enable-bmh-name-based-preallocation
{{- end }}
{{- if .Values.render.likeCapm3 }}
- --render-like-capm3
{{- end }}
{{- if not .Values.webhooks.enabled }}
- --no-webhooks
{{- end }}
{{- if .Values.webhooks.certManager }}
- --webhook-certificates
- /certificates
{{- end }}
{{- end }}
