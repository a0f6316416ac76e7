{{/* What the controller may do in the whole cluster: config/rbac says the same. */}}
{{- define "weir.clusterRules" -}}
- apiGroups: [weir.dev]
  resources: [cachepolicies]
  verbs: [get, list, watch]
- apiGroups: [weir.dev]
  resources: [cacheinvalidations]
  verbs: [get, list, watch, delete]
- apiGroups: [weir.dev]
  resources: [cachepolicies/status, cacheinvalidations/status]
  verbs: [get, update, patch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses, gateways, httproutes, referencegrants]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways/status, httproutes/status]
  verbs: [get, update, patch]
- apiGroups: [""]
  resources: [namespaces, services]
  verbs: [get, list, watch]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- if has "envoy-gateway" .Values.controller.attach }}
- apiGroups: [gateway.envoyproxy.io]
  resources: [envoyextensionpolicies]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [gateway.envoyproxy.io]
  resources: [securitypolicies, backendtrafficpolicies]
  verbs: [get, list, watch]
{{- end }}
{{- if has "istio" .Values.controller.attach }}
- apiGroups: [networking.istio.io]
  resources: [envoyfilters]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [networking.istio.io]
  resources: [virtualservices, gateways]
  verbs: [get, list, watch]
{{- end }}
{{- end }}

{{/* What it may do in its own namespace only. */}}
{{- define "weir.namespaceRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, update, patch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
{{- if has "envoy-gateway" .Values.controller.attach }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [referencegrants]
  verbs: [create, update, patch, delete]
{{- end }}
{{- end }}
