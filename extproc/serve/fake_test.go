package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/metrics"
)

// pipeListener is a listener in memory, which a synctest bubble can wait on.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	server, client := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fakeService holds each stream until it is answered or released.
type fakeService struct {
	extprocv3.UnimplementedExternalProcessorServer
	answers  chan struct{} // closed: held streams end
	released chan struct{} // closed by release
	deaf     bool          // held streams end at neither
}

func newFakeService() *fakeService {
	return &fakeService{answers: make(chan struct{}), released: make(chan struct{})}
}

// Process holds the stream; a first message that asks for it makes it panic.
func (f *fakeService) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	msg, err := stream.Recv()
	if err != nil {
		return err
	}
	if msg.GetObservabilityMode() {
		panic("asked to")
	}
	if f.deaf {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	select {
	case <-f.answers:
	case <-f.released:
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
	return nil
}

func (f *fakeService) parts() *parts {
	return &parts{
		register: func(r grpc.ServiceRegistrar) { extprocv3.RegisterExternalProcessorServer(r, f) },
		release:  func() { close(f.released) },
		close:    func() error { return nil },
		admin:    fakeBackend{},
	}
}

// fakeBackend knows its status only.
type fakeBackend struct{ admin.Backend }

func (fakeBackend) Status() admin.Status { return admin.Status{State: "fake"} }

// logBuffer keeps what is logged as JSON lines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// record returns the last record with the message.
func (l *logBuffer) record(msg string) (found map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		var r map[string]any
		if json.Unmarshal([]byte(line), &r) == nil && r["msg"] == msg {
			found = r
		}
	}
	return found
}

// house is a process on listeners in memory.
type house struct {
	*process
	log   *logBuffer
	stop  context.CancelFunc
	ended chan error
}

// startHouse starts a process over the parts and returns at once.
func startHouse(t *testing.T, p *parts, change func(*Config)) *house {
	t.Helper()
	h := &house{log: &logBuffer{}, ended: make(chan error, 1)}
	cfg := defaultConfig()
	if change != nil {
		change(cfg)
	}
	registry := prometheus.NewRegistry()
	env := environment{cfg: cfg, log: slog.New(slog.NewJSONHandler(h.log, nil)), registry: registry,
		metrics: metrics.New(registry, metrics.Build{}), started: time.Now(),
		ready: newReadiness(checkPolicies, checkWarmUp, checkServing)}
	l := &listeners{newPipeListener(), newPipeListener(), newPipeListener(), newPipeListener()}
	h.process = newProcess(env, &transport{}, l, p)
	ctx, cancel := context.WithCancel(t.Context())
	h.stop = cancel
	go func() { h.ended <- h.serve(ctx) }()
	return h
}

// get asks one of the process's HTTP ports.
func (h *house) get(t *testing.T, l net.Listener, path string) (status int, body string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{
		DialContext: l.(*pipeListener).dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// dial connects to the ext_proc port.
func (h *house) dial(t *testing.T, o ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	return dialGRPC(t, "passthrough:///pipe", insecure.NewCredentials(), append(o,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return h.listeners.grpc.(*pipeListener).dial(ctx, "", "")
		}))...)
}

func dialGRPC(t *testing.T, target string, creds credentials.TransportCredentials, o ...grpc.DialOption,
) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, append(o, grpc.WithTransportCredentials(creds))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// hold opens a stream, sends its first message and returns what tells how it
// ended: io.EOF is OK.
func hold(t *testing.T, conn *grpc.ClientConn, msg *extprocv3.ProcessingRequest) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	stream, err := extprocv3.NewExternalProcessorClient(conn).Process(t.Context())
	if err != nil {
		ended <- err
		return ended
	}
	if err := stream.Send(msg); err != nil {
		ended <- err
		return ended
	}
	go func() {
		_, err := stream.Recv()
		ended <- err
	}()
	return ended
}
