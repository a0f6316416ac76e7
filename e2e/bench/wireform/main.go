// Command wireform measures which form of a hit costs least: one
// ImmediateResponse, or a StreamedImmediateResponse in chunks of 64 KiB. It
// serves constants through a real Envoy and reads the CPU time of Envoy and of
// itself from /proc, so that a noisy machine does not matter. Its findings are
// in docs/design/0002-wire-form.md.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc"

	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/wire"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := harness.Run(ctx, os.Stderr, measure); err != nil {
		fmt.Fprintln(os.Stderr, "wireform:", err)
		os.Exit(1)
	}
}

// form answers one request with a body.
type form struct {
	name   string
	answer func(stream grpc.ServerStream, body []byte, prepared []byte) error
}

var answerHead = wire.Answer{Status: 200, Header: httpcache.Fields{ //nolint:gochecknoglobals // a constant
	{Name: "content-type", Value: "application/octet-stream"}, {Name: "etag", Value: `"v1"`},
}}

func forms() []form {
	perHit := func() []byte {
		return wire.AppendPerHit(nil, wire.PerHit{Age: []byte("3"), CacheStatus: []byte("weir; hit; ttl=50")})
	}
	return []form{
		{"immediate", func(s grpc.ServerStream, _, prepared []byte) error {
			return s.SendMsg(wire.Prepared(prepared, perHit()))
		}},
		{"streamed", func(s grpc.ServerStream, body, _ []byte) error {
			head := answerHead
			head.Header = append(head.Header[:2:2], httpcache.Field{Name: "content-length", Value: strconv.Itoa(len(body))})
			if err := s.SendMsg(wire.StreamHead(head, false)); err != nil {
				return err
			}
			for len(body) > wire.ChunkSize {
				if err := s.SendMsg(wire.StreamChunk(body[:wire.ChunkSize], false)); err != nil {
					return err
				}
				body = body[wire.ChunkSize:]
			}
			return s.SendMsg(wire.StreamChunk(body, true))
		}},
	}
}

func measure(tb harness.TB) {
	origin := harness.StartOrigin(tb)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "body\tform\trequests/s\tEnvoy µs\tserver µs\ttogether\t")
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20} {
		body := harness.GeneratedBody(size)
		prepared, _ := wire.PrepareImmediate(answerHead, body)
		for _, f := range forms() {
			server := grpc.NewServer(grpc.ForceServerCodecV2(wire.NewCodec()), grpc.WriteBufferSize(128<<10))
			register(server, func(s grpc.ServerStream) error {
				var m wire.Message
				if err := s.RecvMsg(&m); err != nil {
					return err
				}
				return f.answer(s, body, prepared)
			})
			address := serve(tb, server)
			envoy := harness.StartEnvoy(tb, harness.EnvoyOptions{
				Origins: []string{origin.Address()}, Concurrency: 1,
			})
			envoy.SetWeir(address)
			check(tb, envoy.URL("/"), size)
			load(tb, envoy.URL("/"), time.Second)
			envoyBefore, selfBefore := cpu(child(tb, "envoy")), cpu(os.Getpid())
			n, seconds := load(tb, envoy.URL("/"), 4*time.Second)
			e := (cpu(child(tb, "envoy")) - envoyBefore) * 1e6 / n
			s := (cpu(os.Getpid()) - selfBefore) * 1e6 / n
			fmt.Fprintf(out, "%d KiB\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t\n", size>>10, f.name, n/seconds, e, s, e+s)
			envoy.Stop()
			server.Stop()
		}
	}
	_ = out.Flush()
}

func register(s *grpc.Server, handle func(grpc.ServerStream) error) {
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: extproc.ServiceName, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: "Process", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return handle(stream) },
		}},
	}, struct{}{})
}

func serve(tb harness.TB, s *grpc.Server) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	go func() { _ = s.Serve(l) }()
	return l.Addr().String()
}

func check(tb harness.TB, url string, size int) {
	r := harness.Do(tb, harness.Get(url))
	if r.Status != http.StatusOK || len(r.Body) != size {
		tb.Fatalf("got %d with %d bytes, want 200 with %d", r.Status, len(r.Body), size)
	}
}

// load runs wrk for d and returns how many requests it made in how many seconds.
func load(tb harness.TB, url string, d time.Duration) (requests, seconds float64) {
	cmd := exec.CommandContext(tb.Context(), "wrk", "-t1", "-c8", "-d"+d.String(), url)
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("wrk (install it with apt-get install wrk): %v", err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) > 2 && f[1] == "requests" {
			requests, _ = strconv.ParseFloat(f[0], 64)
			took, _ := time.ParseDuration(strings.TrimSuffix(f[3], ","))
			seconds = took.Seconds()
		}
	}
	if requests == 0 {
		tb.Fatalf("wrk made no request:\n%s", out)
	}
	return requests, seconds
}

// child returns the process of ours with the given name.
func child(tb harness.TB, name string) int {
	all, err := os.ReadDir("/proc")
	if err != nil {
		tb.Fatalf("read /proc: %v", err)
	}
	for _, d := range all {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + d.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), "("+name+")")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) && f[0] != "Z" {
			return pid
		}
	}
	tb.Fatalf("no child process %s", name)
	return 0
}

// cpu returns the CPU time of a process in seconds.
func cpu(pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100 // USER_HZ
}
