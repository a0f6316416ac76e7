package refill

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pipes returns a Fetcher whose connections serve answers, within a bubble.
func pipes(o Options, serve func(c net.Conn)) *Fetcher {
	o.setDefaults()
	return newFetcher(o, func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			if _, err := readHead(bufio.NewReader(server)); err == nil {
				serve(server)
			}
		}()
		return client, nil
	})
}

func say(c net.Conn, s string) bool {
	_, err := io.WriteString(c, s)
	return err == nil
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	limits := Options{HeaderTimeout: 3 * time.Second, IdleTimeout: 2 * time.Second, TotalTimeout: 10 * time.Second}
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	slowly := func(every time.Duration, chunks int) func(net.Conn) {
		return func(c net.Conn) {
			say(c, head)
			for range chunks {
				time.Sleep(every)
				if !say(c, "1\r\nx\r\n") {
					return
				}
			}
			say(c, "0\r\n\r\n")
		}
	}
	hang := func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }
	tests := []struct {
		name   string
		serve  func(net.Conn)
		onBody time.Duration // how long the sink takes for each chunk
		want   error
		after  time.Duration
		body   string
	}{
		{"in time", slowly(1900*time.Millisecond, 5), 0, nil, 9500 * time.Millisecond, "xxxxx"},
		{"no head", hang, 0, ErrHeaderTimeout, 3 * time.Second, ""},
		{"head just in time", func(c net.Conn) {
			time.Sleep(2999 * time.Millisecond)
			say(c, head+"0\r\n\r\n")
		}, 0, nil, 2999 * time.Millisecond, ""},
		{"no body", func(c net.Conn) {
			say(c, head)
			hang(c)
		}, 0, ErrStalled, 2 * time.Second, ""},
		{"body stalls", func(c net.Conn) {
			say(c, head+"1\r\nx\r\n")
			time.Sleep(time.Second)
			say(c, "1\r\nx\r\n")
			hang(c)
		}, 0, ErrStalled, 3 * time.Second, "xx"},
		{"all too slow", slowly(1500*time.Millisecond, 100), 0, ErrTotalTimeout, 10 * time.Second, "xxxxxx"},
		{"the sink is slow", slowly(100*time.Millisecond, 2), 3 * time.Second, nil, 6100 * time.Millisecond, "xx"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := pipes(limits, tt.serve)
				start := time.Now()
				s := &record{onBody: func(int) error { time.Sleep(tt.onBody); return nil }}
				err := f.Do(t.Context(), get, s)
				if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
					t.Errorf("Do = %v, want %v", err, tt.want)
				}
				if got := time.Since(start); got != tt.after || string(s.body) != tt.body {
					t.Errorf("%q after %v, want %q after %v", s.body, got, tt.body, tt.after)
				}
				f.Close()
				time.Sleep(time.Minute) // the server notices
			})
		})
	}
}

// Who waits for a slot of the Fetcher does not wait longer than its context.
func TestWaitForASlotIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := pipes(Options{MaxConcurrent: 1}, func(c net.Conn) {
			time.Sleep(5 * time.Second)
			say(c, "HTTP/1.1 204 No Content\r\n\r\n")
		})
		done := make(chan error, 1)
		go func() { done <- f.Do(context.Background(), get, &record{}) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := f.Do(ctx, get, &record{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do = %v", err)
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("waited %v, want 1s", got)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		f.Close()
		synctest.Wait()
	})
}
