// Package feedpb is the feed as protobuf messages: resources as they travel over
// xDS, and the frames of the control stream. Both sides use it.
package feedpb

import (
	"encoding/json"
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

const (
	// TypeURL is the type of all resources.
	TypeURL = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
	// ControlService has one method, ControlConnect: the control stream.
	ControlService = "weir.feed.v1.Control"
	// ControlConnect is its full name.
	ControlConnect = "/" + ControlService + "/Connect"
	// MaxMessageBytes bounds a message of either stream.
	MaxMessageBytes = 4 << 20
	// MaxResponseBytes is where a response ends; one more resource may stand in it.
	MaxResponseBytes = 1 << 20
	// More is the system_version_info of a response after which more follow before
	// the subscriber has all that there is; that of the last one is empty.
	More = "more"
)

// ControlStream describes the control stream: frames in both directions.
func ControlStream(handler grpc.StreamHandler) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: ControlService,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: "Connect", ServerStreams: true, ClientStreams: true, Handler: handler,
		}},
	}
}

// Wrap returns a resource as it travels over xDS.
func Wrap(r feed.Resource) (*discoveryv3.Resource, error) {
	inner, err := anypb.New(wrapperspb.Bytes(r.Data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name, err)
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(
		&corev3.TypedExtensionConfig{Name: r.Name, TypedConfig: inner})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name, err)
	}
	return &discoveryv3.Resource{
		Name: r.Name, Version: r.Version, Resource: &anypb.Any{TypeUrl: TypeURL, Value: value},
	}, nil
}

// Unwrap returns the data of a resource that came over xDS.
func Unwrap(r *discoveryv3.Resource) ([]byte, error) {
	if r.GetResource().GetTypeUrl() != TypeURL {
		return nil, fmt.Errorf("type %q, want %s", r.GetResource().GetTypeUrl(), TypeURL)
	}
	var config corev3.TypedExtensionConfig
	if err := proto.Unmarshal(r.GetResource().GetValue(), &config); err != nil {
		return nil, err
	}
	if config.GetName() != r.GetName() {
		return nil, fmt.Errorf("the configuration in it is named %q", config.GetName())
	}
	var data wrapperspb.BytesValue
	if err := config.GetTypedConfig().UnmarshalTo(&data); err != nil {
		return nil, err
	}
	return data.GetValue(), nil
}

// Frame returns a message of the control stream: a [feed.Report] or [feed.Command].
func Frame(v any) (*wrapperspb.BytesValue, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(data) > MaxMessageBytes-16 {
		return nil, errors.New("the frame is too large")
	}
	return wrapperspb.Bytes(data), nil
}

// ReadFrame reads a message of the control stream into v. Fields that it does not
// know are passed over: the other side may be a newer release.
func ReadFrame(frame *wrapperspb.BytesValue, v any) error { return json.Unmarshal(frame.GetValue(), v) }
