{{/* The first part of names. 36 characters leave room for the longest suffix: a CronJob's name may have 52. */}}
{{- define "weir.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}{{ $name = .Values.fullnameOverride }}
{{- else if not (contains $name .Release.Name) }}{{ $name = printf "%s-%s" .Release.Name $name }}
{{- else }}{{ $name = .Release.Name }}{{ end }}
{{- $name | trunc 36 | trimSuffix "-" }}
{{- end }}

{{- define "weir.namespace" -}}
{{ default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{/* The labels by which pods are found: list ROOT COMPONENT. They must not change between releases. */}}
{{- define "weir.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride | trunc 63 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The labels of an object: list ROOT COMPONENT. */}}
{{- define "weir.labels" -}}
{{- $root := index . 0 }}
{{- $own := include "weir.selectorLabels" . | fromYaml }}
{{- $_ := set $own "app.kubernetes.io/part-of" "weir" }}
{{- $_ := set $own "app.kubernetes.io/managed-by" $root.Release.Service }}
{{- $_ := set $own "app.kubernetes.io/version" $root.Chart.AppVersion }}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") }}
{{- toYaml (merge $own $root.Values.commonLabels) }}
{{- end }}

{{/* The metadata of an object: list ROOT COMPONENT SUFFIX. */}}
{{- define "weir.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "weir.fullname" $root }}-{{ index . 2 }}
namespace: {{ include "weir.namespace" $root }}
labels:
  {{- include "weir.labels" . | nindent 2 }}
{{- end }}

{{/* An image: list ROOT VALUES. */}}
{{- define "weir.image" -}}
{{- $root := index . 0 }}{{ $image := index . 1 }}
{{- with $root.Values.image.registry }}{{ . }}/{{ end }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default $root.Chart.AppVersion $image.tag }}{{ end }}
{{- end }}

{{/* The name of a component's ServiceAccount: list ROOT COMPONENT VALUES. */}}
{{- define "weir.serviceAccountName" -}}
{{- $own := printf "%s-%s" (include "weir.fullname" (index . 0)) (index . 1) }}
{{- with index . 2 }}{{ if .serviceAccount.create }}{{ default $own .serviceAccount.name }}
{{- else }}{{ default "default" .serviceAccount.name }}{{ end }}{{ end }}
{{- end }}

{{/* Where pods of a component run: list ROOT COMPONENT VALUES. */}}
{{- define "weir.scheduling" -}}
{{- $root := index . 0 }}{{ $component := index . 1 }}{{ $values := index . 2 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
{{- $selector := dict "matchLabels" (include "weir.selectorLabels" (list $root $component) | fromYaml) }}
topologySpreadConstraints:
  {{- range . }}
  - {{- toYaml (merge (deepCopy .) (dict "labelSelector" $selector)) | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* A PodDisruptionBudget's bound: VALUES. */}}
{{- define "weir.disruption" -}}
{{- if and (not (kindIs "invalid" .minAvailable)) (not (kindIs "invalid" .maxUnavailable)) }}
{{- fail "podDisruptionBudget: set minAvailable or maxUnavailable, not both" }}
{{- else if not (kindIs "invalid" .minAvailable) }}minAvailable: {{ .minAvailable }}
{{- else if not (kindIs "invalid" .maxUnavailable) }}maxUnavailable: {{ .maxUnavailable }}
{{- else }}maxUnavailable: 1
{{- end }}
{{- end }}

{{/* The Secret of a component's certificate (tls.crt, tls.key, ca.crt): list ROOT COMPONENT. */}}
{{- define "weir.tlsSecret" -}}
{{- $root := index . 0 }}{{ $component := index . 1 }}
{{- if eq $root.Values.tls.mode "Secrets" }}
{{- required (printf "tls.secrets.%s: name the Secret, tls.mode is Secrets" $component) (get $root.Values.tls.secrets $component) }}
{{- else }}{{ include "weir.fullname" $root }}-{{ $component }}-tls{{ end }}
{{- end }}

{{/* The Secret with the keys of --secret-file. */}}
{{- define "weir.keysSecret" -}}
{{- default (printf "%s-keys" (include "weir.fullname" .)) .Values.keys.existingSecret }}
{{- end }}

{{/* The name under which a component's Service is reached, and that its certificate bears: list ROOT COMPONENT. */}}
{{- define "weir.host" -}}
{{ include "weir.fullname" (index . 0) }}-{{ index . 1 }}.{{ include "weir.namespace" (index . 0) }}.svc
{{- end }}

{{/* The names that a component's certificate bears: list ROOT COMPONENT. */}}
{{- define "weir.hosts" -}}
{{- $host := include "weir.host" . }}
{{- list $host (printf "%s.cluster.local" $host) (trimSuffix ".svc" $host) (index (splitList "." $host) 0) | join "," }}
{{- end }}

{{/* "true" where Envoy gets a certificate of its own. */}}
{{- define "weir.envoyCertificate" -}}
{{- with .Values.extproc }}{{ if and (eq .callers "Certificate") .envoyCertificate.enabled (ne $.Values.tls.mode "Secrets") }}true{{ end }}{{ end }}
{{- end }}

{{/* "true" where a certificate is of use at all. */}}
{{- define "weir.certificates" -}}
{{- if or .Values.controller.enabled .Values.extproc.tls.enabled }}true{{ end }}
{{- end }}
