package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/weirproxy/weir/extproc/admin"
)

// maxAnswerBytes bounds what is read of an answer.
const maxAnswerBytes = 64 << 20

// client speaks to an admin API.
type client struct {
	base  *url.URL
	token string
	http  *http.Client
}

func (c *cli) client() (*client, error) {
	address := c.adminAddress
	if !strings.Contains(address, "://") {
		scheme := "http"
		if c.caFile != "" {
			scheme = "https"
		}
		address = scheme + "://" + address
	}
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("--admin-address %q: want host:port or a URL", c.adminAddress)
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if c.caFile != "" {
		pem, err := os.ReadFile(c.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--ca-file: no certificate in %s (PEM)", c.caFile)
		}
	}
	a := &client{base: base, http: &http.Client{Transport: transport, Timeout: c.timeout}}
	if c.tokenFile != "" {
		token, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		a.token = strings.TrimSpace(string(token))
	}
	return a, nil
}

// get asks for path with the query and decodes the answer into v.
func (a *client) get(ctx context.Context, path string, query url.Values, v any) error {
	return a.do(ctx, http.MethodGet, path, query, nil, v)
}

// post sends body as JSON and decodes the answer into v.
func (a *client) post(ctx context.Context, path string, body, v any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return a.do(ctx, http.MethodPost, path, nil, data, v)
}

func (a *client) do(ctx context.Context, method, path string, query url.Values, body []byte, v any) error {
	u := a.base.JoinPath(path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.http.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("nobody answers at %s: is weir-extproc running, and is this its --admin-bind-address? (%w)",
			a.base.Host, err)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(resp.Status, data)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s %s: this is no answer of weir's admin API: %w", method, path, err)
	}
	return nil
}

// refusal is the error that the admin API answered.
func refusal(status string, data []byte) error {
	var e admin.Error
	if json.Unmarshal(data, &e) != nil || e.Message == "" {
		return fmt.Errorf("the admin API answered %s", status)
	}
	return fmt.Errorf("the admin API answered %s: %w", status, &e)
}
