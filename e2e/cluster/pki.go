package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const apiServerURL = "https://127.0.0.1:6443"

// identities returns the users that components log in as, with a token each, by the name of their kubeconfig. The RBAC
// rules of Kubernetes know these names, so that what a component may do is as anywhere else.
func identities() map[string]struct{ user, group string } {
	return map[string]struct{ user, group string }{
		"admin":                   {"admin", "system:masters"},
		"kube-controller-manager": {user: "system:kube-controller-manager"},
		"kube-scheduler":          {user: "system:kube-scheduler"},
		"kube-proxy":              {user: "system:kube-proxy"},
		"kubelet":                 {"system:node:" + nodeName, "system:nodes"},
	}
}

// writeIdentities writes the certificate authority, the API server's certificate, the key of service accounts, and for
// each identity NAME.kubeconfig. They live as long as the cluster.
func writeIdentities(dir string) error {
	authority, authorityKey, err := writeCertificate(dir, "ca", nil, nil)
	if err != nil {
		return err
	}
	if _, _, err := writeCertificate(dir, "apiserver", authority, authorityKey); err != nil {
		return err
	}
	if _, err := writeKey(filepath.Join(dir, "serviceaccounts.key")); err != nil {
		return err
	}
	var tokens strings.Builder
	for name, identity := range identities() {
		token := rand.Text()
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", token, identity.user, identity.user, identity.group)
		if err := writeKubeconfig(filepath.Join(dir, name+".kubeconfig"), authority, token); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "tokens.csv"), []byte(tokens.String()), 0o600)
}

// writeCertificate writes NAME.crt and NAME.key: of a certificate authority when there is no issuer, else of the API
// server.
func writeCertificate(dir, name string, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey) (
	*x509.Certificate, *ecdsa.PrivateKey, error,
) {
	key, err := writeKey(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(48 * time.Hour), BasicConstraintsValid: true,
	}
	if issuer == nil {
		template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
		issuer, issuerKey = template, key
	} else {
		template.KeyUsage = x509.KeyUsageDigitalSignature
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		template.DNSNames = []string{"localhost"}
		for host := "kubernetes.default.svc." + clusterDomain; host != ""; {
			template.DNSNames = append(template.DNSNames, host)
			host = host[:max(0, strings.LastIndexByte(host, '.'))]
		}
		for _, ip := range []string{"127.0.0.1", NodeIP, apiServerIP} {
			template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		return nil, nil, fmt.Errorf("issue the certificate %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("issue the certificate %s: %w", name, err)
	}
	return cert, key, os.WriteFile(filepath.Join(dir, name+".crt"), certificatePEM(cert), 0o644)
}

func writeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return key, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), 0o600)
}

func certificatePEM(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

func writeKubeconfig(path string, authority *x509.Certificate, token string) error {
	const name = "weir-cluster"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: apiServerURL, CertificateAuthorityData: certificatePEM(authority),
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}
