package flight

import (
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// Role is what Join makes of its caller.
type Role int

// The roles.
const (
	// RoleLead: nobody fetches this yet; the caller does, and owns the Lead.
	RoleLead Role = iota
	// RoleFollow: somebody fetches this; the Waiter brings the News.
	RoleFollow
	// RoleSolo: go to the origin alone, but look at the answer: a do-not-coalesce
	// mark stands, the group is drained, or Options.MaxFlights is reached.
	RoleSolo
	// RoleFull: Limits.MaxWaiters is reached.
	RoleFull
	numRoles
)

// String returns the role as a metric label.
func (r Role) String() string { return [numRoles]string{"lead", "follow", "solo", "full"}[r] }

// NewsKind says how the wait of a waiter ended.
type NewsKind int

// The kinds of news.
const (
	// NewsAnswer: News.Entry is the answer to this waiter's request too; its Body
	// may still grow, or break.
	NewsAnswer NewsKind = iota
	// NewsRejoin: News.Entry is another variant. Its Vary says what matters: look
	// up, or join, under the VariantID of one's own request.
	NewsRejoin
	// NewsFetch: the answer cannot be shared; go to the origin now.
	NewsFetch
	// NewsLead: the leader is gone; News.Lead is the waiter's now.
	NewsLead
	// NewsFailed: the fetch failed and left nothing to share.
	NewsFailed
	numNewsKinds
)

// String returns the kind as a metric label.
func (k NewsKind) String() string {
	return [numNewsKinds]string{"answer", "rejoin", "fetch", "lead", "failed"}[k]
}

// News is what a waiter is told, once.
type News struct {
	Kind   NewsKind
	Entry  *store.Entry     // of NewsAnswer and NewsRejoin
	Lead   *Lead            // of NewsLead
	Reason httpcache.Reason // of NewsFetch and NewsFailed, as the leader gave it
}

// Reasons that the group itself gives for ending a wait.
const (
	// ReasonLeaderAborted: the leader ended without saying how, by a panic for one.
	ReasonLeaderAborted httpcache.Reason = "leader-aborted"
	// ReasonVaryAny: the answer has Vary: *, which no other request matches.
	ReasonVaryAny httpcache.Reason = "vary-any"
	// ReasonDraining: the process ends.
	ReasonDraining httpcache.Reason = "draining"
)

// Observer is told what happens in a group, for metrics. A nil function is not
// called. They are called without a lock held, from many goroutines at a time.
type Observer struct {
	Joined   func(r Role)            // somebody joined
	Told     func(k NewsKind, n int) // n waiters were told k
	TookOver func(started bool)      // TakeOver was asked, and started a fetch or did not
	Stalled  func()                  // a leader without progress got a successor
}
