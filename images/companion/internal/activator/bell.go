// SPDX-License-Identifier: Apache-2.0

package activator

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// account is where the kubelet puts the token of a pod and the certificate of the API server.
const account = "/var/run/secrets/kubernetes.io/serviceaccount"

// checked is how long a check counts.
const checked = 30 * time.Second

// A Bell says by the status of an Analysis that a request waits.
type Bell struct {
	client *http.Client
	url    string
	token  string

	mu sync.Mutex
	at time.Time
}

// InCluster is the bell of an Analysis, by the account of the pod.
func InCluster(namespace, analysis string) (*Bell, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("this is no pod of Kubernetes")
	}
	ca, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("ca.crt holds no certificate")
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
	}}
	return NewBell(client, "https://"+net.JoinHostPort(host, port), filepath.Join(account, "token"), namespace, analysis), nil
}

// NewBell of an Analysis at an API server, with the token in a file.
func NewBell(client *http.Client, server, token, namespace, analysis string) *Bell {
	return &Bell{client: client, token: token, url: fmt.Sprintf("%s/apis/observe.capstan.dev/v1alpha1/namespaces/%s/analyses/%s/status",
		server, url.PathEscape(namespace), url.PathEscape(analysis))}
}

// Ring with a text that was never written before, so that no clock has to agree with another one.
func (b *Bell) Ring(ctx context.Context) error { return b.patch(ctx, rand.Text(), "") }

// Check that it would ring, without doing so. The result counts for half a minute.
func (b *Bell) Check(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.at) < checked {
		return nil
	}
	if err := b.patch(ctx, "check", "?dryRun=All"); err != nil {
		return err
	}
	b.at = time.Now()
	return nil
}

func (b *Bell) patch(ctx context.Context, text, query string) error {
	// The kubelet renews it.
	token, err := os.ReadFile(b.token)
	if err != nil {
		return fmt.Errorf("cannot read the token: %w", err)
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"atProvider": map[string]any{"requested": text}}})
	if err != nil {
		return fmt.Errorf("cannot write the status: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, b.url+query, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("cannot write the status: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := b.client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot write the status: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot write the status: %s: %s", resp.Status, answer)
	}
	return nil
}
