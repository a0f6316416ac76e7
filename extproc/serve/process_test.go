package serve

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// healthOf asks the gRPC health service of the ext_proc port.
func healthOf(t *testing.T, conn *grpc.ClientConn, service string) string {
	t.Helper()
	r, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		return err.Error()
	}
	return r.GetStatus().String()
}

func wantEnded(t *testing.T, what string, ended <-chan error, want error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, want) {
			t.Errorf("%s ended with %v, want %v", what, err, want)
		}
	default:
		t.Errorf("%s has not ended", what)
	}
}

func wantOpen(t *testing.T, what string, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		t.Fatalf("%s ended already: %v", what, err)
	default:
	}
}

// TestDrain follows a process from SIGTERM to its end, with one held request
// that is answered in time.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		svc := newFakeService()
		h := startHouse(t, svc.parts(), nil)
		conn := h.dial(t)
		synctest.Wait()
		if code, _ := h.get(t, h.listeners.health, "/readyz"); code != 200 {
			t.Errorf("/readyz %d before the drain, want 200", code)
		}
		for _, service := range []string{"", extprocv3.ExternalProcessor_ServiceDesc.ServiceName} {
			if got := healthOf(t, conn, service); got != "SERVING" {
				t.Errorf("health of %q is %s, want SERVING", service, got)
			}
		}
		held := hold(t, conn, &extprocv3.ProcessingRequest{})
		synctest.Wait()

		h.stop() // SIGTERM
		synctest.Wait()
		code, body := h.get(t, h.listeners.health, "/readyz")
		if code != 503 || !strings.Contains(body, "[-] serving: draining") {
			t.Errorf("/readyz %d %q, want 503 and why", code, body)
		}
		if code, _ := h.get(t, h.listeners.health, "/healthz"); code != 200 {
			t.Errorf("/healthz %d, want 200: the process is well", code)
		}
		if got := healthOf(t, conn, ""); got != "NOT_SERVING" {
			t.Errorf("gRPC health %s, want NOT_SERVING", got)
		}
		late := hold(t, h.dial(t), &extprocv3.ProcessingRequest{})
		time.Sleep(h.cfg.DrainDelay - time.Millisecond)
		wantOpen(t, "a request that came during the drain delay", late)

		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		wantOpen(t, "the held request", held)
		tooLate := hold(t, h.dial(t), &extprocv3.ProcessingRequest{})
		synctest.Wait()
		select {
		case err := <-tooLate:
			if status.Code(err) != codes.Unavailable {
				t.Errorf("a request after the drain delay: %v, want Unavailable", err)
			}
		default:
			t.Error("a request after the drain delay was taken")
		}
		if code, _ := h.get(t, h.listeners.metrics, "/metrics"); code != 200 {
			t.Errorf("/metrics %d during the drain, want 200", code)
		}

		close(svc.answers)
		synctest.Wait()
		wantEnded(t, "the held request", held, io.EOF)
		wantEnded(t, "the late request", late, io.EOF)
		wantEnded(t, "the process", h.ended, nil)
	})
}

// TestDrainReleasesThenCuts: what is not answered is released a while before
// the timeout, and what does not end even then is cut.
func TestDrainReleasesThenCuts(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			svc := newFakeService()
			svc.deaf = deaf
			h := startHouse(t, svc.parts(), func(c *Config) { c.DrainDelay, c.DrainTimeout = 0, 20*time.Second })
			synctest.Wait()
			held := hold(t, h.dial(t), &extprocv3.ProcessingRequest{})
			synctest.Wait()
			h.stop()
			time.Sleep(15*time.Second - time.Millisecond)
			wantOpen(t, "the held request", held)
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if !deaf {
				wantEnded(t, "the released request", held, io.EOF)
				wantEnded(t, "the process", h.ended, nil)
				return
			}
			wantOpen(t, "the deaf request", held)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			select {
			case err := <-held:
				if err == nil || errors.Is(err, io.EOF) {
					t.Errorf("a cut stream ended with %v, want an error: OK would say that it is whole", err)
				}
			default:
				t.Error("the deaf request was not cut")
			}
			wantEnded(t, "the process", h.ended, nil)
		})
	}
}

func TestPanicEndsItsStreamOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		svc := newFakeService()
		h := startHouse(t, svc.parts(), func(c *Config) { c.DrainDelay = 0 })
		conn := h.dial(t)
		held := hold(t, conn, &extprocv3.ProcessingRequest{})
		panicked := hold(t, conn, &extprocv3.ProcessingRequest{ObservabilityMode: true})
		synctest.Wait()
		if err := <-panicked; status.Code(err) != codes.Internal {
			t.Errorf("the stream that panics ended with %v, want Internal", err)
		}
		wantOpen(t, "the other stream", held)
		_, body := h.get(t, h.listeners.metrics, "/metrics")
		for _, want := range []string{"weir_grpc_panics_total 1\n", "weir_streams 1\n"} {
			if !strings.Contains(body, want) {
				t.Errorf("metrics do not have %q", want)
			}
		}
		r := h.log.record("Panic in a stream")
		if stack, _ := r["stack"].(string); r["panic"] != "asked to" || !strings.Contains(stack, "Process") {
			t.Errorf("logged %v", r)
		}
		close(svc.answers)
		h.stop()
		synctest.Wait()
		wantEnded(t, "the process", h.ended, nil)
	})
}

// TestWarmUpComesBeforeReady: the ext_proc port serves during the warm-up,
// since a refill comes back to it; nobody else is sent there.
func TestWarmUpComesBeforeReady(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{nil, errors.New("origin is away")} {
		synctest.Test(t, func(t *testing.T) {
			svc, warmed := newFakeService(), make(chan error)
			p := svc.parts()
			p.warm = func(context.Context) error { return <-warmed }
			h := startHouse(t, p, func(c *Config) { c.DrainDelay = 0 })
			synctest.Wait()
			code, body := h.get(t, h.listeners.health, "/readyz")
			if code != 503 || !strings.Contains(body, "[+] policies\n[-] warm-up: not yet") {
				t.Errorf("/readyz %d %q during the warm-up", code, body)
			}
			conn := h.dial(t)
			if got := healthOf(t, conn, ""); got != "NOT_SERVING" {
				t.Errorf("gRPC health %s during the warm-up", got)
			}
			held := hold(t, conn, &extprocv3.ProcessingRequest{})
			synctest.Wait()
			wantOpen(t, "a stream during the warm-up", held)
			if h.log.record("Ready") != nil {
				t.Error("Ready was logged during the warm-up")
			}
			warmed <- failure // a warm-up that fails does not keep the cache from serving
			synctest.Wait()
			if code, body := h.get(t, h.listeners.health, "/readyz?verbose"); code != 200 ||
				body != "[+] policies\n[+] warm-up\n[+] serving\nok\n" {
				t.Errorf("/readyz %d %q after the warm-up", code, body)
			}
			if h.log.record("Ready") == nil {
				t.Error("Ready was not logged")
			}
			close(svc.answers)
			h.stop()
			synctest.Wait()
			wantEnded(t, "the process", h.ended, nil)
		})
	}
}

// TestStopDuringWarmUp: the warm-up is told, and no ready process is announced.
func TestStopDuringWarmUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFakeService().parts()
		p.warm = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		h := startHouse(t, p, nil)
		h.stop()
		synctest.Wait()
		time.Sleep(h.cfg.DrainDelay)
		synctest.Wait()
		wantEnded(t, "the process", h.ended, nil)
		if h.log.record("Ready") != nil {
			t.Error("Ready was logged")
		}
	})
}

// TestFailureOfAPart ends the process, in order, with the part's error.
func TestFailureOfAPart(t *testing.T) {
	t.Parallel()
	errBroken, errClose := errors.New("broken"), errors.New("close")
	synctest.Test(t, func(t *testing.T) {
		fail := make(chan struct{})
		p := newFakeService().parts()
		p.background = []func(context.Context) error{
			func(context.Context) error { <-fail; return errBroken },
			func(ctx context.Context) error { <-ctx.Done(); return nil },
		}
		p.close = func() error { return errClose }
		h := startHouse(t, p, nil)
		synctest.Wait()
		close(fail)
		time.Sleep(h.cfg.DrainDelay)
		synctest.Wait()
		err := <-h.ended
		if !errors.Is(err, errBroken) || !errors.Is(err, errClose) {
			t.Errorf("ended with %v, want %v and %v", err, errBroken, errClose)
		}
	})
}

// TestEnvoyMayPing: pings every 10 s, with and without streams, cost no
// connection. grpc-go's default would end it after a few.
func TestEnvoyMayPing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		svc := newFakeService()
		h := startHouse(t, svc.parts(), func(c *Config) { c.DrainDelay = 0 })
		conn := h.dial(t, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}))
		conn.Connect()
		time.Sleep(5 * time.Minute)
		held := hold(t, conn, &extprocv3.ProcessingRequest{})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		wantOpen(t, "the held request", held)
		close(svc.answers)
		synctest.Wait()
		wantEnded(t, "the held request", held, io.EOF)
		h.stop()
		synctest.Wait()
	})
}
