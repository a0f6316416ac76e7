package extproc

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/wire"
)

// decodeReply reads a reply as Envoy does: by the generated types, all pieces of
// the message merged.
func decodeReply(r *wire.Reply) (*extprocv3.ProcessingResponse, error) {
	p := new(extprocv3.ProcessingResponse)
	if err := proto.Unmarshal(r.Bytes(), p); err != nil {
		return nil, err
	}
	return p, nil
}

// replyFields are the fields that a list of options leads to, in Envoy's way: a
// later value of a name takes the place of an earlier one, unless it appends.
func replyFields(options []*corev3.HeaderValueOption) httpcache.Fields {
	var out httpcache.Fields
	for _, o := range options {
		f := httpcache.Field{Name: o.GetHeader().GetKey(), Value: string(o.GetHeader().GetRawValue())}
		if !o.GetAppend().GetValue() { //nolint:staticcheck // the one form that ImmediateResponse honours
			kept := out[:0]
			for _, old := range out {
				if old.Name != f.Name {
					kept = append(kept, old)
				}
			}
			out = kept
		}
		out = append(out, f)
	}
	return out
}

// describeReply says in one line what Envoy is told.
func describeReply(r *wire.Reply) string {
	p, err := decodeReply(r)
	if err != nil {
		return "a reply that does not parse: " + err.Error()
	}
	line := ""
	switch answer := p.Response.(type) {
	case *extprocv3.ProcessingResponse_RequestHeaders:
		line = "request goes on" + describeMutation(answer.RequestHeaders.GetResponse())
	case *extprocv3.ProcessingResponse_ResponseHeaders:
		line = describeResponseReply(answer.ResponseHeaders.GetResponse())
		if mode := p.GetModeOverride(); mode != nil {
			line += fmt.Sprintf("; copy it here: response_body_mode %s, response_trailer_mode %s",
				mode.GetResponseBodyMode(), mode.GetResponseTrailerMode())
		}
	case *extprocv3.ProcessingResponse_RequestBody:
		line = "request body goes on"
	case *extprocv3.ProcessingResponse_ResponseBody:
		line = "chunk goes on"
	case *extprocv3.ProcessingResponse_RequestTrailers:
		line = "request trailers go on"
	case *extprocv3.ProcessingResponse_ResponseTrailers:
		line = "trailers go on"
	case *extprocv3.ProcessingResponse_ImmediateResponse:
		a := answer.ImmediateResponse
		line = fmt.Sprintf("answer %d in one message: %s, %s", a.GetStatus().GetCode(),
			describeFields(replyFields(a.GetHeaders().GetSetHeaders())), describeBody(a.GetBody()))
	case *extprocv3.ProcessingResponse_StreamedImmediateResponse:
		line = describeStreamHead(answer.StreamedImmediateResponse.GetHeadersResponse())
	case nil:
		line = "an empty reply"
		if d := p.GetOverrideMessageTimeout(); d != nil {
			line = "wait up to " + shortDuration(d.AsDuration()) + " (override_message_timeout)"
		}
	}
	return line + describeMetadata(p)
}

func describeResponseReply(a *extprocv3.CommonResponse) string {
	if a.GetStatus() != extprocv3.CommonResponse_CONTINUE_AND_REPLACE {
		return "response goes on" + describeMutation(a)
	}
	fields := replyFields(a.GetHeaderMutation().GetSetHeaders())
	line := "replace the response by " + fields.Get(":status")
	var rest httpcache.Fields
	for _, f := range fields {
		if f.Name != ":status" {
			rest = append(rest, f)
		}
	}
	line += ": " + describeFields(rest)
	if remove := a.GetHeaderMutation().GetRemoveHeaders(); len(remove) > 0 {
		line += ", without its " + strings.Join(remove, ", ")
	}
	return line + ", " + describeBody(a.GetBodyMutation().GetBody())
}

func describeMutation(a *extprocv3.CommonResponse) string {
	var parts []string
	if set := a.GetHeaderMutation().GetSetHeaders(); len(set) > 0 {
		parts = append(parts, "set "+describeFields(replyFields(set)))
	}
	if remove := a.GetHeaderMutation().GetRemoveHeaders(); len(remove) > 0 {
		parts = append(parts, "remove "+strings.Join(remove, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

func describeStreamHead(h *extprocv3.HttpHeaders) string {
	var fields httpcache.Fields
	status := ""
	for _, v := range h.GetHeaders().GetHeaders() {
		if v.GetKey() == ":status" {
			status = string(v.GetRawValue())
			continue
		}
		fields = append(fields, httpcache.Field{Name: v.GetKey(), Value: string(v.GetRawValue())})
	}
	line := "answer " + status + " as a stream: " + describeFields(fields)
	if h.GetEndOfStream() {
		line += ", no body"
	}
	return line
}

func describeMetadata(p *extprocv3.ProcessingResponse) string {
	weir := p.GetDynamicMetadata().GetFields()["weir"].GetStructValue().GetFields()
	if weir == nil {
		return ""
	}
	return "; access log: " + weir["outcome"].GetStringValue() + " " + weir["policy"].GetStringValue()
}

func describeFields(fields httpcache.Fields) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Name + "=" + quoted(f.Value)
	}
	if len(parts) == 0 {
		return "no fields"
	}
	return strings.Join(parts, ", ")
}

// quoted leaves a value as it is where it reads as one word.
func quoted(s string) string {
	switch {
	case len(s) > 100:
		return fmt.Sprintf("(%d bytes)", len(s))
	case strings.HasPrefix(s, `"`) && strings.HasSuffix(s, `"`) && strings.Count(s, `"`) == 2:
		return s
	case s == "" || strings.ContainsAny(s, " ,;\"\\") || !sendable(httpcache.Field{Name: "x", Value: s}):
		return fmt.Sprintf("%q", s)
	}
	return s
}

func describeBody(b []byte) string {
	switch {
	case len(b) == 0:
		return "no body"
	case len(b) > 400:
		return fmt.Sprintf("body of %d bytes", len(b))
	}
	return fmt.Sprintf("body %q", b)
}

// shortDuration writes 1m30s, and 10m without its 0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// chance replaces what is drawn at random, by which no test should be held.
func chance(s string) string { return randomBoundary.ReplaceAllString(s, "BOUNDARY") }

var randomBoundary = regexp.MustCompile(`weir-[0-9a-f]{8,}|[0-9a-f]{32}`)
