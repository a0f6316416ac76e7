package istio

import (
	"fmt"
	"strconv"
	"time"
)

// filterName is the name of the filter in Envoy, or how it begins.
const filterName = "weir"

// The names by which Envoy knows the types of the values here.
const (
	typeKey           = "@type"
	typeExtProc       = "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"
	typeExtProcRoute  = "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute"
	typeFilterConfig  = "type.googleapis.com/envoy.config.route.v3.FilterConfig"
	typePreviousHosts = "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
)

// What the filter is configured with.
const (
	// MessageTimeout is what a data plane that hangs costs a request, at most, until it goes on without.
	MessageTimeout = time.Second
	// MaxMessageTimeout is to what a held request may extend it: the longest maxWait of a policy.
	MaxMessageTimeout = 60 * time.Second
)

// Metadata by which the data plane knows what is in force on a route.
const (
	metadataPolicy = "x-weir-policy"
	metadataScope  = "x-weir-scope"
)

type object = map[string]any

// filter is the HTTP filter, off until a route turns it on.
func filter(name, host string, port int32) object {
	return object{
		"name":     name,
		"disabled": true,
		"typed_config": object{
			typeKey: typeExtProc,
			"grpc_service": object{
				// The authority would be the cluster's name, which a sidecar before the data plane takes for no host.
				"envoy_grpc": object{"cluster_name": cluster(host, port), "authority": host},
				// A stream whose replica died before it answered goes to another one.
				"retry_policy": object{
					"retry_on":                          "connect-failure,refused-stream,reset,unavailable",
					"num_retries":                       int64(2),
					"host_selection_retry_max_attempts": int64(5),
					"retry_host_predicate": []any{object{
						"name":         "previous_hosts",
						"typed_config": object{typeKey: typePreviousHosts},
					}},
					"retry_back_off": object{"base_interval": "0.005s", "max_interval": "0.05s"},
				},
			},
			"failure_mode_allow":  true, // a cache that is gone takes nothing with it
			"message_timeout":     seconds(MessageTimeout),
			"max_message_timeout": seconds(MaxMessageTimeout),
			"allow_mode_override": true, // bodies are copied only when the data plane asks for them
			"processing_mode": object{
				"request_header_mode": "SEND", "response_header_mode": "SEND",
				"request_body_mode": "NONE", "response_body_mode": "NONE",
				"request_trailer_mode": "SKIP", "response_trailer_mode": "SKIP",
			},
			"response_attributes": []any{"response.code_details"}, // tells an origin's answer from Envoy's own
			"metadata_options":    object{"receiving_namespaces": object{"untyped": []any{"weir"}}},
		},
	}
}

// turnOn is what is merged into a route: the filter, on, and what is in force.
func turnOn(filter, policy, scope string) object {
	return object{"typed_per_filter_config": object{filter: object{
		typeKey: typeFilterConfig,
		"config": object{
			typeKey: typeExtProcRoute,
			"overrides": object{"grpc_initial_metadata": []any{
				object{"key": metadataPolicy, "value": policy},
				object{"key": metadataScope, "value": scope},
			}},
		},
	}}}
}

// cluster is the name of the cluster that istiod makes of the port of a Service.
func cluster(host string, port int32) string {
	return fmt.Sprintf("outbound|%d||%s", port, host)
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}
