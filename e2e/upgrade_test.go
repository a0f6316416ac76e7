package e2e_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/e2e/harness"
)

// frames is how often each side of a tunnel speaks.
const frames = 50

// startEcho starts an origin that switches to the protocol asked for and sends back what comes. It answers before it
// reads the request's body, if there is one: Envoy, with or without weir, sends none before it has the answer.
func startEcho(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer func() { _ = conn.Close() }()
		// Cache-Control is bait: a switch of protocols is no answer that could be stored.
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"+
			"Cache-Control: max-age=60\r\n\r\n", r.Header.Get("Upgrade"))
		_, _ = io.Copy(conn, buffered) // until the client is gone
	}))
	t.Cleanup(server.Close)
	return server
}

// TestUpgradePassesBy: 101 and then bytes both ways, while weir is long out of it: its stream ends at once instead of
// living as long as the socket.
func TestUpgradePassesBy(t *testing.T) {
	t.Parallel()
	echo := startEcho(t)
	e := startEdge(t, edgeOptions{Envoy: harness.EnvoyOptions{
		Origins: []string{echo.Listener.Addr().String()}, Upgrades: []string{"websocket", "foo"},
	}})
	defer e.settles()
	requests := map[string]string{
		"websocket": "GET /socket HTTP/1.1\r\nHost: shop.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n\r\n",
		"foo": "POST /socket HTTP/1.1\r\nHost: shop.test\r\nConnection: Upgrade\r\nUpgrade: foo\r\n" +
			"Content-Length: 9\r\n\r\nnine byte",
	}
	for protocol, request := range requests {
		conn := harness.Dial(t, e.envoy.Address())
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatalf("%s: %v", protocol, err)
		}
		tunnel := bufio.NewReader(conn)
		resp, err := http.ReadResponse(tunnel, nil)
		if err != nil || resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != protocol {
			t.Fatalf("%s: answer %+v, error %v", protocol, resp, err)
		}
		_, body, _ := strings.Cut(request, "\r\n\r\n")
		wantEcho(t, conn, tunnel, body)
		e.quiet() // although the tunnel is open
		wantEcho(t, conn, tunnel, "")
		e.hangUp(conn)
	}
	if n := e.status().Store.Entries; n != 0 {
		t.Errorf("%d entries are stored", n)
	}
	e.wantOutcomes(map[string]int{"bypass_request": len(requests)})
}

// wantEcho reads what is due, then has the other side send back one frame after another.
func wantEcho(t *testing.T, conn net.Conn, tunnel io.Reader, due string) {
	t.Helper()
	for i := range frames {
		frame := fmt.Sprintf("frame %d", i)
		if _, err := io.WriteString(conn, frame); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		want := due + frame
		due = ""
		got := make([]byte, len(want))
		if _, err := io.ReadFull(tunnel, got); err != nil || string(got) != want {
			t.Fatalf("frame %d came back as %q: %v", i, got, err)
		}
	}
}

// TestGRPCPassesBy: a bidirectional gRPC stream, message by message, while weir is out of it.
func TestGRPCPassesBy(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		for {
			var m wrapperspb.StringValue
			if err := stream.RecvMsg(&m); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := stream.SendMsg(&m); err != nil {
				return err
			}
		}
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	e := startEdge(t, edgeOptions{Envoy: harness.EnvoyOptions{
		Origins: []string{listener.Addr().String()}, OriginHTTP2: true,
	}})
	defer e.settles()
	client, err := grpc.NewClient(e.envoy.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()

	both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	stream, err := client.NewStream(t.Context(), both, "/chat.Chat/Talk")
	if err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		sent, got := wrapperspb.String(fmt.Sprint("message ", i)), new(wrapperspb.StringValue)
		if err := stream.SendMsg(sent); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if err := stream.RecvMsg(got); err != nil || got.Value != sent.Value {
			t.Fatalf("message %d came back as %q: %v", i, got.Value, err)
		}
	}
	e.quiet() // although the stream is open
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(new(wrapperspb.StringValue)); !errors.Is(err, io.EOF) {
		t.Errorf("the end of the stream: %v", err)
	}
	e.wantOutcomes(map[string]int{"bypass_request": 1})
}
