package httpcache

// Tunnels reports whether a request asks for more than one answer: an upgrade
// (RFC 9110 §7.8) or a gRPC call. Its stream must not be watched for as long as
// the tunnel lives.
func Tunnels(req *Request) bool {
	if req.Method == "CONNECT" {
		return true
	}
	for i := range req.Header {
		switch fieldPasses(&req.Header[i]) {
		case ReasonUpgrade, ReasonGRPC:
			return true
		}
	}
	return false
}
