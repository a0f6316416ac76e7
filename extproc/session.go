package extproc

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/refill"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// session is the I/O around one machine: it feeds it what happens and carries
// out its effects. One goroutine runs it; while it waits for something else too, a
// second one reads the stream.
type session struct {
	svc    *Service
	stream grpc.ServerStream
	m      machine
	msg    wire.Message
	room   [4]effect           // backs m.out, which is rarely longer
	fields [24]httpcache.Field // backs the header of the first message

	lead   *flight.Lead
	waiter *flight.Waiter
	slot   *refill.Slot
	job    *job
	// started is what a detached fetch that this request started tells it; else nil.
	started *told
	fill    fill

	held  time.Time // when the hold began; zero: none
	timer time.Time // when onTimer is due; zero: never
	reads chan error
}

// errClosed says that opClose was carried out.
var errClosed = errors.New("closed")

// run is the life of the stream.
func (s *session) run() error {
	for {
		err := s.step()
		if err == nil {
			err = s.perform()
		}
		if errors.Is(err, errClosed) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// step waits for the next event and gives it to the machine.
func (s *session) step() error {
	switch {
	case s.m.waits():
		return s.wait()
	case s.m.state == stateCopy && s.m.copied && s.m.endless:
		s.listen()
	default:
		s.received(s.read())
	}
	return nil
}

// silentAfter is how long a response may be silent of which nobody knows whether
// more is to come.
const silentAfter = 5 * time.Second

// listen waits for the next message, but not for ever.
func (s *session) listen() {
	t := time.NewTimer(silentAfter)
	defer t.Stop()
	select {
	case err := <-s.reading():
		s.reads = nil
		s.received(err)
	case <-t.C:
		s.m.onSilence()
	}
}

// reading reads the next message beside what else is waited for.
func (s *session) reading() <-chan error {
	if s.reads == nil {
		reads := make(chan error, 1)
		s.reads = reads
		go func() { reads <- s.stream.RecvMsg(&s.msg) }()
	}
	return s.reads
}

// read waits for the next message.
func (s *session) read() error {
	if s.reads != nil {
		err := <-s.reads
		s.reads = nil
		return err
	}
	return s.stream.RecvMsg(&s.msg)
}

// received gives the machine a message, or the end of the stream.
func (s *session) received(err error) {
	if err != nil {
		s.m.onEnd(!errors.Is(err, io.EOF))
		s.m.emit(effect{op: opClose})
		return
	}
	if s.m.state == stateStart {
		s.m.binding = s.svc.bind(s.stream, &s.msg)
		if s.svc.refilled(&s.msg) {
			s.m.refilled()
			return
		}
	}
	if s.m.fetching && s.msg.Kind == wire.KindResponseHeaders && !madeByEnvoy(&s.msg) {
		s.svc.opts.Metrics.Fetched(time.Since(s.m.asked))
	}
	s.m.onMessage(&s.msg, time.Now())
}

// wait is the hold: the first of a message, news, a turn and the timer goes on.
func (s *session) wait() error {
	var due <-chan time.Time
	if !s.timer.IsZero() {
		t := time.NewTimer(time.Until(s.timer))
		defer t.Stop()
		due = t.C
	}
	var news <-chan flight.News
	if s.waiter != nil {
		news = s.waiter.C()
	}
	var granted <-chan struct{}
	if s.m.state == stateQueue {
		granted = s.slot.Granted()
	}
	select {
	case err := <-s.reading():
		s.reads = nil
		s.received(err)
	case <-granted:
		s.m.onAdmit(turnNow, time.Now())
	case n := <-news:
		if n.Lead != nil {
			s.lead = n.Lead
		}
		if s.started != nil && s.started.validated.Load() {
			s.m.onRefill(refillValidated)
		}
		s.m.onNews(s.judged(n), time.Now())
	case <-due:
		s.timer = time.Time{}
		s.m.onTimer(time.Now())
	}
	if !s.m.waits() {
		s.holdEnds()
	}
	return nil
}

func (s *session) holdBegins() {
	if s.held.IsZero() {
		s.held = time.Now()
		s.svc.opts.Metrics.WaitStart()
	}
}

func (s *session) holdEnds() {
	if !s.held.IsZero() {
		s.svc.opts.Metrics.WaitEnd(time.Since(s.held))
		s.held = time.Time{}
	}
}

// alone reports whether nothing outside the session can have a part of its memory: it ended by an answer from the
// store, or passed by, before it told anyone of itself.
func (s *session) alone() bool {
	return s.m.counted && s.m.state == stateDone && s.m.asked.IsZero() &&
		s.job == nil && s.lead == nil && s.waiter == nil && s.slot == nil && s.started == nil &&
		s.reads == nil && s.fill.entry == nil
}

// close leaves nothing behind, whatever ended the stream.
func (s *session) close() {
	if !s.m.counted { // a panic
		s.svc.opts.Metrics.Request(metrics.OutcomeError)
	}
	s.holdEnds()
	s.leave()
	s.fill.abandon()
	if s.lead != nil {
		s.lead.Close()
	}
	if s.slot != nil {
		s.slot.Release()
	}
	if s.reads == nil {
		s.msg.Reset()
	}
}

func (s *session) leave() {
	if s.waiter != nil {
		s.waiter.Leave()
		s.waiter = nil
	}
}

// perform carries out what the machine wants done, including what it wants
// because of what that brings. If the stream breaks, that goes for all but what
// was to be said on it.
func (s *session) perform() error {
	var broken error
	for i := 0; i < len(s.m.out); i++ {
		e := &s.m.out[i]
		if broken != nil && e.speaks() {
			continue
		}
		err := s.do(e)
		if errors.Is(err, errClosed) {
			return err
		}
		if err != nil {
			broken = err
			s.m.onEnd(false)
		}
	}
	if broken != nil {
		return broken
	}
	clear(s.m.out)
	s.m.out = s.m.out[:0]
	if s.m.waits() {
		s.holdBegins()
	} else { // a request that was in the queue may have had its turn at once
		s.holdEnds()
	}
	return nil
}

func (s *session) do(e *effect) error {
	switch e.op {
	case opSend:
		return s.stream.SendMsg(e.reply)
	case opClose:
		return errClosed
	case opLookup:
		f := s.svc.lookup(s.stream.Context(), &s.m)
		s.svc.touch(&s.m, f.Vary, time.Now())
		s.m.onLookup(f, time.Now())
	case opJoin, opJoinRefill:
		s.join(e)
	case opTryLead:
		s.tryLead(e)
	case opAdmit:
		s.admit()
	case opRefresh:
		s.refresh(e.id, s.ownJob())
	case opLeave:
		s.leave()
	case opTimer:
		s.timer = e.at
	case opTail:
		return s.tail(e)
	case opStream:
		return s.sendParts(e)
	case opFill:
		s.svc.opts.Metrics.Fill(e.fill)
	case opOutcome:
		s.svc.opts.Metrics.Request(e.outcome)
		s.svc.traffic.count(s.m.policy, e.outcome)
	case opNote:
		s.svc.noted(e.note, s.policyName())
	default:
		s.doFill(e)
	}
	return nil
}

// doFill carries out what concerns the answer being fetched and what is stored.
func (s *session) doFill(e *effect) {
	ctx := context.WithoutCancel(s.stream.Context())
	switch e.op {
	case opHeadShown, opShown, opUnseen:
		s.see(e.op)
	case opPublish:
		s.fill.begin(s.svc, s.lead, s.ownJob(), e.entry, e.share, e.reason)
	case opAppend:
		if !s.fill.append(e.body, time.Now()) {
			s.m.onCopyOver()
		}
	case opCommit:
		s.fill.commit(ctx, time.Now())
	case opBreak:
		s.fill.drop(errors.New(string(e.reason)))
	case opAbandon:
		s.fill.abandon()
		if s.lead != nil {
			s.lead.Abandon()
		}
	case opRelease:
		s.svc.release(s.lead, e.mark, e.reason)
	case opFail:
		s.svc.fail(s.lead, e.reason)
	case opFreshen:
		s.svc.freshened(ctx, s.m.policy, e.fresh, s.lead)
	case opDelete:
		s.svc.dropped(ctx, e.entry)
	case opInvalidate:
		s.svc.invalidated(ctx, e.targets, s.m.binding.Tenant())
	}
}

// see notes what is known of whether Envoy shows responses.
func (s *session) see(o op) {
	sight := &s.svc.state(s.m.policy).sight
	switch o {
	case opHeadShown:
		sight.showHead()
	case opShown:
		sight.show()
	default:
		sight.miss(time.Now())
	}
}

func (s *session) policyName() string {
	if s.m.policy == nil {
		return ""
	}
	return s.m.policy.String()
}

// ownJob is this request as others may fetch it. It is made when it is first
// needed and whenever more became known.
func (s *session) ownJob() *job {
	if s.job == nil || s.job.stored != s.m.stored || len(s.job.vary.Names) != len(s.m.vary.Names) {
		s.job = s.m.job()
	}
	return s.job
}

// join asks the flight. A flight whose fetch began before an invalidation that
// covers this request is none of ours.
func (s *session) join(e *effect) {
	j := s.ownJob()
	if e.op == opJoinRefill && s.refresh(e.id, j) {
		s.started = j.told
		s.m.onRefill(refillStarted)
	}
	s.leave()
	for {
		role, lead, w := s.svc.flights.Join(e.id, s.m.req.Header, e.at, s.svc.limits(j), time.Now())
		s.lead, s.waiter = lead, w
		if role == flight.RoleFollow && s.svc.refused(j, w.Birth()) {
			w.Cut()
			continue
		}
		if role == flight.RoleLead && (s.filledMeanwhile() || s.svc.claims(s.m.policy) && !s.claim(e)) {
			return
		}
		s.m.onJoin(role, time.Now())
		return
	}
}

// admit asks for a turn at the origin.
func (s *session) admit() {
	now := time.Now()
	slot, err := s.svc.limiter(s.m.binding, &s.m.req, now).Enqueue(s.svc.rate(&s.m.key, now))
	if err != nil {
		s.m.onAdmit(turnFull, time.Now())
		return
	}
	s.slot = slot
	select {
	case <-slot.Granted():
		s.m.onAdmit(turnNow, time.Now())
	default:
		s.m.onAdmit(turnQueued, time.Now())
	}
}

// judged keeps an answer from this request that was invalidated by a tag: when the
// request joined, nobody knew what tags the answer would have. It may have come
// before the invalidation, and is careful then: it asks again.
func (s *session) judged(n flight.News) flight.News {
	if n.Kind != flight.NewsAnswer ||
		!s.svc.opts.Stamps.RefusesTags(n.Entry.Birth, s.m.binding.Tenant(), n.Entry.Tags) {
		return n
	}
	s.waiter.Cut()
	return flight.News{Kind: flight.NewsRejoin, Entry: n.Entry}
}

// tryLead leads a flight if nobody does and nothing newer came meanwhile.
func (s *session) tryLead(e *effect) {
	lead, won := s.svc.flights.TryLead(e.id, time.Now())
	if won {
		s.lead = lead
		if s.m.pending == nil && s.filledMeanwhile() {
			return
		}
		won = s.m.pending != nil || !s.svc.claims(s.m.policy) || s.claimRefresh()
	}
	s.m.onTryLead(won, e.outcome, time.Now())
}

// refresh starts a detached fetch for the request's key, unless somebody fetches it
// already, it failed lately, or it was fetched meanwhile; it reports whether it did.
func (s *session) refresh(id flight.ID, j *job) bool {
	lead, won := s.svc.tryRefresh(id, j)
	if !won {
		return false
	}
	if f := s.svc.newer(s.stream.Context(), &s.m); f.Entry != nil {
		lead.Serve(f.Entry)
		return false
	}
	s.svc.startRefill(lead, j, nil, nil)
	return true
}

// filledMeanwhile answers the request that was to lead from what was stored since
// its look-up. Who joined it meanwhile gets that too.
func (s *session) filledMeanwhile() bool {
	f := s.svc.newer(s.stream.Context(), &s.m)
	if f.Entry == nil {
		return false
	}
	s.lead.Serve(f.Entry)
	s.lead = nil
	s.m.onLookup(f, time.Now())
	return true
}

// newer looks into the store again after a lead was won, for an answer that a fetch
// would not better. Between our look-up and our lead another flight may have stored
// its answer and ended:
//
//	us:   look-up: miss or stale                 lead
//	them:                        commit   finish
//
// Without this the origin would be asked twice. Every lead that follows a look-up
// asks here before it fetches.
func (s *Service) newer(ctx context.Context, m *machine) found {
	f := s.lookup(ctx, m)
	if f.Entry == nil || f.Entry == m.stored || f.soft || !isFresh(f.Entry, time.Now()) {
		return found{}
	}
	return f
}

func isFresh(e *store.Entry, now time.Time) bool { return !e.ValidateAlways && e.Age(now) < e.Lifetime }
