package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// certificateAge is for how long a certificate that was read is good: a Secret that
// changes is noticed with the next translation after that. Secrets are read by name, and
// neither watched nor listed, so that the right to get them is enough.
const certificateAge = time.Minute

// maxCertificates bounds the Secrets that are read for one translation.
const maxCertificates = 1000

// certificates reads what HTTPS listeners show.
type certificates struct {
	api client.Reader
	log *slog.Logger

	mu   sync.Mutex
	read map[types.NamespacedName]certificate
}

type certificate struct {
	pem []byte
	at  time.Time
}

// of returns the certificates of the Gateways' listeners, by Secret. One that cannot be
// read is left out: the system's roots are believed then.
func (c *certificates) of(ctx context.Context, gateways []*gatewayv1.Gateway) map[types.NamespacedName][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, out, next := time.Now(), map[types.NamespacedName][]byte{}, map[types.NamespacedName]certificate{}
	for _, name := range certificateNames(gateways) {
		if len(next) == maxCertificates {
			break
		}
		have, ok := c.read[name]
		if !ok || now.Sub(have.at) > certificateAge {
			have = certificate{pem: c.get(ctx, name), at: now}
		}
		next[name] = have
		if have.pem != nil {
			out[name] = have.pem
		}
	}
	c.read = next
	return out
}

func (c *certificates) get(ctx context.Context, name types.NamespacedName) []byte {
	var secret corev1.Secret
	if err := c.api.Get(ctx, name, &secret); err != nil {
		c.log.Warn("Certificate of a listener not read; the system's roots are believed",
			"secret", name.String(), "error", err)
		return nil
	}
	if ca := secret.Data["ca.crt"]; len(ca) > 0 {
		return ca
	}
	return secret.Data[corev1.TLSCertKey]
}

// certificateNames returns the Secrets that listeners name in their own namespace, in
// which no ReferenceGrant is needed, in the order of the Gateways.
func certificateNames(gateways []*gatewayv1.Gateway) []types.NamespacedName {
	var names []types.NamespacedName
	for _, g := range gateways {
		for i := range g.Spec.Listeners {
			if g.Spec.Listeners[i].TLS == nil {
				continue
			}
			for _, ref := range g.Spec.Listeners[i].TLS.CertificateRefs {
				own := ref.Namespace == nil || string(*ref.Namespace) == g.Namespace
				if own && (ref.Kind == nil || *ref.Kind == "Secret") {
					names = append(names, types.NamespacedName{Namespace: g.Namespace, Name: string(ref.Name)})
				}
			}
		}
	}
	return names
}
