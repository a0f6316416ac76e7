package metrics

// Outcome says how one client request ended. Every client request is counted
// under exactly one outcome, when it is known what the client gets; what
// Cache-Status tells the client agrees with it. A stream that carries one of
// weir's own refills is no client request and has no outcome.
type Outcome int

// The outcomes, closed: weir_requests_total has one series for each.
const (
	// Answered from the cache, nothing forwarded: Cache-Status "hit".

	OutcomeHit Outcome = iota
	OutcomeHitStale
	OutcomeHitNegative

	// Answered after waiting for, or asking, the origin: Cache-Status "fwd".

	OutcomeRevalidated
	OutcomeCoalesced
	OutcomeMiss
	OutcomeMissUncacheable

	// A stale copy stood in for the origin's answer.

	OutcomeStaleIfError
	OutcomeStaleSlow
	OutcomeStaleOverflow

	// Passed by: the cache had no part in the answer.

	OutcomeBypassMethod
	OutcomeBypassRequest
	OutcomeBypassPolicy
	OutcomeBypassMode
	OutcomeShadow
	OutcomeLocalReply

	// No answer, or one that weir had to make itself.

	OutcomeOnlyIfCached
	OutcomeUnavailable
	OutcomeError
	OutcomeCanceled

	numOutcomes
)

// String returns the value of the label outcome.
func (o Outcome) String() string {
	return [numOutcomes]string{
		OutcomeHit:             "hit",
		OutcomeHitStale:        "hit_stale",
		OutcomeHitNegative:     "hit_negative",
		OutcomeRevalidated:     "revalidated",
		OutcomeCoalesced:       "coalesced",
		OutcomeMiss:            "miss",
		OutcomeMissUncacheable: "miss_uncacheable",
		OutcomeStaleIfError:    "stale_if_error",
		OutcomeStaleSlow:       "stale_slow",
		OutcomeStaleOverflow:   "stale_overflow",
		OutcomeBypassMethod:    "bypass_method",
		OutcomeBypassRequest:   "bypass_request",
		OutcomeBypassPolicy:    "bypass_policy",
		OutcomeBypassMode:      "bypass_mode",
		OutcomeShadow:          "shadow",
		OutcomeLocalReply:      "local_reply",
		OutcomeOnlyIfCached:    "only_if_cached",
		OutcomeUnavailable:     "unavailable",
		OutcomeError:           "error",
		OutcomeCanceled:        "canceled",
	}[o]
}

// value is one value of a label with a closed set, and what it means.
type value struct{ name, help string }

func outcomeValues() []value {
	out := make([]value, numOutcomes)
	for o, help := range outcomeHelp() {
		out[o] = value{Outcome(o).String(), help}
	}
	return out
}

func outcomeHelp() [numOutcomes]string {
	return [numOutcomes]string{
		OutcomeHit:             "Fresh, from the cache; 304, 206, 416 and HEAD made from a stored answer count here.",
		OutcomeHitStale:        "Stale, from the cache, inside the stale-while-revalidate window.",
		OutcomeHitNegative:     "From the cache: a stored failure (`negativeTTL`).",
		OutcomeRevalidated:     "The origin answered 304 to weir's validation; the stored copy went to the client.",
		OutcomeCoalesced:       "Waited for another request's fetch and shared its answer.",
		OutcomeMiss:            "Fetched from the origin and stored.",
		OutcomeMissUncacheable: "Fetched from the origin under a policy, and not stored.",
		OutcomeStaleIfError:    "The origin failed; a stale copy went to the client instead.",
		OutcomeStaleSlow: "The origin was slower than `stale.softTimeout` or `coalescing.maxWait`; a stale copy went to " +
			"the client.",
		OutcomeStaleOverflow: "`originLimits` were used up; a stale copy went to the client.",
		OutcomeBypassMethod:  "Passed by: the method is neither GET nor HEAD.",
		OutcomeBypassRequest: "Passed by: something in the request (upgrade, gRPC, body, override header, range, " +
			"credentials, cookies).",
		OutcomeBypassPolicy: "Passed by: no policy covers the route, or its mode is `Disabled`.",
		OutcomeBypassMode:   "Passed by: Envoy's filter is set to a processing mode in which weir cannot work.",
		OutcomeShadow:       "Passed by: the policy's mode is `Shadow`; decided and counted, nothing served.",
		OutcomeLocalReply: "Envoy answered by itself before weir saw the request (redirect, direct response, refused " +
			"upgrade).",
		OutcomeOnlyIfCached: "504: the client said `only-if-cached` and nothing stored could serve it.",
		OutcomeUnavailable: "503 or 504 made by weir: the fetch failed, the wait was too long or `originLimits` were used " +
			"up.",
		OutcomeError:    "weir itself failed, or Envoy broke the ext_proc protocol; Envoy was left to carry on.",
		OutcomeCanceled: "The client went away before it was known what it would get.",
	}
}
