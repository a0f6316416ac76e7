package certs

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// caKey is where a Secret has the CAs to trust, beside tls.crt and tls.key.
const caKey = "ca.crt"

// keyBytes is the length of a key of --secret-file.
const keyBytes = 32

// Options say what there must be.
type Options struct {
	// Namespace is that of all Secrets.
	Namespace string
	// KeysSecret and KeysKey are where the keys of --secret-file are; no Secret: not
	// wanted.
	KeysSecret, KeysKey string
	// CASecret is where the CA is. It is wanted with Certificates.
	CASecret string
	// Certificates are those that the CA signs.
	Certificates []Certificate
	// Life is how long they are valid.
	Life time.Duration
}

// Certificate is one that the CA signs.
type Certificate struct {
	Secret string
	// Hosts are the names that it bears; at least one.
	Hosts []string
}

// Ensure fills the Secrets with what they lack and renews what ends soon. It returns
// what it did, one line for each Secret that it wrote. The Secrets must exist. One that
// somebody else wrote meanwhile is an error: try again.
func Ensure(ctx context.Context, c client.Client, o Options, now time.Time) ([]string, error) {
	e := &ensurer{ctx: ctx, client: c, options: o, now: now}
	if o.KeysSecret != "" {
		e.keys()
	}
	if len(o.Certificates) > 0 {
		e.certificates()
	}
	return e.done, errors.Join(e.errs...)
}

type ensurer struct {
	ctx     context.Context
	client  client.Client
	options Options
	now     time.Time

	done []string
	errs []error
}

// keys are made once: with other keys what replicas have stored is lost.
func (e *ensurer) keys() {
	name, key := e.options.KeysSecret, e.options.KeysKey
	e.edit(name, func(s *corev1.Secret) (string, error) {
		if len(bytes.TrimSpace(s.Data[key])) > 0 {
			return "", nil
		}
		random := make([]byte, keyBytes)
		if _, err := rand.Read(random); err != nil {
			return "", fmt.Errorf("make a key: %w", err)
		}
		s.Data[key] = []byte(hex.EncodeToString(random) + "\n")
		return "made a key", nil
	})
}

func (e *ensurer) certificates() {
	var signer *pair
	var bundle []byte
	e.edit(e.options.CASecret, func(s *corev1.Secret) (did string, err error) {
		signer, did, err = e.ca(s)
		bundle = s.Data[caKey]
		return did, err
	})
	if len(e.errs) > 0 {
		return
	}
	for _, wanted := range e.options.Certificates {
		e.edit(wanted.Secret, func(s *corev1.Secret) (string, error) {
			return e.certificate(s, wanted.Hosts, signer, bundle)
		})
	}
}

// ca returns the CA to sign with. One that would end before what it signs now gets a
// successor, which is trusted from now on and signs from the next time on: by then
// everybody has heard of it.
func (e *ensurer) ca(s *corev1.Secret) (*pair, string, error) {
	signer, did := (*pair)(nil), ""
	if len(s.Data[corev1.TLSCertKey]) > 0 {
		var err error
		if signer, err = parse(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); err != nil {
			// A new CA would cut off everybody at once: that is for a person to decide.
			return nil, "", fmt.Errorf("its CA is not usable, empty the Secret to have another made: %w", err)
		}
	}
	newest := signer
	if signer == nil || signer.cert.NotAfter.Sub(e.now) < 2*e.options.Life {
		var err error
		if newest, err = newCA(e.now); err != nil {
			return nil, "", err
		}
		did = "made a CA"
		s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey] = newest.certPEM, newest.keyPEM
	}
	if signer == nil || !e.now.Before(signer.cert.NotAfter) {
		signer = newest
	}
	bundle := trusted(newest, s.Data[caKey], e.now)
	if did == "" && !bytes.Equal(bundle, s.Data[caKey]) {
		did = "wrote the trusted CAs"
	}
	s.Data[caKey] = bundle
	return signer, did, nil
}

func (e *ensurer) certificate(s *corev1.Secret, hosts []string, signer *pair, bundle []byte) (string, error) {
	did := ""
	if !bytes.Equal(s.Data[caKey], bundle) {
		s.Data[caKey] = bundle
		did = "wrote the trusted CAs"
	}
	is, err := parse(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err == nil {
		err = is.fits(bundle, hosts, e.now)
	}
	if err == nil {
		return did, nil
	}
	if len(s.Data[corev1.TLSCertKey]) == 0 {
		did = "made a certificate"
	} else {
		did = fmt.Sprintf("renewed the certificate: %v", err)
	}
	fresh, err := newCertificate(signer, hosts, e.options.Life, e.now)
	if err != nil {
		return "", err
	}
	s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey] = fresh.certPEM, fresh.keyPEM
	return did, nil
}

// edit reads a Secret, has it changed, and writes it if change says what it did.
func (e *ensurer) edit(name string, change func(*corev1.Secret) (string, error)) {
	s := &corev1.Secret{}
	err := e.client.Get(e.ctx, types.NamespacedName{Namespace: e.options.Namespace, Name: name}, s)
	if err != nil {
		e.errs = append(e.errs, fmt.Errorf("read Secret %s: %w", name, err))
		return
	}
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	did, err := change(s)
	if err != nil {
		e.errs = append(e.errs, fmt.Errorf("fill Secret %s: %w", name, err))
		return
	}
	if did == "" {
		return
	}
	if err := e.client.Update(e.ctx, s); err != nil {
		e.errs = append(e.errs, fmt.Errorf("write Secret %s: %w", name, err))
		return
	}
	e.done = append(e.done, name+": "+did)
}
