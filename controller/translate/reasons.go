package translate

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Reasons of Accepted (False) beside those of the Gateway API: Invalid, Conflicted and
// TargetNotFound.
const (
	// ReasonTargetNotAttached: the target exists, but no Gateway has taken it on.
	ReasonTargetNotAttached = "TargetNotAttached"
	// ReasonUnsupported: the filter cannot be attached there: a Gateway of another
	// implementation, a parent of another kind.
	ReasonUnsupported = "Unsupported"
	// ReasonServerAuthorization: in a mesh a hit would skip the authorization on the
	// server's side, and the policy does not say that this is wanted.
	ReasonServerAuthorization = "ServerAuthorizationRequired"
)

// reasonResolvedRefs is the reason of ResolvedRefs (True).
const reasonResolvedRefs = "ResolvedRefs"

// maxExamples bounds what a message lists of one thing; the rest is a number.
const maxExamples = 3

// maxMessage is the API's bound on the length of a message in bytes.
const maxMessage = 32768

func yes[R ~string](reason R, message string) Condition {
	return Condition{Status: metav1.ConditionTrue, Reason: string(reason), Message: bounded(message)}
}

func no[R ~string](reason R, message string) Condition {
	return Condition{Status: metav1.ConditionFalse, Reason: string(reason), Message: bounded(message)}
}

func targetNotFound(message string) Condition {
	return no(gatewayv1.PolicyReasonTargetNotFound, message)
}

// bounded cuts a message to what the API takes.
func bounded(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	const mark = "…"
	return strings.ToValidUTF8(message[:maxMessage-len(mark)], "") + mark
}

// examples gathers sentences for a message: the first few, and how many there were.
type examples struct {
	list  []string
	count int
	last  *rule
}

// add adds a sentence, which it makes only if there is still room for it. About one
// rule (nil: none), whose places come one after the other, it speaks once.
func (e *examples) add(about *rule, sentence func() string) {
	if about != nil && e.last == about {
		return
	}
	e.last = about
	e.count++
	if len(e.list) < maxExamples {
		e.list = append(e.list, sentence())
	}
}

// once adds a sentence unless it is there; an empty one says nothing.
func (e *examples) once(sentence string) {
	if sentence != "" && len(e.list) < maxExamples && !slices.Contains(e.list, sentence) {
		e.list = append(e.list, sentence)
		e.count++
	}
}

// String returns the sentences, and how many there are beyond them.
func (e *examples) String() string {
	s := strings.Join(e.list, " ")
	if more := e.count - len(e.list); more > 0 {
		s += fmt.Sprintf(" And %d more.", more)
	}
	return s
}
