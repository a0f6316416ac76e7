package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weirproxy/weir/extproc/fleet/redistest"
)

// ownerAddr is the environment variable by which this test binary is told to be
// the process of TestOwnerProcess, and where Redis is.
const ownerAddr = "WEIR_TEST_OWNER_REDIS"

// TestOwnerProcess is no test but the process that TestStoppedOwnerHarmsNobody
// stops: it claims, waits for a line, and commits.
func TestOwnerProcess(t *testing.T) {
	addr := os.Getenv(ownerAddr)
	if addr == "" {
		return
	}
	a := join(t, dial(t, addr), "owner", nil)
	a.run(t)
	claim := claimOf("/")
	l := a.granted(t, claim)
	e := a.answer(claim, "old")
	fmt.Println("token", l.Token())
	in := bufio.NewReader(os.Stdin)
	_, _ = in.ReadString('\n')
	_, err := a.Fleet.Commit(context.Background(), l, e, nil)
	fmt.Println("fenced", errors.Is(err, ErrFenced) || errors.Is(err, ErrOver))
}

// owner is such a process.
type owner struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startOwner(t *testing.T, addr string) *owner {
	t.Helper()
	o := &owner{t: t, cmd: exec.Command(os.Args[0], "-test.run=^TestOwnerProcess$", "-test.v")}
	o.cmd.Env = append(os.Environ(), ownerAddr+"="+addr)
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, errIn := o.cmd.StdinPipe()
	out, errOut := o.cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, o.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	o.in, o.out = in, bufio.NewScanner(out)
	t.Cleanup(func() {
		_ = o.cmd.Process.Kill()
		_ = o.cmd.Wait()
	})
	return o
}

// says waits for a line with the name and returns the rest of it.
func (o *owner) says(name string) string {
	o.t.Helper()
	for o.out.Scan() {
		if value, ok := strings.CutPrefix(o.out.Text(), name+" "); ok {
			return value
		}
	}
	o.t.Fatalf("the owner ended before it said %q", name)
	return ""
}

// TestStoppedOwnerHarmsNobody: cases.md 29 (b). A process with a lease is stopped
// with SIGSTOP until another has taken over and stored; when it goes on it deletes
// nothing that is not its own, and overwrites nothing.
func TestStoppedOwnerHarmsNobody(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	o := startOwner(t, server.Addr)
	token, err := strconv.ParseUint(o.says("token"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	b := join(t, dial(t, server.Addr), "b", nil)
	b.run(t)
	claim := claimOf("/")
	held := b.wants(t, claim, Held)
	if held.By != "owner" || held.Token != token {
		t.Fatalf("held by %q under %d", held.By, held.Token)
	}
	if err := o.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if got := b.Wait(t.Context(), claim, held); got.State != Free {
		t.Fatalf("waiting ended with %v (%v), want the lease free", got.State, got.Err)
	}
	l := b.granted(t, claim)
	if l.Token() <= token {
		t.Errorf("token %d after %d", l.Token(), token)
	}
	b.commits(t, l, b.answer(claim, "new"))
	again := b.granted(t, Claim{Key: claim.Key, Policy: claim.Policy, Known: b.wants(t, claim, Found).Entry})

	if err := o.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o.in, "commit\n"); err != nil {
		t.Fatal(err)
	}
	if got := o.says("fenced"); got != "true" {
		t.Errorf("the stopped owner's commit was fenced off: %s", got)
	}
	if got := b.wants(t, claim, Found); content(got.Entry) != "new" {
		t.Errorf("found %q, want new", content(got.Entry))
	}
	if err := again.renew(); err != nil {
		t.Errorf("the lease that was given out meanwhile: %v", err)
	}
	again.end()
}
