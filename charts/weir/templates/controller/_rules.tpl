{{/* The rules in files/rbac, which config/rbac gives: list ROOT NAME. */}}
{{- define "weir.rules" -}}
{{- $root := index . 0 }}
{{- toYaml (get ($root.Files.Get (printf "files/rbac/%s.yaml" (index . 1)) | fromYaml) "rules") }}
{{- end }}

{{/* The name of what the controller has in the whole cluster. */}}
{{- define "weir.clusterName" -}}
{{ include "weir.namespace" . }}-{{ include "weir.fullname" . }}-controller
{{- end }}
