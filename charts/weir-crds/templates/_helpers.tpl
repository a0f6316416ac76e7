{{/* The annotations that values add to each definition. */}}
{{- define "weir-crds.annotations" -}}
{{- $own := dict }}
{{- if .Values.keep }}{{ $own = dict "helm.sh/resource-policy" "keep" }}{{ end }}
{{- with merge $own (omit .Values.annotations "controller-gen.kubebuilder.io/version") }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* The labels that values add to each definition. */}}
{{- define "weir-crds.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" .Chart.Name
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") }}
{{- toYaml (merge $own (omit .Values.labels "app.kubernetes.io/part-of" "gateway.networking.k8s.io/policy")) }}
{{- end }}
