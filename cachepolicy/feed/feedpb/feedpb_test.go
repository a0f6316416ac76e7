package feedpb_test

import (
	"bytes"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	wire, err := feedpb.Wrap(feed.Resource{Name: "policy/a/b", Version: "v", Data: []byte("data")})
	if err != nil {
		t.Fatal(err)
	}
	if wire.GetName() != "policy/a/b" || wire.GetVersion() != "v" || wire.GetResource().GetTypeUrl() != feedpb.TypeURL {
		t.Errorf("wire %v", wire)
	}
	if got, err := feedpb.Unwrap(wire); err != nil || !bytes.Equal(got, []byte("data")) {
		t.Errorf("%q, %v", got, err)
	}
}

func anyOf(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestUnwrapRefuses(t *testing.T) {
	t.Parallel()
	config := func(name string, inner proto.Message) *anypb.Any {
		return anyOf(t, &corev3.TypedExtensionConfig{Name: name, TypedConfig: anyOf(t, inner)})
	}
	for want, r := range map[string]*discoveryv3.Resource{
		"type \"\"":          {Name: "a"},
		"google.protobuf":    {Name: "a", Resource: anyOf(t, durationpb.New(1))},
		`is named "b"`:       {Name: "a", Resource: config("b", wrapperspb.Bytes(nil))},
		"mismatched message": {Name: "a", Resource: config("a", durationpb.New(1))},
		"cannot parse":       {Name: "a", Resource: &anypb.Any{TypeUrl: feedpb.TypeURL, Value: []byte{0xff}}},
		`want ""`:            {Name: "a", Resource: anyOf(t, &corev3.TypedExtensionConfig{Name: "a", TypedConfig: &anypb.Any{}})},
	} {
		if _, err := feedpb.Unwrap(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestFrames: what is said comes through, and what a newer release says beside it is passed over.
func TestFrames(t *testing.T) {
	t.Parallel()
	frame, err := feedpb.Frame(feed.Report{Replica: "weir-0", Synced: true})
	if err != nil {
		t.Fatal(err)
	}
	var got feed.Report
	if err := feedpb.ReadFrame(frame, &got); err != nil || got.Replica != "weir-0" || !got.Synced {
		t.Errorf("%+v, %v", got, err)
	}
	if err := feedpb.ReadFrame(wrapperspb.Bytes([]byte(`{"replica":"a","mood":"good"}`)), &got); err != nil {
		t.Error(err)
	}
	if err := feedpb.ReadFrame(wrapperspb.Bytes([]byte(`{`)), &got); err == nil {
		t.Error("half a frame is read")
	}
	if _, err := feedpb.Frame(feed.Report{Replica: strings.Repeat("x", feedpb.MaxMessageBytes)}); err == nil {
		t.Error("a frame beyond the bound is made")
	}
}
