{{/* "true" where weir makes certificates or keys of its own. */}}
{{- define "weir.makesSecrets" -}}
{{- if or (not .Values.keys.existingSecret) (and (eq .Values.tls.mode "SelfSigned") (include "weir.certificates" .)) }}true{{ end }}
{{- end }}

{{/* The Secrets that weir fills, one a line, as YAML. */}}
{{- define "weir.madeSecrets" -}}
{{- $fullname := include "weir.fullname" . }}
{{- if not .Values.keys.existingSecret }}
- {{ $fullname }}-keys
{{- end }}
{{- if and (eq .Values.tls.mode "SelfSigned") (include "weir.certificates" .) }}
- {{ $fullname }}-ca
- {{ $fullname }}-extproc-tls
{{- if .Values.controller.enabled }}
- {{ $fullname }}-controller-tls
{{- end }}
{{- if include "weir.envoyCertificate" . }}
- {{ $fullname }}-envoy-tls
{{- end }}
{{- end }}
{{- end }}

{{/* The pod that fills them. */}}
{{- define "weir.certificatesPod" -}}
{{- $v := .Values.controller }}
{{- $fullname := include "weir.fullname" . -}}
metadata:
  labels:
    {{- include "weir.labels" (list . "certificates") | nindent 4 }}
    # A proxy of a mesh would outlive the Job.
    sidecar.istio.io/inject: "false"
spec:
  {{- with include "weir.scheduling" (list . "certificates" (omit $v "topologySpreadConstraints" "affinity")) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  serviceAccountName: {{ $fullname }}-certificates
  restartPolicy: OnFailure
  securityContext:
    {{- toYaml $v.podSecurityContext | nindent 4 }}
  containers:
    - name: certificates
      image: {{ include "weir.image" (list . $v.image) }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - certs
        - --namespace={{ include "weir.namespace" . }}
        {{- if not .Values.keys.existingSecret }}
        - --keys={{ $fullname }}-keys/{{ .Values.keys.key }}
        {{- end }}
        {{- if and (eq .Values.tls.mode "SelfSigned") (include "weir.certificates" .) }}
        - --ca={{ $fullname }}-ca
        - --certificate={{ $fullname }}-extproc-tls={{ include "weir.hosts" (list . "extproc") }}
        {{- if $v.enabled }}
        - --certificate={{ $fullname }}-controller-tls={{ include "weir.hosts" (list . "controller") }}
        {{- end }}
        {{- if include "weir.envoyCertificate" . }}
        - --certificate={{ $fullname }}-envoy-tls=envoy
        {{- end }}
        - --days={{ .Values.tls.selfSigned.days }}
        {{- end }}
      resources:
        {{- toYaml .Values.tls.selfSigned.resources | nindent 8 }}
      securityContext:
        {{- toYaml $v.securityContext | nindent 8 }}
{{- end }}
