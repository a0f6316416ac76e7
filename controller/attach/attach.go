// Package attach is what every way to attach the filter has in common: something that
// makes the Envoys of a Gateway implementation call weir, on the routes where a policy
// is in force, by objects of that implementation.
package attach

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/controller/translate"
)

// ManagedBy is the value of the label app.kubernetes.io/managed-by of every object that
// an attachment writes. What lacks it is somebody else's, and never changed.
const ManagedBy = "weir-controller"

// FieldOwner is the field manager of server-side apply.
const FieldOwner = client.FieldOwner("weir-controller")

// Attacher attaches the filter to one implementation of the Gateway API, or of a mesh.
// It keeps nothing between calls: what is attached is what the API server has. It need
// not be safe for concurrent use.
type Attacher interface {
	// Name is its word in --attach.
	Name() string
	// Controllers are the implementations whose Gateways it attaches to.
	Controllers() []translate.Controller
	// Kinds are what it reads and writes beside the Gateway API and the core kinds. They
	// must be known to the API server, are cached as unstructured objects, and watched:
	// a change leads to Learn and Attach. They are read with unstructured lists.
	Kinds() []schema.GroupVersionKind
	// Learn says what the objects of others mean for what is cached. It runs on every
	// replica, before each translation, and reads from the cache alone; what it returns
	// depends on nothing else.
	Learn(ctx context.Context, cached client.Reader) (Learned, error)
	// Attach brings what is attached to what is wanted, and removes what is not wanted
	// any more. It runs on the leader alone, after each translation and while verdicts
	// are pending, and writes nothing where nothing changed. It returns a verdict for
	// each of w.Attachments, by index, also beside an error, which means that it is to
	// be called again.
	Attach(ctx context.Context, c client.Client, w Wanted) ([]Verdict, error)
}

// Learned is what an Attacher knows of the objects of others.
type Learned struct {
	Guards    []translate.Guard
	Addresses []translate.Address
	// VirtualServices and ClassicGateways are routes and Gateways of Istio's own kinds.
	VirtualServices []*translate.VirtualService
	ClassicGateways []*translate.ClassicGateway
}

// Wanted is what is to be attached.
type Wanted struct {
	// Attachments are those of its Controllers alone, and for a mesh those whose parent
	// is a Service.
	Attachments []translate.Attachment
	// DataPlane is what Envoy is to call.
	DataPlane DataPlane
	// Owners are the CachePolicies by namespace/name: an object in the namespace of a
	// policy can be owned by it, and goes with the last of its owners even where the
	// controller is gone.
	Owners map[string]metav1.OwnerReference
	// Release, if not nil, is an object without namespace that goes with the release of
	// weir: what it owns, in whatever namespace, goes with it. It stands in place of
	// Owners, since what has several owners goes with the last.
	Release *metav1.OwnerReference
}

// DataPlane is the Service of weir-extproc.
type DataPlane struct {
	Service types.NamespacedName
	UID     types.UID // of the Service
	Port    int32
	// Resolves: the Service exists and has the port. Nothing may be attached to one
	// that does not.
	Resolves bool
}

// State is how far an attachment has come.
type State string

// The states.
const (
	// Attached: what attaches it is there and was accepted.
	Attached State = "Attached"
	// Pending: it is there, or about to be, and not accepted yet.
	Pending State = "Pending"
	// Blocked: something stands in the way that a user must change; the message says
	// what.
	Blocked State = "Blocked"
)

// Verdict is what has become of one attachment.
type Verdict struct {
	State State
	// Message is a full sentence, for the condition Programmed. Empty where there is
	// nothing to say.
	Message string
}
